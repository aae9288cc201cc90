"""Token ids of an episode: from the deltas that a line stores to the flat arrays that a trainer takes, and back.

Nothing here encodes or decodes text. What was sampled is what is trained on; where a step does not continue the one before it, a new
segment starts, and nothing is guessed to bridge the gap.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from wire.responses import TOKEN_FIELDS

Fidelity = Literal["exact", "forked", "retokenized"]


@dataclass(frozen=True)
class Turn:
    """One model call."""

    prompt_ids: list[int]
    """Everything the model was given, from the first token on."""
    generation_ids: list[int]
    log_probs: list[float]
    """Natural logarithms, one per generated id."""
    fidelity: Fidelity = "exact"


@dataclass
class Segment:
    """Consecutive turns whose tokens continue one another: one training sample.

    `completion_ids` is what follows the first prompt, in order: what the model sampled (mask 1) and what was put between (mask 0: tool
    results, the template's own tokens). The three completion lists have one length.
    """

    prompt_ids: list[int]
    completion_ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    """0.0 where the mask is 0."""
    turns: int = 0

    @property
    def input_ids(self) -> list[int]:
        """Prompt and completion in one list."""
        return self.prompt_ids + self.completion_ids

    @property
    def loss_mask(self) -> list[int]:
        """One entry per input id."""
        return [0] * len(self.prompt_ids) + self.mask

    @property
    def trainable(self) -> int:
        """How many ids the model sampled."""
        return sum(self.mask)

    def append(self, turn: Turn) -> None:
        """Add a turn that continues this segment; `continues` has said so."""
        between = turn.prompt_ids[len(self.prompt_ids) + len(self.completion_ids) :]
        self.completion_ids += between + turn.generation_ids
        self.mask += [0] * len(between) + [1] * len(turn.generation_ids)
        self.log_probs += [0.0] * len(between) + turn.log_probs
        self.turns += 1

    def continues(self, turn: Turn) -> bool:
        """Whether the turn's prompt begins with everything in this segment."""
        so_far = len(self.prompt_ids)
        end = so_far + len(self.completion_ids)
        prompt = turn.prompt_ids
        return len(prompt) >= end and prompt[:so_far] == self.prompt_ids and prompt[so_far:end] == self.completion_ids


class TokensError(ValueError):
    """A line's token fields contradict each other; the message says at which step."""


def turns_of(line: dict[str, Any]) -> list[Turn | None]:
    """One entry per model call of a line: its tokens, or None where it has none.

    Reads both forms: deltas on `steps` (ours), or the whole prompt on the last output item of each call (NeMo Gym's). Items that were
    in the input are nobody's generation and are not looked at.

    Raises:
        TokensError: fields are missing, of different lengths, or not finite.
    """
    steps = line.get("steps")
    if isinstance(steps, list) and any(isinstance(step, dict) and step.get("tokens") for step in steps):
        return list(_from_steps(steps))
    return list(_from_items((line.get("response") or {}).get("output") or []))


def segments(turns: Iterable[Turn | None]) -> list[Segment]:
    """The turns as samples; a turn without tokens, or one that does not continue, starts a new one."""
    found: list[Segment] = []
    current: Segment | None = None
    for turn in turns:
        if turn is None or not turn.generation_ids:
            current = None
            continue
        if current is None or not current.continues(turn):
            current = Segment(list(turn.prompt_ids))
            found.append(current)
        current.append(turn)
    return found


def rebuild(segment: Segment) -> list[Turn]:
    """The turns of a segment again: each run of sampled ids, with all that stood before it as its prompt.

    Two turns with nothing between them come back as one: the flat form does not say where the first ended.
    """
    turns, before = [], list(segment.prompt_ids)
    place, end = 0, len(segment.completion_ids)
    while place < end:
        stop = place
        while stop < end and segment.mask[stop] == segment.mask[place]:
            stop += 1
        ids = segment.completion_ids[place:stop]
        if segment.mask[place]:
            turns.append(Turn(list(before), ids, segment.log_probs[place:stop]))
        before += ids
        place = stop
    return turns


def deltas(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Turns as the `tokens` of a line's steps: the first prompt whole, then only what each step adds."""
    stored, so_far = [], Segment([])
    for number, turn in enumerate(turns):
        continues = number > 0 and so_far.continues(turn)
        start = len(so_far.prompt_ids) + len(so_far.completion_ids) if continues else 0
        if not continues:
            so_far = Segment(list(turn.prompt_ids))
        so_far.append(turn)
        stored.append(
            {
                "prompt_token_ids": turn.prompt_ids[start:],
                "generation_token_ids": turn.generation_ids,
                "generation_log_probs": turn.log_probs,
                "fidelity": "exact" if continues or number == 0 else "forked",
            }
        )
    return stored


def _from_steps(steps: list[dict[str, Any]]) -> Iterable[Turn | None]:
    before: list[int] | None = []
    for number, step in enumerate(steps):
        tokens = step.get("tokens")
        if not tokens:
            before = None  # a delta after this one has nothing to stand on
            yield None
            continue
        turn = _turn(tokens, f"step {number}")
        if turn.fidelity == "exact":
            if before is None:
                yield None
                continue
            turn = Turn(before + turn.prompt_ids, turn.generation_ids, turn.log_probs, "exact")
        before = turn.prompt_ids + turn.generation_ids
        yield turn


def _from_items(items: list[dict[str, Any]]) -> Iterable[Turn | None]:
    for number, item in enumerate(items):
        if item.get("generation_token_ids") is not None:
            yield _turn(item, f"output item {number}")


def _turn(tokens: dict[str, Any], where: str) -> Turn:
    prompt, generation, log_probs = (tokens.get(name) for name in TOKEN_FIELDS)
    if not (_is_ids(prompt) and _is_ids(generation) and isinstance(log_probs, list)):
        raise TokensError(f"{where}: {', '.join(TOKEN_FIELDS)} are lists, all three or none")
    if len(generation) != len(log_probs):  # type: ignore[arg-type]  # lists, as checked
        raise TokensError(f"{where}: {len(generation)} generated ids and {len(log_probs)} log-probabilities")  # type: ignore[arg-type]
    if not all(isinstance(each, int | float) and math.isfinite(each) for each in log_probs):
        raise TokensError(f"{where}: a log-probability is not a finite number")
    fidelity: Any = tokens.get("fidelity") or "exact"
    return Turn(prompt, generation, log_probs, fidelity)  # type: ignore[arg-type]


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, int) and not isinstance(each, bool) for each in value)
