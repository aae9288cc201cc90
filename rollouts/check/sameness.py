"""Probes of what must be the same: the world of a row, the verdict, sessions beside each other, and an answer in other words."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

from rollouts import worlds
from rollouts.check import forms
from rollouts.check.card import Trial
from rollouts.check.case import SAME, Case
from rollouts.check.world import ACT, Attempt, Move, Played, Session, Shown
from wire import strict_json
from wire.errors import Failed, UsageError

REPEATS = 10  # of one episode, for luck to show


async def world(case: Case) -> AsyncIterator[Trial]:
    """The same row, seeded and played twice, looks the same."""
    first, second = await _seeded(case), await _seeded(case)
    for key in first.keys() | second.keys():
        same = first.get(key) == second.get(key)
        yield Trial(
            key,
            float(not same),
            f"{case.place}: seeded twice, {key} differs: {_cut(first.get(key))} / {_cut(second.get(key))}",
        )
    again = await case.world.play(case.row, case.gold)
    for one, other in zip(case.gold_played.outputs, again.outputs, strict=False):
        yield Trial(
            "outputs",
            float(one.text != other.text),
            f"{case.place}: {one.where} answers {_cut(one.text)}, then {_cut(other.text)}",
        )
    state, then = case.gold_played.line.get("state"), again.line.get("state")
    yield Trial(
        "state",
        float(state != then),
        f"{case.place}: the same calls lead to other states: {_cut(state)} / {_cut(then)}",
    )


async def luck(case: Case) -> AsyncIterator[Trial]:
    """The same episode is worth the same, however often; a verdict asked for again is the same."""
    for label, attempt in (("the solution", case.gold), ("nothing", Attempt(text=""))):
        played = [await case.world.play(case.row, attempt, twice=True) for _ in range(REPEATS)]
        rewards = [each.reward for each in played]
        detail = (
            f"{case.place}: {label}, {REPEATS} times, is worth {', '.join(sorted({_number(each) for each in rewards}))}"
        )
        yield Trial("repeats", float(len(set(rewards)) > 1), detail)
        again = all(each.verdict_again for each in played)
        yield Trial("asked again", float(not again), f"{case.place}: a verdict asked for again is another")
    for kind, times in (("stored line", 1), ("asked again", 2)):
        verdict = await _judged_offline(case, times)
        differs = not isinstance(verdict, float) or abs(verdict - case.full) > SAME
        detail = f"{case.place}: judged {times} times on its stored state the solution is worth {verdict}, live {case.full:g}"
        yield Trial(kind, float(differs), detail)


async def _judged_offline(case: Case, times: int) -> float | str:
    """The reward of the solved episode as its line keeps it, or why there is none; state outside the fields is lost on the way."""
    try:
        verdict = await asyncio.to_thread(worlds.judge, case.world.environment, case.gold_played.line, times)
    except (Failed, UsageError) as error:
        return str(error)
    return verdict.reward


async def isolation(case: Case) -> AsyncIterator[Trial]:
    """Two sessions at once: each is worth, and shows, what it does alone."""
    beside, idle = await _beside(case)
    yield _apart(case, "idle beside a solution", idle, case.nothing)
    for played in beside:
        yield _apart(case, "two solutions at once", played, case.full)
        for one, other in zip(case.gold_played.outputs, played.outputs, strict=False):
            detail = f"{case.place}: {one.where} answers {_cut(one.text)} alone and {_cut(other.text)} beside another session"
            yield Trial("outputs", float(one.text != other.text), detail)
    after = await case.world.play(case.row, Attempt(text=""))
    yield _apart(case, "nothing after others", after, case.nothing)


async def form(case: Case) -> AsyncIterator[Trial]:
    """The solution in other words, spelling and order is worth the same."""
    for kind, attempt in forms.changed(case.gold):
        played = await case.play(attempt, f"the solution ({kind})")
        if all(shown.status < 400 for shown in played.outputs):
            yield _kept(case, kind, attempt, played)
    floats = tuple(forms.whole_as_float(move) or move for move in case.gold.moves)
    if floats != case.gold.moves:
        played = await case.play(Attempt(floats, case.gold.text), "the solution (5.0 for 5)")
        if all(shown.status < 400 for shown in played.outputs):
            yield _kept(case, "5.0 for 5", case.gold, played)
    async for trial in _order(case):
        yield trial


async def _order(case: Case) -> AsyncIterator[Trial]:
    """Neighbouring calls that do not depend on each other, the other way round."""
    moves = case.gold.moves
    if case.game is not None:
        return
    for index in range(len(moves) - 1):
        swapped = (*moves[:index], moves[index + 1], moves[index], *moves[index + 2 :])
        played = await case.play(Attempt(swapped, case.gold.text), "the solution (other order)")
        back = [*range(index), index + 1, index, *range(index + 2, len(moves))]
        outputs = [played.outputs[place] for place in back if place < len(played.outputs)]
        if _independent(case.gold_played.outputs, outputs) or _alike(case.gold_played, played):
            names = f"{moves[index].name} and {moves[index + 1].name}"
            yield _kept(case, "order", case.gold, played, f"{names} the other way round")


def _independent(one: Sequence[Shown], other: Sequence[Shown]) -> bool:
    """Whether each call was answered alike in both orders; numbers that are given out in order may differ."""
    alike = ((a.status, _masked(a.text)) == (b.status, _masked(b.text)) for a, b in zip(one, other, strict=False))
    return len(one) == len(other) and all(each.status < 400 for each in one) and all(alike)


def _alike(one: Played, other: Played) -> bool:
    """Whether two episodes, with no call refused, left the same behind but for the order in which it lies there."""
    accepted = all(shown.status < 400 for each in (one, other) for shown in each.outputs)
    first, second = one.line.get("state"), other.line.get("state")
    return accepted and bool(first) and first != second and _unordered(first) == _unordered(second)


def _unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unordered(each) for key, each in value.items()}
    return sorted((_unordered(each) for each in value), key=repr) if isinstance(value, list) else value


def _masked(text: str) -> str:
    return re.sub(r"\d+", "0", text)


async def _seeded(case: Case) -> dict[str, Any]:
    session = await case.world.open(case.row)
    await session.close()
    return {key: value for key, value in session.seeded.items() if key != "session_id"}


async def _beside(case: Case) -> tuple[list[Played], Played]:
    """Two solutions call by call in turns, and a session that does nothing beside them."""
    sessions = [await case.world.open(case.row) for _ in range(3)]
    try:
        for move, session in itertools.product(case.gold.moves, sessions[:2]):
            await _called(session, move)
        idle = await sessions[2].verify("")
        return [await session.verify(case.gold.text) for session in sessions[:2]], idle
    finally:
        for session in sessions:
            await session.close()


async def _called(session: Session, move: Move) -> None:
    if not session.over or move.name != ACT:
        await session.call(move)


def _apart(case: Case, kind: str, played: Played, alone: float) -> Trial:
    touched = played.reward is None or abs(played.reward - alone) > SAME
    return Trial(kind, float(touched), f"{case.place}: {kind} is worth {_number(played.reward)}, alone {alone:g}")


def _kept(case: Case, kind: str, attempt: Attempt, played: Played, what: str = "") -> Trial:
    lost = played.reward is None or played.reward < case.full - SAME
    shown = what or _cut(attempt.text if attempt.text != "done" else [move.arguments for move in attempt.moves])
    return Trial(
        kind, float(lost), f"{case.place}: {shown} is worth {_number(played.reward)}, the solution {case.full:g}"
    )


def _number(reward: float | None) -> str:
    return "no verdict" if reward is None else f"{reward:g}"


def _cut(value: Any) -> str:
    text = value if isinstance(value, str) else strict_json.dumps(value).decode()
    return text if len(text) <= 120 else text[:120] + "…"
