"""From lines to the lists of a trainer."""

from typing import Any

from rollouts.trainers.samples import columns, sample


def step(prompt: list[int], generation: list[int], fidelity: str = "exact", log_prob: float = -0.5) -> dict[str, Any]:
    return {
        "tokens": {
            "prompt_token_ids": prompt,
            "generation_token_ids": generation,
            "generation_log_probs": [log_prob] * len(generation),
            "fidelity": fidelity,
        }
    }


def line(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"reward": 1.0, "steps": list(steps), "response": {"output": []}, **fields}


def test_tool_tokens_stand_between_generations_and_are_masked() -> None:
    """Ids are those of the line, in order; nothing was encoded again."""
    made = sample(line(step([1, 2], [3, 4]), step([5, 6], [7])), filler=9)
    assert (made.prompt_ids, made.completion_ids) == ([1, 2], [3, 4, 5, 6, 7])
    assert made.mask == [1, 1, 0, 0, 1]
    assert made.log_probs == [-0.5, -0.5, 0.0, 0.0, -0.5]


def test_a_rewritten_history_gives_its_longest_segment() -> None:
    """The later one of equals."""
    forked = line(step([1], [2]), step([8], [3, 4], "forked"), step([7], [5, 6], "forked"))
    assert sample(forked, filler=9).completion_ids == [5, 6]


def test_a_failed_rollout_trains_nothing_and_counts_for_nothing() -> None:
    """One id, masked, and None for a reward: TRL leaves it out of the group's mean and gives it no advantage."""
    made = sample(line(step([1, 2], [3]), reward=None, failure={"kind": "tool_timeout"}), filler=9)
    assert (made.prompt_ids, made.completion_ids, made.mask, made.log_probs) == ([1, 2], [9], [0], [0.0])
    assert (made.reward, made.failure) == (None, "tool_timeout")


def test_a_line_without_ids_trains_nothing_though_it_has_a_reward() -> None:
    """There is nothing that the reward could be put down to."""
    made = sample(line({"tokens": None}), filler=9)
    assert (made.prompt_ids, made.completion_ids, made.reward, made.failure) == ([9], [9], None, "no token ids")


def test_ids_that_a_grammar_forced_are_masked_where_asked() -> None:
    """They had no alternative: a log-probability of exactly 0."""
    forced = line(step([1], [2, 3], log_prob=0.0), step([4], [5]))
    assert sample(forced, filler=9).mask == [1, 1, 0, 1]
    assert sample(forced, filler=9, mask_forced=True).mask == [0, 0, 0, 1]


def test_every_column_has_an_entry_for_each_sample() -> None:
    """A component that one of them lacks is None there; one that is called like something else of TRL's is left out."""
    some = line(step([1], [2]), reward_components={"exact": 1.0, "completions": 3.0})
    found = columns([sample(each, filler=9) for each in (some, line(reward=None))])
    assert {len(values) for values in found.values()} == {2}
    assert found["exact"] == [1.0, None]
    assert "completions" not in found
    assert found["failed"] == [False, True]
