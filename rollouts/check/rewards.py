"""Probes of what is worth what: the solution most, and nothing, noise, sprays and mischief the least."""

import itertools
from collections.abc import AsyncIterator

from rollouts.check import fuzz, texts
from rollouts.check.card import Trial
from rollouts.check.case import SAME, Case
from rollouts.check.world import ACT, Attempt, Move, Shown, said

NOISE = 3  # random answers of each kind for a row
CALLS = 8  # in one random episode
WRONG_CALLS = 20  # around the right one, in a spray of calls
SPRAYED = 8  # wrong calls that must have been let through before a reward counts as sprayed
ROUTES = ("verify", "close_session", "seed_session", "solution", "reset", "close", "aggregate_metrics")
TRICKS = ("/%2e%2e/verify", "/tools/../verify", "//verify", "/verify/", "/verify%00", "/mcp/../solution")


async def solved(case: Case) -> AsyncIterator[Trial]:
    """Comes last: it looks at what everything else was worth."""
    outputs = case.gold_played.outputs
    for shown, after in itertools.zip_longest(outputs, outputs[1:]):
        again = case.world.augmented and after is not None and after.where == shown.where  # the tool fails now and then
        detail = f"{case.place}: {shown.where} refused a call of the solution: {shown.text[:200]}"
        yield Trial("refused call", float(shown.status >= 400 and not again), detail)
    better = {label: reward for label, reward in case.rewards.items() if reward > case.full + SAME}
    for label, reward in better.items():
        yield Trial("beaten", 1, f"{case.place}: {label} is worth {reward:g}, the solution {case.full:g}")
    yield Trial("worth", float(case.full <= 0 and not case.idle), f"{case.place}: the solution is worth {case.full:g}")


async def idle(case: Case) -> AsyncIterator[Trial]:
    """Doing nothing, and only saying so."""
    if case.idle:
        return
    lowest = min([case.nothing, case.full, *case.rewards.values()])
    for label, text in (("nothing", ""), ("only words", "done"), ("white space", " \n\t ")):
        played = await case.play(Attempt(text=text), label)
        if played.reward is None:
            continue
        share = (played.reward - lowest) / (case.full - lowest) if case.full > lowest + SAME else 1.0
        yield Trial(label, share, f"{case.place}: {label} is worth {played.reward:g}, the solution {case.full:g}")


async def noise(case: Case) -> AsyncIterator[Trial]:
    """Random answers, random valid calls."""
    if case.idle:
        return
    dice = case.dice("noise")
    for number in range(NOISE):
        words = fuzz.gibberish(dice, 4 if number == 0 else 40)
        attempt = texts.as_attempt(words, case.tools, case.game)
        played = await case.play(attempt, f"random text {words[:40]!r}")
        yield _unearned(case, "random text", words[:60], played.reward)
    for _ in range(NOISE if case.tools else 0):
        moves = fuzz.moves(case.tools, dice, CALLS)
        label = f"random calls of {', '.join(sorted({move.name for move in moves}))}"
        played = await case.play(Attempt(moves), label)
        yield _unearned(case, "random calls", "", played.reward)


async def spray(case: Case) -> AsyncIterator[Trial]:
    """Every option at once, and the right answer hidden among wrong ones."""
    if case.idle:
        return
    answers = list(texts.sprays(case.prompt))
    if said(case.gold):
        answers += texts.hedges(case.gold.text)
    for kind, text in answers:
        played = await case.play(texts.as_attempt(text, case.tools, case.game, 1), f"a spray ({kind})")
        yield _unearned(case, kind, text[-60:], played.reward)
    if case.gold.moves:
        async for trial in _spray_of_calls(case):
            yield trial


