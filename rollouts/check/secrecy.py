"""The probe for ground truth that the model is shown; what counts as a leak is said in `leaks`."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from rollouts import worlds
from rollouts.check import fuzz, leaks
from rollouts.check.card import Trial
from rollouts.check.case import SAME, Case
from rollouts.check.world import Move, Session, Shown
from wire.errors import Failed, UsageError

KNOWN = 6  # names out of the row, and out of another, that tools are asked for
CALLS = 250  # at most, each in a session of its own


async def leak(case: Case) -> AsyncIterator[Trial]:
    """Schemas, observations, outputs and error texts are searched for the fields that the verdict goes by."""
    known = [name for row in (case.row, *case.others[:1]) for name in leaks.names(row, KNOWN)]
    calls = fuzz.explorer(case.tools, case.dice("leak"), known)[:CALLS]
    seen = await _explored(case, case.row, calls)
    if seen is None:
        return
    for field in _fields(case):
        other = leaks.another(case.row[field], [row.get(field) for row in case.others])
        if other is None or not leaks.tellable(case.row[field]) or not await _is_truth(case, field, other):
            continue
        place = await _shows(case, field, other, calls, seen)
        where = seen[place] if place is not None else None
        detail = f"{case.place}: {where.where} shows the field {field!r}: {where.text[:120]}" if where else ""
        yield Trial(field, float(where is not None), detail)


def _fields(case: Case) -> list[str]:
    """The row's fields that the task has, but for what the prompt says anyway."""
    known = case.world.environment.model_fields["task"].annotation.model_fields
    return [name for name in known if name in case.row and not leaks.holds(case.prompt, case.row[name])]


async def _is_truth(case: Case, field: str, other: Any) -> bool:
    """Whether the verdict on the solved episode is another when only this field is."""
    line = {**case.gold_played.line, field: other}
    try:
        verdict = await asyncio.to_thread(worlds.judge, case.world.environment, line)
    except (Failed, UsageError):
        return True
    return abs(verdict.reward - case.full) > SAME


async def _shows(case: Case, field: str, other: Any, calls: list[Move], seen: list[Shown]) -> int | None:
    """Where the field is shown, if what is shown changes with it."""
    texts = [each.text for each in seen]
    found = [(one, two) for one, two in zip(leaks.values(case.row[field]), leaks.values(other), strict=False)]
    if not any(leaks.holds(text, one) for text in texts for one, _ in found):
        return None
    changed = await _explored(case, {**case.row, field: other}, calls)
    if changed is None:
        return None
    places = [leaks.leaked(texts, [each.text for each in changed], one, two) for one, two in found]
    return next((place for place in places if place is not None), None)


async def _explored(case: Case, row: Mapping[str, Any], calls: list[Move]) -> list[Shown] | None:
    """All that the calls show, each in a session of its own, so that they line up; None where the row is refused."""
    try:
        first: Session = await case.world.open(row)
        await first.close()
        shown = list(first.shown)
        for move in calls:
            session = await case.world.open(row)
            shown.append(await session.call(move))
            await session.close()
    except ValueError:
        return None
    return shown
