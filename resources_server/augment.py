"""Environments made harder on purpose: tools renamed, missing, failing, slow or described otherwise; a disturbed first state.

`augmented` derives a class from an environment's; without `augment` in the config nothing here is imported. What befalls a task follows
from its fields and the seed alone, so that all repeats of a task, and a replayed session, meet the same. The verdict sees the calls
under the tools' own names. Games keep their moves; only their state can be disturbed.
"""

import asyncio
import dataclasses
import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, cast

from pydantic import PrivateAttr

from resources_server.environment import Call, Environment
from resources_server.settings import AugmentSettings
from resources_server.tools import NAME, Tool, ToolError
from wire.responses import Response
from wire.rollout import AcceptedCall

ALIASES = ("do_{}", "{}_tool", "{}_v2")
WORDINGS = ("Use this tool for the following. {}", "{} That is all that this tool is for.", "What it does: {}")
BUSY = "the service is busy and did nothing; the same call made again will go through"
EVERY = 4  # of a failing tool: the first call fails, and each fourth after it


def augmented(environment: type[Environment[Any]], settings: AugmentSettings) -> type[Environment[Any]]:
    """The class with the troubles that the settings ask for; bind its options first."""

    def fill(body: dict[str, Any]) -> None:
        body |= {name: getattr(environment, name) for name in ("__module__", "__qualname__", "__doc__")}
        body |= {"_tries": PrivateAttr(default_factory=dict), "_told": PrivateAttr(default_factory=dict)}
        if environment.solution is not Environment.solution:
            body["solution"] = _solution

    made = cast(
        "type[Environment[Any]]", types.new_class(environment.__name__, (_Augmented, environment), exec_body=fill)
    )
    made._augment = settings  # type: ignore[attr-defined]  # in the body pydantic would take it for an instance's
    made.options = environment.options
    made._served = _with_aliases(environment.tools, settings)  # type: ignore[attr-defined]
    return made


class _Augmented:
    """What an augmented class does differently; stands before the environment's own class."""

    _augment: AugmentSettings
    _tries: dict[str, int]
    _told: dict[str, Any]

    @classmethod
    def served(cls) -> dict[str, Tool]:
        """All tools under all names that they may get; `tools` stays what the author's own code knows."""
        return cast("dict[str, Tool]", cls._served)  # type: ignore[attr-defined]

    def seed(self) -> Any:
        observation = super().seed()  # type: ignore[misc]
        return _after(observation, self) if inspect.isawaitable(observation) else _disturbed(self, observation)

    def verify(self, response: Response) -> Any:
        names = {alias: name for name, alias in _renamed(self).items()}
        output = [
            {**item, "name": names[item["name"]]} if item.get("name") in names else item for item in response.output
        ]
        return super().verify(response.model_copy(update={"output": output}))  # type: ignore[misc]

    def accepted_calls(self) -> list[AcceptedCall]:
        names = {alias: name for name, alias in _renamed(self).items()}
        calls: Iterable[AcceptedCall] = super().accepted_calls()  # type: ignore[misc]
        return [call.model_copy(update={"name": names.get(call.name, call.name)}) for call in calls]

    def retold(self, offered: Sequence[str]) -> dict[str, Tool]:
        """The tools of a session as the model is shown them, by the names that it is to call them by."""
        missing, renamed, served = _missing(self), _renamed(self), self.served()
        names = {name: renamed.get(name, name) for name in offered if name not in missing}
        return {alias: _worded(self, name, served[alias]) for name, alias in names.items()}

    def augmentation(self) -> dict[str, Any]:
        """What befell this task, for its line; empty where nothing did."""
        may = set(cast("Environment[Any]", self).offered())
        offered = [name for name in _world(self).tools if name in may]
        found = {
            "renamed": {name: alias for name, alias in _renamed(self).items() if name in offered},
            "missing": sorted(_missing(self)),
            **{
                kind: [name for name in offered if _chosen(self, kind, name)] for kind in ("failing", "slow", "wording")
            },
            **self._told,
        }
        return {key: value for key, value in found.items() if value}


@dataclasses.dataclass(frozen=True)
class _Troubled(Tool):
    """A tool whose calls may fail or wait, as its task has it."""

    own_name: str = ""

    def bind(self, world: Any) -> Callable[..., Any]:
        method = super().bind(world)
        if _chosen(world, "failing", self.own_name):
            method = _failing(world, self.own_name, method)
        if self.is_async and _augment(world).slow:
            wait_s = _augment(world).slow_s if _chosen(world, "slow", self.own_name) else 0.0
            method = _slow(method, wait_s, in_thread=type(world).blocking)
        return method


