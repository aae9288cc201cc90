"""Harmless changes of form: the same answer, written or called otherwise."""

import datetime
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from rollouts.check.texts import core_of, with_core
from rollouts.check.world import ACT, Attempt, Move, said
from wire import strict_json

SHORT = 60  # characters up to which an answer in one line is taken for a word or number rather than a text or program


def changed(attempt: Attempt) -> Iterator[tuple[str, Attempt]]:
    """Kind and attempt of each change that applies."""
    if said(attempt):
        for kind, text in written(attempt.text):
            yield kind, Attempt(attempt.moves, text)
        return
    if not attempt.moves:
        return
    if all(move.name != ACT for move in attempt.moves):
        yield "other last words", Attempt(attempt.moves, "I have done what you asked for.")
        yield "JSON spaced and reordered", Attempt(tuple(map(_respaced, attempt.moves)), attempt.text)
    if any(_acts_in_text(move) for move in attempt.moves):
        for kind in ("spaces", "case", "Unicode"):
            moves = tuple(_rewritten(move, kind) for move in attempt.moves)
            if moves != attempt.moves:
                yield kind, Attempt(moves, attempt.text)


def written(text: str) -> Iterator[tuple[str, str]]:
    """Kind and text of each way to write an answer that applies."""
    answer = core_of(text)
    yield "spaces", f"\n  {with_core(text, f' {answer} ') if answer != text.strip() else text}  \n\n"
    decomposed = unicodedata.normalize("NFD", text)
    if decomposed != text:
        yield "Unicode", decomposed
    if len(answer) > SHORT or "\n" in answer:
        return
    if re.fullmatch(r"[^\W\d_]+( [^\W\d_]+)*", answer):
        yield "case", with_core(text, answer.swapcase())
    yield from (("numbers", with_core(text, each)) for each in numbers(answer))
    yield from (("dates", with_core(text, each)) for each in dates(answer))


def numbers(answer: str) -> Iterator[str]:
    """The same number otherwise: 5 -> 5.0, 1234 -> 1,234."""
    if re.fullmatch(r"-?(0|[1-9]\d*)", answer) and len(answer) < 16:
        yield f"{answer}.0"
        if abs(int(answer)) >= 1000:
            yield f"{int(answer):,}"
    elif re.fullmatch(r"-?\d+\.\d+", answer):
        yield f"{answer}0"


def dates(answer: str) -> Iterator[str]:
    """The same day otherwise."""
    try:
        day = datetime.date.fromisoformat(answer)
    except ValueError:
        return
    yield f"{day:%B} {day.day}, {day.year}"


def whole_as_float(move: Move) -> Move | None:
    """The call with 5.0 for 5; None where it has no whole number at its top."""
    if not isinstance(move.arguments, dict):
        return None
    made = {key: float(each) if _is_whole(each) else each for key, each in move.arguments.items()}
    return Move(move.name, made) if any(map(_is_whole, move.arguments.values())) else None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53


def _respaced(move: Move) -> Move:
    arguments = dict(reversed(move.arguments.items())) if isinstance(move.arguments, dict) else move.arguments
    text = strict_json.dumps(arguments)
    return Move(move.name, move.arguments, b" " + text.replace(b"{", b"{\n ", 1) + b"\n")


def _acts_in_text(move: Move) -> bool:
    return move.name == ACT and isinstance(move.arguments, dict) and isinstance(move.arguments.get("action"), str)


def _rewritten(move: Move, kind: str) -> Move:
    if not _acts_in_text(move):
        return move
    text = dict(written(move.arguments["action"])).get(kind)
    return move if text is None else Move(move.name, {"action": text})
