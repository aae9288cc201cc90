"""What a row of this environment says: the calls that make its ground truth, and the tools that it offers."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from resources_server import Task
from wire import strict_json
from wire.errors import UsageError

KITS = {
    "company_directory": "company_directory",
    "email": "email",
    "calendar": "calendar",
    "analytics": "analytics",
    "project_management": "project_management",
    "customer_relationship_manager": "customer_relationship_manager",
    "crm": "customer_relationship_manager",
}
"""How a row may name a toolkit -> the toolkit's field. `crm` is WorkBench's short name."""


class TruthCall(BaseModel):
    """One call of a ground truth."""

    model_config = ConfigDict(frozen=True)

    name: str
    arguments: dict[str, Any]

    @field_validator("arguments", mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        """NeMo Gym's rows carry the arguments as JSON text."""
        return strict_json.loads(value) if isinstance(value, str | bytes) else value


class WorkplaceTask(Task):
    """The fields of a row. NeMo Gym's may stand at the top level or under `verifier_metadata`."""

    ground_truth: list[TruthCall]
    """Calls whose net change is the right one; `[]`: nothing is to be changed."""
    accept: list[list[TruthCall]] = []
    """Other calls whose net change is just as right."""
    toolkits: list[str] = []
    """What the session offers: toolkits, the directory always along with them, or single tools by their names; `[]`: everything."""

    @model_validator(mode="before")
    @classmethod
    def _lift(cls, row: Any) -> Any:
        nested = row.get("verifier_metadata") if isinstance(row, dict) else None
        if not isinstance(nested, dict):
            return row
        return {**{name: nested[name] for name in ("ground_truth", "accept", "toolkits") if name in nested}, **row}

    @field_validator("toolkits")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        """A misspelt toolkit is told when the rows are read; a tool that its toolkit lacks, when the row is seeded."""
        for name in value:
            if name not in KITS and not name.startswith(tuple(f"{kit}_" for kit in KITS)):
                raise ValueError(f"no toolkit is called {name!r} (have: {', '.join(KITS)})")
        return value

    def offered(self, tools: Iterable[str]) -> list[str]:
        """Those of the tools that the row's `toolkits` name.

        Raises:
            UsageError: there is no such tool.
        """
        names = list(tools)
        unknown = [each for each in self.toolkits if each not in KITS and each not in names]
        if unknown:
            raise UsageError(f"field 'toolkits': there is no tool {unknown[0]!r}")
        kits = {KITS[each] for each in self.toolkits if each in KITS}
        prefixes = tuple(f"{kit}_" for kit in (*kits, "company_directory")) if kits else ()
        return [name for name in names if not self.toolkits or name in self.toolkits or name.startswith(prefixes)]
