"""Token ids on items: rebuilt from the steps' deltas, never guessed."""

from typing import Any

from agent_server.tokens import whole_prompts
from tests.agent_server.stage import Model, call, stage, text


def tokens(prompt: list[int], generation: list[int], fidelity: str = "exact") -> dict[str, Any]:
    """One step's token fields."""
    log_probs = [-0.5] * len(generation)
    return {
        "prompt_token_ids": prompt,
        "generation_token_ids": generation,
        "generation_log_probs": log_probs,
        "fidelity": fidelity,
    }


def test_an_exact_step_continues_the_one_before() -> None:
    """Its whole prompt is the earlier prompt, the earlier generation and its own delta."""
    steps = [{"tokens": tokens([1, 10, 11], [20, 21, 2])}, {"tokens": tokens([198, 30, 31], [40, 2])}]
    assert whole_prompts(steps) == [[1, 10, 11], [1, 10, 11, 20, 21, 2, 198, 30, 31]]


def test_a_forked_or_retokenized_step_holds_its_whole_prompt() -> None:
    """Nothing of the step before is put in front of it; the next exact step continues from it."""
    steps = [
        {"tokens": tokens([1], [2])},
        {"tokens": tokens([7, 8], [9], "forked")},
        {"tokens": tokens([3], [4])},
    ]
    assert whole_prompts(steps) == [[1], [7, 8], [7, 8, 9, 3]]


def test_after_a_step_without_ids_nothing_is_guessed() -> None:
    """An exact delta whose beginning is not known has no whole prompt; one that brings its own starts anew."""
    steps: list[dict[str, Any]] = [
        {"tokens": None},
        {"tokens": tokens([3], [4])},
        {"tokens": tokens([5], [6], "retokenized")},
    ]
    assert whole_prompts(steps) == [None, None, [5]]


async def test_items_carry_the_three_fields_where_asked() -> None:
    """`token_ids: items`: on the last item of each model call, the whole prompt; other items have none."""
    model = Model(turns=[[text("a"), call("increment")], [text("b")]], tokens=[tokens([1], [2]), tokens([3], [4])])
    async with stage(model=model, token_ids="items") as on:
        line = await on.run()
        verified = on.world.to("/verify")[0].json["response"]["output"]
    output = line["response"]["output"]
    assert [item.get("prompt_token_ids") for item in output] == [None, [1], None, [1, 2, 3]]
    assert output[3]["generation_token_ids"] == [4]
    assert output[3]["generation_log_probs"] == [-0.5]
    assert [step["tokens"]["prompt_token_ids"] for step in line["steps"]] == [[1], [3]]
    assert all("prompt_token_ids" not in item for item in verified)


async def test_items_carry_no_ids_by_default() -> None:
    """The steps have them as deltas, and the items are the model's own."""
    model = Model(turns=[[text("b")]], tokens=[tokens([1], [2])])
    async with stage(model=model) as on:
        line = await on.run()
    assert line["response"]["output"] == [text("b")]
    assert line["steps"][0]["tokens"] == tokens([1], [2])
