"""Token samples of one episode, or why it has none."""

from dataclasses import dataclass
from typing import Any

from rollouts.export.reading import Line, Selection
from rollouts.export.tokens import Segment, TokensError, segments, turns_of


@dataclass(frozen=True)
class Samples:
    """The segments of an episode that may be trained on, or the reason why there are none."""

    segments: list[Segment]
    fidelity: str
    """The weakest of its steps."""
    reason: str | None = None


def samples_of(line: Line, selection: Selection) -> Samples:
    """Segments with at least one sampled id; nothing is made up where ids are missing."""
    try:
        turns = turns_of(line)
    except TokensError as error:
        return Samples([], "absent", f"token fields are wrong ({error})")
    found = [each for each in segments(turns) if each.trainable]
    if not found:
        return Samples([], "absent", "no_generation")
    fidelity = _fidelity(line, turns, found)
    if fidelity != "exact" and not selection.any_fidelity:
        return Samples([], fidelity, f"tokens are {fidelity}, not exact")
    return Samples(found, fidelity)


def _fidelity(line: Line, turns: list[Any], found: list[Segment]) -> str:
    labels = {turn.fidelity for turn in turns if turn is not None}
    if None in turns or len(line.get("steps") or turns) > len(turns):
        return "absent"  # some step has no ids: the samples are parts of the episode
    for label in ("retokenized", "forked"):
        if label in labels:
            return label
    return "exact" if len(found) == 1 else "forked"
