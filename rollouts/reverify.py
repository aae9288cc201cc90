"""Verdicts again, from stored lines: what a changed verifier would have said, without servers or models."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollouts import worlds
from rollouts.diff import settings_of
from wire import jsonl
from wire.errors import Failed, UsageError
from wire.rollout import OUTCOMES
from wire.statistics import Running

CHANGED_NAMED = 10  # changes shown one by one
SAME = 1e-9  # rewards closer than this are the same

Line = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """A line whose verdict is another one now."""

    place: str
    """`file:line`."""
    before: float | None
    """None: it had no verdict."""
    after: float | None
    """None: it has none now; `reason` says why."""
    reason: str | None


@dataclass
class Outcome:
    """What judging again came to, for one environment."""

    before: Running = field(default_factory=Running)
    after: Running = field(default_factory=Running)
    same: int = 0
    higher: int = 0
    lower: int = 0
    gained: int = 0
    """Had no verdict, has one now."""
    lost: Counter[str] = field(default_factory=Counter)
    """Has none now, by failure kind."""
    not_judged: Counter[str] = field(default_factory=Counter)
    """Lines that cannot be judged, by reason."""
    changes: list[Change] = field(default_factory=list)

    def add(self, change: Change, kind: str | None) -> None:
        """Count one judged line."""
        if change.before is not None:
            self.before.add(change.before)
        if change.after is not None:
            self.after.add(change.after)
        if change.after is None:
            self.lost[kind or "other"] += 1
        elif change.before is None:
            self.gained += 1
        elif abs(change.after - change.before) <= SAME:
            self.same += 1
            return
        else:
            self.higher += change.after > change.before
            self.lower += change.after < change.before
        if len(self.changes) < CHANGED_NAMED:
            self.changes.append(change)


def reverify(
    paths: Iterable[Path],
    *,
    environment: str | None = None,
    options: Mapping[str, Any] | None = None,
    write: Callable[[Line], Any] | None = None,
) -> dict[str, Outcome]:
    """Judge every line that holds an episode; figures by environment.

    Args:
        paths: Rollouts or failures files.
        environment: The class to judge with, by name or dotted path; by default each line's own `environment_ref.name`, as the run's record
            beside the lines spells it.
        options: Of the environment.
        write: Gets each line with its new verdict, or with its failure.

    Raises:
        UsageError: a file cannot be read, a line is broken, or an environment does not exist.
    """
    classes: dict[str, Any] = {}
    outcomes: dict[str, Outcome] = {}
    for path in paths:
        recorded = settings_of(path.with_name(path.name.replace("_failures.jsonl", ".jsonl"))).get("environments", {})
        for number, line in jsonl.read(path):
            name = environment or (line.get("environment_ref") or {}).get("name")
            outcome = outcomes.setdefault(str(name), Outcome())
            reason = _unfit(line, name)
            if reason:
                outcome.not_judged[reason] += 1
                continue
            if name not in classes:
                classes[str(name)] = _class(str(name), options, {} if environment else recorded)
            judged, kind = _judged(classes[str(name)], line, f"{path}:{number}")
            outcome.add(
                Change(f"{path}:{number}", line.get("reward"), judged["reward"], judged.get("failure_reason")), kind
            )
            if write is not None:
                write(judged)
    return outcomes


def _class(name: str, options: Mapping[str, Any] | None, recorded: Mapping[str, Any]) -> Any:
    """The environment of that name, or the one that the run's record has under it, with the options it was played with."""
    known = next(
        (each for each in recorded.values() if str(each.get("environment", "")).rpartition(":")[2] == name), None
    )
    if known is None:
        return worlds.environment(name, options)
    return worlds.environment(str(known["environment"]), options if options is not None else known.get("options"))


def _unfit(line: Line, name: Any) -> str | None:
    if not name:
        return "the line names no environment (give --environment)"
    if line.get("response") is None:
        return "nothing was played"
    if line.get("failure") and line["failure"].get("stage") != "verify":
        return "the episode broke off before the verdict"
    return "its state was not kept" if line.get("failure") and "state" not in line else None


def _outcome(line: Line) -> str:
    """How the episode ended; a line that failed at its verdict does not say, its last item does."""
    if line.get("outcome"):
        return str(line["outcome"])
    reason = (line["response"].get("incomplete_details") or {}).get("reason")
    if reason in OUTCOMES:
        return str(reason)
    last = (line["response"].get("output") or [{}])[-1]
    return "max_steps" if last.get("type") in {"function_call", "function_call_output"} else "completed"


def _judged(world_class: Any, line: Line, place: str) -> tuple[Line, str | None]:
    provenance = {**(line.get("provenance") or {}), "reverified": True}
    reference = {**(line.get("environment_ref") or {}), "version": world_class.version}
    kept = {key: value for key, value in line.items() if key not in {"failure_kind", "failure_reason", "reason"}}
    try:
        verdict = worlds.judge(world_class, line)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error
    except Failed as error:
        failed = {
            "reward": None,
            "mask_sample": True,
            "failure": error.failure.model_dump(),
            "failure_kind": error.kind,
            "failure_reason": str(error),
        }
        return {**kept, **failed, "environment_ref": reference, "provenance": provenance}, error.kind
    told = verdict.model_dump(exclude_none=True)
    fine = {"failure": None, "mask_sample": False, "outcome": _outcome(line)}
    return {**kept, **told, **fine, "environment_ref": reference, "provenance": provenance}, None
