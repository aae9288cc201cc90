"""Rollouts files as groups of samples: one pass for the rewards of each group, one for the lines."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollouts import toolsets
from rollouts.export import shape
from rollouts.journal import beside
from rollouts.lines import refuse_foreign
from rollouts.statistics import cut_off
from wire import jsonl
from wire.figures import environment_of, task_of
from wire.statistics import advantages, group_figures

Line = dict[str, Any]
GroupKey = tuple[str, str, Any]  # run, environment, task
SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "seed",
)
"""What log-probabilities mean depends on these; they go with every sample that has any."""


FAULTY = "faulty"
"""The reason that is tallied for a line that cannot be read."""


class Fault(str):
    """What cannot be read in a line, and what would be right; the reason for leaving that line out."""


class NotExported(Exception):
    """An episode has no record in a format; the message is the reason that is tallied."""


@dataclass(frozen=True)
class Selection:
    """Which lines become samples."""

    min_valid: int = 2
    """Groups with fewer rewards are left out: there is nothing to compare with. 1 keeps every line."""
    drop_equal: bool = False
    """Leave out groups whose rewards are all equal."""
    drop_truncated: bool = False
    """Leave out episodes that were cut off for their length."""
    any_fidelity: bool = False
    """Also token samples that are not `exact`: episodes whose history was rewritten or tokenised anew, in pieces."""
    best_of: bool = False
    """Only the best of each group, the earliest of equals."""
    min_reward: float | None = None
    """Rejection sampling: only rewards from this on."""
    min_gap: float = 1e-6
    """Preference pairs: reward of the better less that of the worse, at least."""
    normalise: bool = True
    """Divide advantages by the spread of the group."""
    counted: bool = False
    """Only members that the run's own group records count (`<stem>_groups.jsonl`); files without records are taken whole."""


@dataclass
class Group:
    """The repeats of one task."""

    rewards: dict[str, float] = field(default_factory=dict)
    """Place (`file:line`) to reward, of the members that have one."""
    size: int = 0
    """Members asked for, where a line says so; else those seen."""
    number: int = 0

    def standing(self, place: str, selection: Selection) -> dict[str, Any]:
        """What a sample says of its group, its own advantage included."""
        figures = group_figures(list(self.rewards.values()))
        found = dict(
            zip(self.rewards, advantages(list(self.rewards.values()), normalise=selection.normalise), strict=True)
        )
        return {
            "group_id": self.number,
            "group_size": max(self.size, len(self.rewards)),
            "n_valid": figures.n_valid,
            "zero_variance": figures.zero_variance,
            "group_mean": figures.mean,
            "group_std": figures.std,
            "advantage": found[place],
        }


@dataclass(frozen=True)
class Episode:
    """A line that was chosen, with its place in its group."""

    line: Line
    place: str
    """`file:line`."""
    standing: dict[str, Any]

    @property
    def identity(self) -> dict[str, Any]:
        """Which rollout this is."""
        kept = {name: self.line[name] for name in ("task_id", "task_index", "rollout_index") if name in self.line}
        return kept | {"environment": environment_of(self.line)}

    @property
    def sampling(self) -> dict[str, Any]:
        """The sampling parameters that were used, as far as the line says."""
        asked = {**(self.line.get("responses_create_params") or {}), **(self.line.get("response") or {})}
        return {name: asked[name] for name in SAMPLING if asked.get(name) is not None}


@dataclass
class Tally:
    """What became of every line: exported, or left out for a reason. The counts add up."""

    lines: int = 0
    exported: int = 0
    """Lines of which something was exported."""
    records: int = 0
    """Records written: a pair has two lines, a forked episode several segments."""
    left_out: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    """A sentence for each line that is left out as faulty: `file:line`, what, and what would be right."""

    def leave_out(self, place: str, reason: str) -> None:
        """Count one line, and name its place where it is at fault."""
        if isinstance(reason, Fault):
            self.faults.append(f"{place}: {reason}")
        self.left_out[FAULTY if isinstance(reason, Fault) else reason] += 1