def _with_aliases(tools: Mapping[str, Tool], settings: AugmentSettings) -> dict[str, Tool]:
    """Which of them a session knows is decided when it is seeded."""
    found: dict[str, Tool] = {}
    for name, tool in tools.items():
        fields = {each.name: getattr(tool, each.name) for each in dataclasses.fields(Tool)}
        fields["is_async"] = tool.is_async or settings.slow > 0  # to wait without holding the loop
        for alias in (name, *(_aliases(name, tools) if settings.renamed else ())):
            found[alias] = _Troubled(**{**fields, "name": alias}, own_name=name)
    return found


def _aliases(name: str, tools: Mapping[str, Tool]) -> list[str]:
    made = [pattern.format(name) for pattern in ALIASES]
    return [alias for alias in made if alias not in tools and NAME.match(alias)]


def _solution(self: Any) -> list[Call] | str:
    """The environment's own under the session's names, with a call that fails made again."""
    found: list[Call] | str = super(_Augmented, self).solution()
    if isinstance(found, str):
        return found
    renamed, made, tries = _renamed(self), list[Call](), dict[str, int]()
    for call in found:
        tries[call.name] = tries.get(call.name, -1) + 1
        if _chosen(self, "failing", call.name) and tries[call.name] % EVERY == 0:
            made.append(dataclasses.replace(call, name=renamed.get(call.name, call.name)))
            tries[call.name] += 1
        made.append(dataclasses.replace(call, name=renamed.get(call.name, call.name)))
    return made


def _disturbed(world: Any, observation: Any) -> Any:
    """Change the first state, where the class has a hook for it and the dice say so."""
    for kind, hook in (("disturbed", "disturb"), ("absent", "withhold")):
        if getattr(type(world), hook) is not getattr(Environment, hook) and _chosen(world, kind, ""):
            world._told[kind] = getattr(world, hook)(_dice(world, hook)) or True
    return observation


async def _after(coroutine: Any, world: Any) -> Any:
    return _disturbed(world, await coroutine)


def _failing(world: Any, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    def call(**arguments: Any) -> Any:
        tried = world._tries[name] = world._tries.get(name, -1) + 1
        if tried % EVERY == 0:
            raise ToolError(BUSY)
        return method(**arguments)

    return call


def _slow(method: Callable[..., Any], wait_s: float, *, in_thread: bool) -> Callable[..., Any]:
    async def call(**arguments: Any) -> Any:
        await asyncio.sleep(wait_s)
        result = await asyncio.to_thread(method, **arguments) if in_thread else method(**arguments)
        return await result if inspect.isawaitable(result) else result

    return call


def _renamed(world: Any) -> dict[str, str]:
    """Own name -> the one it has in this task, for tools that have another."""
    tools, found = _world(world).tools, dict[str, str]()
    for name in tools:
        if _chosen(world, "renamed", name) and (aliases := _aliases(name, tools)):
            found[name] = _dice(world, f"alias {name}").choice(aliases)
    return found


def _missing(world: Any) -> set[str]:
    """Tools that are away: only such as the solution does without, so that the task stays solvable."""
    if not _augment(world).missing or type(world).solution is Environment.solution:
        return set()
    solution = super(_Augmented, world).solution()
    needed = None if isinstance(solution, str) else {call.name for call in solution}
    return {
        name
        for name in _world(world).tools
        if needed is not None and name not in needed and _chosen(world, "missing", name)
    }


def _worded(world: Any, name: str, tool: Tool) -> Tool:
    if not _chosen(world, "wording", name):
        return tool
    return dataclasses.replace(
        tool, description=_dice(world, f"wording {name}").choice(WORDINGS).format(tool.description)
    )


def _chosen(world: Any, kind: str, name: str) -> bool:
    share: float = getattr(_augment(world), kind)
    return share > 0 and _dice(world, f"{kind} {name}").random() < share


def _dice(world: Any, use: str) -> Random:
    return Random(f"{_augment(world).seed} {use} {world.task.model_dump_json()}")


def _augment(world: Any) -> AugmentSettings:
    return cast("AugmentSettings", type(world)._augment)


def _world(world: Any) -> type[Environment[Any]]:
    return cast("type[Environment[Any]]", type(world))
