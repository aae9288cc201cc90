"""Token ids of an episode: from the deltas that a line stores to the flat arrays that a trainer takes, and back.

Nothing here encodes or decodes text. What was sampled is what is trained on; where a step does not continue the one before it, a new
segment starts, and nothing is guessed to bridge the gap.
"""

import itertools
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from wire.responses import TOKEN_FIELDS

Fidelity = Literal["exact", "forked", "retokenized"]
QUOTED_CHARACTERS = 40  # of a wrong value, in a message


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
    """A line's token fields contradict each other or hold what no model sampled; the message says at which step."""


def turns_of(line: dict[str, Any]) -> list[Turn | None]:
    """One entry per model call of a line: its tokens, or None where it has none.

    Reads both forms: deltas on `steps` (ours), or the whole prompt on the last output item of each call (NeMo Gym's). Items that were
    in the input are nobody's generation and are not looked at.

    Raises:
        TokensError: fields are missing, of different lengths, or no ids and log-probabilities that a model can have sampled.
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
        tokens = step.get("tokens") if isinstance(step, dict) else None
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
        yield _sampled(turn, f"step {number}")


def _from_items(items: list[dict[str, Any]]) -> Iterable[Turn | None]:
    for number, item in enumerate(items):
        if isinstance(item, dict) and item.get("generation_token_ids") is not None:
            yield _sampled(_turn(item, f"output item {number}"), f"output item {number}")


def _turn(tokens: dict[str, Any], where: str) -> Turn:
    if not isinstance(tokens, dict):
        raise TokensError(f"{where}: tokens are an object with {', '.join(TOKEN_FIELDS)}, not {_shown(tokens)}")
    prompt, generation, log_probs = (tokens.get(name) for name in TOKEN_FIELDS)
    if not (isinstance(prompt, list) and isinstance(generation, list) and isinstance(log_probs, list)):
        raise TokensError(f"{where}: {', '.join(TOKEN_FIELDS)} are lists, all three or none")
    if len(generation) != len(log_probs):
        raise TokensError(f"{where}: {len(generation)} generated ids and {len(log_probs)} log-probabilities")
    for each in itertools.chain(prompt, generation):
        if type(each) is not int or each < 0:  # a boolean is an int to isinstance
            raise TokensError(f"{where}: an id is a whole number from 0 on, not {_shown(each)}")
    for each in log_probs:
        if type(each) not in (float, int) or not -sys.float_info.max <= each <= sys.float_info.max:
            raise TokensError(f"{where}: a log-probability is a finite number, not {_shown(each)}")
    fidelity: Any = tokens.get("fidelity") or "exact"
    if fidelity not in get_args(Fidelity):
        raise TokensError(f"{where}: fidelity is one of {', '.join(get_args(Fidelity))}, not {_shown(fidelity)}")
    return Turn(prompt, generation, log_probs, fidelity)


def _sampled(turn: Turn, where: str) -> Turn:
    """The turn, if its ids can have been sampled; its prompt is whole.

    Harnesses that have no ids of a turn write `[0]`, or a 0 for each token. One 0 alone may be a token (an end of text is, in some
    vocabularies), unless nothing but zeros stands before it.
    """
    if any(turn.generation_ids) or not turn.generation_ids:
        return turn
    if len(turn.generation_ids) > 1 or not any(turn.prompt_ids):
        raise TokensError(f"{where}: every generated id is 0, which stands for ids that nobody had")
    return turn


def _shown(value: Any) -> str:
    return repr(value)[:QUOTED_CHARACTERS]
