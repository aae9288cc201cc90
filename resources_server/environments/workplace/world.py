"""An office with five databases: the agent does what it is asked, and the change it leaves behind is compared with the right one.

Tool names, their parameters and the rows are those of NeMo Gym's `workplace_assistant` (after WorkBench, arXiv 2405.00823).
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from resources_server import Call, Environment, Response, ToolError, Verdict
from resources_server.environments.workplace import company, scoring
from resources_server.environments.workplace.analytics import Analytics
from resources_server.environments.workplace.calendar import Calendar
from resources_server.environments.workplace.company import Company
from resources_server.environments.workplace.customers import Customers
from resources_server.environments.workplace.directory import Directory
from resources_server.environments.workplace.mail import Mail
from resources_server.environments.workplace.projects import Projects
from resources_server.environments.workplace.records import Records
from resources_server.environments.workplace.scoring import Changes
from resources_server.environments.workplace.task import TruthCall, WorkplaceTask


class TruthRefused(ValueError):
    """A row's ground truth cannot be carried out in this company, so that nothing an agent does could be judged by it."""


class Workplace(Environment[WorkplaceTask]):
    """One rollout's office. The five tables are shared by all sessions; the fields hold what this one changed."""

    class Options(BaseModel):
        """What config may set."""

        model_config = ConfigDict(extra="forbid")

        clock: str = company.DEFAULT_CLOCK
        """The time at which every session takes place, YYYY-MM-DD HH:MM:SS: new mail is sent then. WorkBench's is 2023-11-30 00:00:00."""
        data_dir: Path = company.OWN_TABLES
        """Five CSV files with WorkBench's columns, and `email_addresses.csv` where there is one; our own company by default."""
        known_assignees: bool = False
        """Refuse to assign a task to an address that is in neither the directory nor the task table, as WorkBench does. Rows that were
        written for another company assign to its people, so they need this off."""

        @model_validator(mode="after")
        def _readable(self) -> Self:
            """Read the company now, so that a wrong file is a mistake in the config, told in one line before a server is up."""
            self.company()
            return self

        def company(self) -> Company:
            """The company that these options mean, read once per process."""
            return company.load(self.data_dir, self.clock, self.known_assignees)

    blocking: ClassVar[bool] = False  # everything is in memory: a tool takes well under a millisecond

    email: Mail = Field(default_factory=Mail)
    calendar: Calendar = Field(default_factory=Calendar)
    analytics: Analytics = Field(default_factory=Analytics)
    project_management: Projects = Field(default_factory=Projects)
    customer_relationship_manager: Customers = Field(default_factory=Customers)
    company_directory: Directory = Field(
        default_factory=Directory
    )  # last: very small models call whatever stands first

    @classmethod
    def load(cls, options: Any) -> Company:
        """The company of the options, read once per process."""
        found: Company = options.company()
        return found

    def model_post_init(self, context: Any, /) -> None:
        """Show the company to every toolkit of a new or restored world."""
        self.company_directory.open(self.shared)
        for kit in self._records():
            kit.open(self.shared)

    def seed(self) -> None:
        """Nothing has to be put in place, but the row is tried, before any model is paid for.

        Raises:
            TruthRefused: a call of the ground truth cannot be made in this company.
            UsageError: `toolkits` names what there is not.
        """
        self.offered()
        self.right()

    def offered(self) -> list[str]:
        """The tools of the row's toolkits."""
        return self.task.offered(type(self).tools)

    def verify(self, response: Response) -> Verdict:
        """1 if the net change is that of the ground truth or of one of the row's alternatives, else 0."""
        made = self.changes()
        right = scoring.nearest(made, self.right())
        tool_errors = sum(call.status == "tool_error" for call in self.calls)
        metrics = {
            "side_effects": (made - right).total(),
            "missing": (right - made).total(),
            "undone": sum(kit.undone() for kit in self._records()),
            "invalid_calls": max(tool_errors, scoring.refused(response.output)),
            "steps": scoring.turns(response.output),
        }
        return Verdict(reward=float(made == right), metrics=metrics, reason=scoring.reason(made, right))

    def solution(self) -> list[Call]:
        """The calls of the ground truth."""
        return [Call(call.name, dict(call.arguments)) for call in self.task.ground_truth]

    def state(self) -> dict[str, Any]:
        """What this session changed; nothing for toolkits that it left alone."""
        fields = super().state()
        changed = {name: {key: value for key, value in kit.items() if value} for name, kit in fields.items()}
        return {name: kit for name, kit in changed.items() if kit}

    def changes(self) -> Changes:
        """The net change of the whole office."""
        return sum((kit.changes() for kit in self._records()), Counter())

    def right(self) -> list[Changes]:
        """The net changes that are worth 1: that of the ground truth, then those of the alternatives."""
        return [self._fresh().played(calls).changes() for calls in (self.task.ground_truth, *self.task.accept)]

    def played(self, calls: Iterable[TruthCall]) -> Self:
        """This world after these calls; reads are left out, since they change nothing.

        Raises:
            TruthRefused: a call is refused; neither message nor cause quotes its arguments.
        """
        for place, call in enumerate(calls):
            tool = type(self).tools.get(call.name)
            if tool is None:
                raise TruthRefused(f"ground truth, call {place}: there is no tool {call.name!r}")
            if tool.read_only:
                continue
            try:
                checked = tool.arguments.model_validate(call.arguments)
                tool.bind(self)(**checked.model_dump(by_alias=True))
            except (ValidationError, ToolError):
                raise TruthRefused(f"ground truth, call {place} ({call.name}) cannot be made in this company") from None
        return self

    def _fresh(self) -> Self:
        """The same task in an untouched office."""
        return type(self)(task=self.task)

    def _records(self) -> tuple[Records, ...]:
        return (
            self.email,
            self.calendar,
            self.analytics,
            self.project_management,
            self.customer_relationship_manager,
        )
