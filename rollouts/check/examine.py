"""The whole examination: every probe on every row, made into a card."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollouts.check import rewards, sameness, secrecy
from rollouts.check.card import Card, Line, Trial, judged
from rollouts.check.case import Case, opened
from rollouts.check.world import NotHereError, World

AT_ONCE = 4  # rows
NOT_HERE = "not tried here"  # begins the note on a row that needs what the machine has not
CHANCE = 0.34  # of the full reward, on average over rows, that answers without merit may get: partial credit, and luck with options

Try = Callable[[Case], AsyncIterator[Trial]]


@dataclass(frozen=True)
class Probe:
    """Something that is tried on each row."""

    name: str
    explains: str  # in one line
    trials: Try
    tolerated: float = 0.0


PROBES = (
    Probe("solution", "the reference solution is accepted and nothing is worth more", rewards.solved),
    Probe("nothing", "doing nothing and empty answers are worth the least", rewards.idle, 0.25),
    Probe("noise", "random text and random valid calls are worth what nothing is", rewards.noise, CHANCE),
    Probe("spray", "naming every option, or the right one among wrong ones, earns nothing", rewards.spray, CHANCE),
    Probe("world", "the same row makes the same world, which answers the same calls alike", sameness.world),
    Probe(
        "luck",
        "the same episode is worth the same ten times over, and a verdict asked for again is the same",
        sameness.luck,
    ),
    Probe("isolation", "sessions at once or one after the other never touch", sameness.isolation),
    Probe("leak", "nothing that the model is shown holds the ground truth", secrecy.leak),
    Probe("mischief", "words for a judge, floods and odd characters gain nothing", rewards.mischief, CHANCE),
    Probe(
        "doors",
        "the server's own routes and path tricks are closed to the model; large arguments break nothing",
        rewards.doors,
    ),
    Probe(
        "form", "other spacing, case, Unicode, number forms and order of independent calls cost nothing", sameness.form
    ),
    Probe("sturdy", "nothing that the model does ends the rollout without a verdict", rewards.sturdy),
)
FIRST = ("luck", "isolation", "world")  # on an untouched server: what the others do may show in no session
AUGMENTED = ("solution", "nothing", "luck", "world", "isolation", "sturdy")  # made again where tasks are made harder
LAST = ("nothing", "solution", "sturdy")  # they look at what the others found


async def examine(world: World, rows: Sequence[Mapping[str, Any]], *, only: Sequence[str] = ()) -> Card:
    """The card of an environment.

    Args:
        world: Its server.
        rows: To try it on.
        only: Probes to make; all by default.
    """
    gate = asyncio.Semaphore(AT_ONCE)
    # One after the other: where sessions touch, the first row at least is measured alone.
    cases = [await _opened(world, rows, index) for index in range(len(rows))]
    found = await asyncio.gather(*(_row(case, gate, only) for case in cases))
    notes = sorted({each for each in found if isinstance(each, str)})
    tried = [each for each in found if isinstance(each, dict)]
    unsolved = [Trial("no solution", 1, each) for each in notes if not each.startswith(NOT_HERE)]
    waivers = dict(getattr(world.environment, "waived", {}))
    lines: list[Line] = []
    for probe in PROBES:
        trials = [trial for each in tried for trial in each.get(probe.name, ())]
        trials += unsolved if probe.name == "solution" else []
        lines.append(judged(probe.name, probe.explains, probe.tolerated, trials, waivers))
    name = world.environment.__name__
    kept = [each for each in notes if each.startswith(NOT_HERE)]
    return Card(name, world.environment.version, len(tried), lines, kept, world.augmented)


async def _opened(world: World, rows: Sequence[Mapping[str, Any]], index: int) -> Case | str:
    """The row's case, or why there is none."""
    row = dict(rows[index])
    place = str(row.get("task_id") or f"row {index + 1}")
    try:
        return await opened(world, row, place, [*rows[index + 1 :], *rows[:index]])
    except NotHereError as error:
        return f"{NOT_HERE}: {place}: {error}"


async def _row(case: Case | str, gate: asyncio.Semaphore, only: Sequence[str]) -> dict[str, list[Trial]] | str:
    """The trials of one row by probe, or why there are none."""
    if isinstance(case, str):
        return case
    async with gate:
        try:
            return await _tried(case, only)
        except NotHereError as error:
            return f"{NOT_HERE}: {case.place}: {error}"


async def _tried(case: Case, only: Sequence[str]) -> dict[str, list[Trial]]:
    """A server that stops answering ends the examination of a row, and is one of its faults."""
    found: dict[str, list[Trial]] = {}
    try:
        for probe in _in_order(only):
            found[probe.name] = [trial async for trial in probe.trials(case)]
    except ValueError as error:
        case.failures["the next session"] = str(error)
        found["sturdy"] = [trial async for trial in rewards.sturdy(case)]
    return found


def _in_order(only: Sequence[str]) -> list[Probe]:
    chosen = [probe for probe in PROBES if not only or probe.name in only]
    return sorted(
        chosen, key=lambda probe: (probe.name in LAST and 1 + LAST.index(probe.name)) or -(probe.name in FIRST)
    )