async def _spray_of_calls(case: Case) -> AsyncIterator[Trial]:
    """The right calls among many wrong ones: they may count only where the wrong ones were refused or change nothing."""
    before, after = [], []
    for move in case.gold.moves:
        before += [wrong for shift in range(1, WRONG_CALLS + 1) if (wrong := _wrong(move, shift)) != move]
        after += [wrong for shift in (3, 5) if (wrong := _wrong(move, shift)) != move]
    changing = {index for index, move in enumerate(before) if move.name not in case.reads}
    played = await case.play(Attempt((*before, *case.gold.moves, *after)), "a spray of calls")
    let_through = sum(shown.status < 400 for index, shown in enumerate(played.outputs) if index in changing)
    if let_through >= SPRAYED:
        yield _unearned(case, "calls", f"{let_through} wrong calls around the right ones", played.reward)


async def mischief(case: Case) -> AsyncIterator[Trial]:
    """What a hostile agent says: words for a judge, floods."""
    if case.idle:
        return
    for kind, text in (texts.INJECTIONS | texts.FLOODS).items():
        played = await case.play(texts.as_attempt(text, case.tools, case.game, 1), kind)
        yield _unearned(case, kind, "", played.reward)


async def doors(case: Case) -> AsyncIterator[Trial]:
    """What a hostile agent calls: the server's own routes, and tools with arguments without end."""
    async for trial in _routes(case):
        yield trial
    async for trial in _large_arguments(case):
        yield trial


async def sturdy(case: Case) -> AsyncIterator[Trial]:
    """Comes after the others: nothing that the model does may end without a verdict."""
    for label in case.rewards:
        yield Trial("no verdict", 0, label)
    for label, failure in case.failures.items():
        yield Trial("no verdict", 1, f"{case.place}: {label} ended without a verdict: {failure[:300]}")


async def _routes(case: Case) -> AsyncIterator[Trial]:
    """The reward path cannot be reached from the tool path, and trying changes nothing."""
    session = await case.world.open(case.row)
    try:
        for path in (*(f"/{route}" for route in ROUTES), *TRICKS):
            reply = await case.world.post(path, b"{}", session.id, trusted=False)
            kind = "server's routes"
            detail = f"{case.place}: POST {path} without the token is answered {reply.status}"
            yield Trial(kind, float(reply.status < 400), detail, hard=True)
        after = await session.verify("")
    finally:
        await session.close()
    changed = after.reward is None or abs(after.reward - case.nothing) > SAME
    detail = f"{case.place}: after calls of its routes nothing is worth {after.reward}"
    yield Trial("server's routes", float(changed), detail, hard=True)


async def _large_arguments(case: Case) -> AsyncIterator[Trial]:
    """A call of each kind with arguments without end: an answer or a refusal, not a failure."""
    session = await case.world.open(case.row)
    try:
        for name, schema in case.tools.items():
            texts_of = dict.fromkeys(schema.get("properties") or {}, "x" * texts.FLOOD)
            shown: Shown = await session.call(Move(name, texts_of))
            detail = f"{case.place}: {shown.where}: {shown.text[:200]}"
            yield Trial("large arguments", float(shown.status >= 500), detail, hard=True)
            if session.over:
                break
    finally:
        await session.close()


def _unearned(case: Case, kind: str, what: str, reward: float | None) -> Trial:
    said_what = f" ({what!r})" if what else ""
    shown = "no verdict" if reward is None else f"{reward:g}"
    detail = f"{case.place}: {kind}{said_what} is worth {shown}, nothing {case.nothing:g}, the solution {case.full:g}"
    return Trial(kind, case.worth(reward), detail)


def _wrong(move: Move, shift: int) -> Move:
    """The call with its numbers and words moved on."""
    if not isinstance(move.arguments, dict):
        return move
    if move.name == ACT and isinstance(move.arguments.get("action"), str):
        return Move(ACT, {"action": texts.miss(move.arguments["action"], shift)})
    return Move(move.name, {key: _moved(each, shift) for key, each in move.arguments.items()})


def _moved(value: object, shift: int) -> object:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return value + shift
    if isinstance(value, str):
        return texts.miss(value, shift)
    return [_moved(each, shift) for each in value] if isinstance(value, list) else value
