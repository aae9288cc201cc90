"""The contract of an environment: one class per world, one instance per rollout."""

import types
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from resources_server.tools import Tool, tools_of
from wire.config import booleans_for_numbers
from wire.errors import UsageError
from wire.plugins import nearest
from wire.responses import Response
from wire.rollout import AcceptedCall, Verdict


class Task(BaseModel):
    """The fields that a data set row adds for its environment, ground truth included. Other fields of the row are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


TaskT = TypeVar("TaskT", bound=Task)


@dataclass(frozen=True)
class Call:
    """One tool call of a reference solution."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    together: bool = False
    """In the same turn as the call before it; else in a turn of its own."""


class NoOptions(BaseModel):
    """The options of an environment that has none."""


class _Options:
    """`cls.options` until config says otherwise: all defaults."""

    def __get__(self, world: object, owner: type["Environment[Any]"]) -> Any:
        owner.options = owner.Options()
        return owner.options


class _Shared:
    """`cls.shared`: what `load` returns, made at first use and kept by the class."""

    def __get__(self, world: object, owner: type["Environment[Any]"]) -> Any:
        owner.shared = owner.load(owner.options)
        return owner.shared


class Environment(BaseModel, Generic[TaskT]):
    """The world of one rollout.

    Fields are the world's state: a store may save them after each tool call and carry them to another process, and they are written
    into the rollout's line, so that `verify` can be run again later. Whatever is not a field is lost on the way. Methods marked
    `@tool` are what the model may do; nothing else can be reached by it. `task` holds the data set row's fields: tools must not
    show its ground truth.

    A class may also define:
        version: Raise it when the same episode would be scored differently.
        Options: A pydantic model of what config may set under `options`; read as `self.options`.
        load: Makes what all sessions share, once per process; read as `self.shared`.
        blocking: False promises that every sync method takes microseconds, and runs them on the event loop instead of in a thread.
    """

    model_config = ConfigDict(validate_assignment=True, extra="forbid")

    version: ClassVar[str] = "1"
    Options: ClassVar[type[BaseModel]] = NoOptions
    options: ClassVar[Any] = _Options()
    shared: ClassVar[Any] = _Shared()

    blocking: ClassVar[bool] = True
    """Sync tools, seed and verify may take long: they run in threads. False: they never block, and run where they are called."""
    verify_isolated: ClassVar[bool] = False
    """verify may never end (a regular expression, a solver): it runs in a process of its own that can be killed."""
    stateless: ClassVar[bool | None] = None
    """The verdict needs the row and the response only, so that `/verify` may be asked without a session. None: it is for a class
    without tools and without fields of its own."""
    score_on_timeout: ClassVar[bool] = False
    """When the rollout's time is up the world is scored as it stands (outcome `deadline`) rather than failed."""

    waived: ClassVar[dict[str, str]] = {}
    """Probes of `trivium check` that mean nothing for this world (`spray`, or one kind of trial: `form.case`) -> why, in a sentence."""

    tools: ClassVar[dict[str, Tool]] = {}
    """By name, in the order in which they are written. Filled in by the class itself."""

    task: TaskT

    _calls: list[AcceptedCall] = PrivateAttr(default_factory=list)
    _history: Callable[[], list[AcceptedCall]] | None = PrivateAttr(None)  # makes them when they are wanted
    _calls_were_read: bool = PrivateAttr(False)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        cls.tools = tools_of(cls)
        cls._refuse_taken_names()
        own = vars(cls)
        if "options" not in own:
            cls.options = _Options()
        if "shared" not in own:
            cls.shared = _Shared()

    @classmethod
    def _refuse_taken_names(cls) -> None:
        taken = {name for name in vars(Environment) if not name.startswith("_")}
        for name in sorted(cls.model_fields.keys() & taken):
            raise TypeError(
                f"environment {cls.__name__}: field {name!r} has the name of something that every environment has; rename it, "
                f"or write {name}: ClassVar[…] if it is what you mean to set"
            )
        taken |= {name for name in dir(BaseModel) if name.startswith("model_")}
        for name in sorted(cls.tools.keys() & taken):
            raise TypeError(f"tool {cls.__name__}.{name}: every environment has a method of that name; rename the tool")

    def seed(self) -> Any:
        """Put the world in its first state. Called once, before the first tool call; may be async.

        Returns:
            What the model is shown beside the row's own prompt (text or JSON), or None.
        """

    def verify(self, response: Response) -> float | Verdict | Coroutine[Any, Any, float | Verdict]:
        """Score the finished rollout. A plain number is a verdict with no metrics. May be async.

        The answer must be the same when asked again: it is also asked offline, on the stored state.
        """
        raise NotImplementedError(f"{type(self).__name__} has no verify()")

    def solution(self) -> list[Call] | str:
        """A way to the highest reward, so that a machine can check that the task is solvable: tool calls, or the answer's text."""
        raise NotImplementedError(f"{type(self).__name__} has no solution()")

    def offered(self) -> Collection[str]:
        """Names of the tools that this task may use; by default all of the class. Asked once, after `seed`."""
        return type(self).tools

    def disturb(self, dice: Random) -> str | None:
        """For `augment.disturbed`: change the first state so that the task can still be solved. Called after `seed`.

        Returns:
            What was changed, for the line.
        """
        return None

    def withhold(self, dice: Random) -> str | None:
        """For `augment.absent`: take away a setting that the task needs and that tools can put back. As `disturb`."""
        return None

    def close(self) -> Any:
        """Let go of what is not state (a sandbox, a connection). Called once, when the session ends; may be async."""

    @classmethod
    def load(cls, options: Any) -> Any:
        """What all sessions share, made once per process at start and then only read; it is not state. None by default."""
        return None

    @classmethod
    def templates(cls) -> Mapping[str, Callable[[Random], dict[str, Any] | None]]:
        """For `trivium tasks`: name -> what draws a row of that kind from dice, or gives None where the draw makes no good task."""
        return {}

    @classmethod
    def served(cls) -> Mapping[str, Tool]:
        """The tools that have a route; for an augmented class more than `tools`."""
        return cls.tools

    @classmethod
    def needs_no_session(cls) -> bool:
        """Whether `/verify` may be asked without a session; see `stateless`."""
        return cls.stateless if cls.stateless is not None else not cls.tools and cls.model_fields.keys() == {"task"}

    @property
    def calls(self) -> list[AcceptedCall]:
        """For `verify`: the tool calls that were let through, in the order in which they ran; empty before.

        They are no state. A line keeps them as `accepted_calls` where `verify` looked at them, and `restored` takes them back.
        """
        self._calls_were_read = True
        return self.accepted_calls()

    def accepted_calls(self) -> list[AcceptedCall]:
        """The same, for whoever records them."""
        if self._history is not None:
            self._calls, self._history = self._history(), None
        return self._calls

    @property
    def calls_were_read(self) -> bool:
        """Whether the verdict looked at `calls`, so that judging it again needs them."""
        return self._calls_were_read

    def state(self) -> dict[str, Any]:
        """Every field but the task, as plain JSON values: what a rollout's line keeps under `state`."""
        return self.model_dump(mode="json", exclude={"task"})

    @classmethod
    def bound(cls, options: Mapping[str, Any] | None = None) -> type[Self]:
        """This class with the options that config gives; the original keeps its own.

        Raises:
            UsageError: An option is unknown, missing or of the wrong type.
        """
        namespace = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
        bound = types.new_class(cls.__name__, (cls,), exec_body=lambda body: body.update(namespace))
        assert issubclass(bound, cls)
        bound.options = cls._checked_options(options or {})
        return bound

    @classmethod
    def _checked_options(cls, options: Mapping[str, Any]) -> BaseModel:
        known = cls.Options.model_fields
        strange = [name for name in options if name not in known and cls.Options.model_config.get("extra") != "allow"]
        wrong = {
            f"options.{name}": f"no option {str(name)!r}{nearest(str(name), sorted(known)) if known else ' (it has none)'}"
            for name in strange
        }
        given = {name: value for name, value in options.items() if name not in strange}
        try:
            read = cls.Options.model_validate(given)
            problems = [f"options.{each}" for each in booleans_for_numbers(read, given)]
        except ValidationError as error:
            problems = [f"options.{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        if wrong or problems:
            told = [f"has {', '.join(wrong.values())}"] if wrong else []
            place = next(iter(wrong), None) or problems[0].partition(":")[0].partition(" ")[0]
            raise UsageError(f"environment {cls.__name__} {'; '.join([*told, *problems])}", param=place)
        return read

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Self:
        """A world for this data set row, not yet seeded.

        Raises:
            UsageError: The row lacks a field of the task, or has one of the wrong type; values are not quoted.
        """
        return cls.restored(row, {})

    @classmethod
    def restored(cls, row: Mapping[str, Any], state: Mapping[str, Any], calls: Sequence[Any] = ()) -> Self:
        """The world as a line keeps it: its row, its `state`, and its `accepted_calls` where `verify` looks at `self.calls`.

        Raises:
            UsageError: Row or state does not fit the class; values are not quoted.
        """
        try:
            world = cls.model_validate({"task": row, **state})
        except ValidationError as error:
            raise UsageError(_row_problem(cls, error)) from None
        world._calls = [AcceptedCall.model_validate(call) for call in calls]
        return world


def _row_problem(cls: type[Environment[Any]], error: ValidationError) -> str:
    """The first thing wrong with a row, without its values: they may be ground truth."""
    first = error.errors(include_input=False, include_url=False)[0]
    path = [str(part) for part in first["loc"]]
    name = ".".join(path[1:] if path[:1] == ["task"] else path)
    task = cls.model_fields["task"].annotation
    has = ", ".join(task.model_fields) if isinstance(task, type) and issubclass(task, Task) else ""
    if first["type"] == "missing":
        return f"field {name!r} is missing (a {cls.__name__} row has {has})"
    return f"field {name!r}: {first['msg']}"