def groups_of(paths: Iterable[Path], *, counted: bool = False) -> dict[GroupKey, Group]:
    """The rewards of every group. Lines without a reward, failed or masked, are no members; see `Selection.counted`.

    Raises:
        UsageError: a line is no JSON object; the message names `file:line`.
    """
    groups: dict[GroupKey, Group] = {}
    for place, line, reason in _lines(paths, counted=counted):
        if reason:
            continue
        group = groups.setdefault(key_of(line), Group(number=len(groups)))
        group.rewards[place] = float(line["reward"])
        group.size = max(group.size, line.get("group_size") or 0)
    return groups


def episodes(
    paths: Iterable[Path], groups: dict[GroupKey, Group], selection: Selection, tally: Tally, *, grouped: bool
) -> Iterator[Episode]:
    """The lines that are to be exported; the others are tallied with a reason.

    Args:
        paths: The same as for `groups`.
        groups: What `groups_of` found.
        selection: What to leave out.
        tally: Counts.
        grouped: The format compares members of a group, so that groups with too few are left out.
    """
    for place, line, unusable in _lines(paths, counted=selection.counted):
        tally.lines += 1
        reason = unusable or _not_chosen(line, place, groups[key_of(line)], selection, grouped=grouped)
        if reason:
            tally.leave_out(place, reason)
        else:
            yield Episode(line, place, groups[key_of(line)].standing(place, selection))


def unfit(line: Line) -> str | None:
    """Why a line is no sample, whatever is asked for."""
    if line.get("failure") or line.get("failure_kind"):
        return "failed"
    if line.get("mask_sample"):
        return "masked"
    reward = line.get("reward")
    if not isinstance(reward, int | float) or isinstance(reward, bool):
        return "no reward"
    return None if isinstance(line.get("response"), dict) else "no response"


def key_of(line: Line) -> GroupKey:
    """Members of one group share this. Runs are kept apart: their policies differ."""
    run = (line.get("provenance") or {}).get("run_id") or ""
    return str(run), environment_of(line), task_of(line)


def _not_chosen(line: Line, place: str, group: Group, selection: Selection, *, grouped: bool) -> str | None:
    checks: list[tuple[bool, str, Callable[[], bool]]] = [
        (
            grouped,
            f"group with fewer than {selection.min_valid} rewards",
            lambda: len(group.rewards) < selection.min_valid,
        ),
        (
            selection.drop_equal,
            "group with equal rewards",
            lambda: group_figures([*group.rewards.values()]).zero_variance,
        ),
        (selection.drop_truncated, "truncated", lambda: cut_off(line)),
        (selection.min_reward is not None, "reward too low", lambda: line["reward"] < (selection.min_reward or 0.0)),
        (selection.best_of, "not the best of its group", lambda: place != _best(group)),
    ]
    return next((reason for asked, reason, holds in checks if asked and holds()), None)


def _best(group: Group) -> str:
    return max(group.rewards, key=group.rewards.__getitem__)


def _lines(paths: Iterable[Path], *, counted: bool) -> Iterator[tuple[str, Line, str | None]]:
    """`file:line`, the line, and why it is no sample."""
    for path in paths:
        known, members = toolsets.read(path), _counted(path) if counted else {}
        for number, line in jsonl.read(path):
            refuse_foreign(f"{path}:{number}", line)
            whole = toolsets.give_back(line, known)
            yield f"{path}:{number}", whole, unfit(whole) or _misread(whole) or _uncounted(whole, members)


def _misread(line: Line) -> Fault | None:
    fault = shape.fault_of(line)
    return Fault(fault) if fault else None


def _uncounted(line: Line, members: dict[Any, set[int]]) -> str | None:
    place = line.get("rollout_index")
    return None if place in members.get(line.get("task_index"), {place}) else "not counted by its group's record"


def _counted(path: Path) -> dict[Any, set[int]]:
    """Task index to the members that count, as the collector recorded it when each group closed."""
    records = jsonl.read_whole(beside(path, "_groups.jsonl"))
    return {record.get("task_index"): set(record.get("counted") or ()) for _, record in records}
