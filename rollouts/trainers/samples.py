"""From a rollout's line to the token lists of one training sample; pure.

A trainer that wants one sample per prompt gets the episode's longest segment: the stretch of steps whose ids continue one another with
most sampled ids, the later one of equals. Only an episode whose history was rewritten has more than one.
"""

from dataclasses import dataclass, field
from typing import Any

from rollouts.export.tokens import Segment, TokensError, segments, turns_of

Line = dict[str, Any]


@dataclass(frozen=True)
class Sample:
    """Ids as they were seen and sampled; nothing was encoded again.

    `completion_ids` is never empty: trainers look at its last id. A failed rollout has one id that is masked.
    """

    prompt_ids: list[int]
    completion_ids: list[int]
    log_probs: list[float]
    mask: list[int]  # 1 sampled by the model, 0 put there by the environment, the template or the grammar
    reward: float | None  # None: failed, no member of its group
    components: dict[str, float] = field(default_factory=dict)
    failure: str | None = None  # why there is no reward, or nothing to train on


def sample(line: Line, *, filler: int, mask_forced: bool = False) -> Sample:
    """The sample of a line.

    Args:
        line: With a verdict or a failure.
        filler: The id that stands for a completion where there is none.
        mask_forced: Leave out sampled ids that had no alternative (log-probability exactly 0): a grammar put them there, so that
            they say nothing about the policy.
    """
    if line.get("reward") is None:
        failure = line.get("failure") or {}
        return _nothing(line, filler, str(failure.get("kind") or line.get("failure_kind") or "no reward"))
    try:
        found = [each for each in segments(turns_of(line)) if each.trainable]
    except TokensError as error:
        return _nothing(line, filler, f"token fields are wrong ({error})")
    if not found:
        return _nothing(line, filler, "no token ids")
    chosen = _longest(found)
    mask = [int(bit and not (mask_forced and p == 0.0)) for bit, p in zip(chosen.mask, chosen.log_probs, strict=True)]
    components = {name: float(value) for name, value in (line.get("reward_components") or {}).items()}
    return Sample(chosen.prompt_ids, chosen.completion_ids, chosen.log_probs, mask, float(line["reward"]), components)


def _longest(found: list[Segment]) -> Segment:
    return max(enumerate(found), key=lambda each: (each[1].trainable, each[0]))[1]


def _nothing(line: Line, filler: int, why: str) -> Sample:
    """A sample that trains nothing: one masked id, and no reward."""
    return Sample(_prompt(line) or [filler], [filler], [0.0], [0], None, failure=why)


def _prompt(line: Line) -> list[int]:
    for step in line.get("steps") or []:
        if tokens := step.get("tokens"):
            return list(tokens["prompt_token_ids"])
    return []


def columns(samples: list[Sample]) -> dict[str, list[Any]]:
    """The lists that TRL's `rollout_func` returns, each with one entry per sample; a component that a sample lacks is None."""
    names = sorted({name for each in samples for name in each.components} - RESERVED)
    return {
        "prompt_ids": [each.prompt_ids for each in samples],
        "completion_ids": [each.completion_ids for each in samples],
        "logprobs": [each.log_probs for each in samples],
        "env_mask": [each.mask for each in samples],
        "reward": [each.reward for each in samples],
        "failed": [each.failure is not None for each in samples],
        "failure": [each.failure for each in samples],
        **{name: [each.components.get(name) for each in samples] for name in names},
    }


RESERVED = frozenset(
    {
        *("prompt", "prompts", "prompt_ids", "completion", "completions", "completion_ids", "logprobs", "env_mask"),
        *(
            "reward",
            "failed",
            "failure",
            "outcome",
            "images",
            "trainer_state",
            "log_extra",
            "log_metric",
            "environments",
        ),
    }
)
"""Names that a reward component cannot have as a column: they mean something else there."""
