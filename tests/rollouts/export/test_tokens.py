"""Flattening and rebuilding: concatenation of what was sampled, never re-encoding, never a guess."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.export.tokens import Segment, TokensError, Turn, deltas, rebuild, segments, turns_of

WHOLE = [
    {"prompt_token_ids": [1, 10, 11], "generation_token_ids": [20, 21, 2], "generation_log_probs": [-0.1, -0.2, -0.3]},
    {
        "prompt_token_ids": [1, 10, 11, 20, 21, 2, 198, 30, 31],
        "generation_token_ids": [40, 2],
        "generation_log_probs": [-0.4, -0.5],
    },
]
IDS = st.lists(st.integers(0, 99), max_size=5)
GENERATION = st.lists(st.tuples(st.integers(1, 99), st.floats(-20, 0)), min_size=1, max_size=5)


def items(*tokens: dict[str, object]) -> dict[str, object]:
    """A line with whole prompts on its output items, a tool's output between them."""
    output: list[dict[str, object]] = []
    for each in tokens:
        output += [{"type": "function_call", "name": "t", **each}, {"type": "function_call_output", "output": "x"}]
    return {"response": {"output": output}}


def test_two_turns_become_one_sample() -> None:
    """Case F01: the separator between the turns is kept and not trained on."""
    [segment] = segments(turns_of(items(*WHOLE)))
    assert segment.input_ids == [1, 10, 11, 20, 21, 2, 198, 30, 31, 40, 2]
    assert segment.loss_mask == [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1]
    assert segment.log_probs == [-0.1, -0.2, -0.3, 0.0, 0.0, 0.0, -0.4, -0.5]
    assert (segment.prompt_ids, segment.mask) == ([1, 10, 11], [1, 1, 1, 0, 0, 0, 1, 1])


def test_deltas_say_the_same_as_whole_prompts() -> None:
    """The line's own form."""
    turns = turns_of(items(*WHOLE))
    stored = deltas([each for each in turns if each])
    assert [each["prompt_token_ids"] for each in stored] == [[1, 10, 11], [198, 30, 31]]
    assert turns_of({"steps": [{"tokens": each} for each in stored]}) == turns


def test_a_prompt_that_was_rewritten_starts_a_new_sample() -> None:
    """One id differs in what should be the same history."""
    forked = {**WHOLE[1], "prompt_token_ids": [1, 10, 11, 20, 99, 2, 198, 30, 31]}
    first, second = segments(turns_of(items(WHOLE[0], forked)))
    assert (first.turns, second.prompt_ids) == (1, forked["prompt_token_ids"])


def test_a_delta_after_a_step_without_tokens_is_not_guessed() -> None:
    """What it would continue is not known; a step with its whole prompt starts again."""
    step = {"prompt_token_ids": [5], "generation_token_ids": [6], "generation_log_probs": [-1.0]}
    line = {
        "steps": [
            {"tokens": {**step, "fidelity": "exact"}},
            {"tokens": None},
            {"tokens": {**step, "fidelity": "exact"}},
            {"tokens": {**step, "fidelity": "retokenized"}},
        ]
    }
    assert [each and each.prompt_ids for each in turns_of(line)] == [[5], None, None, [5]]
    assert len(segments(turns_of(line))) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"generation_log_probs": [-0.1]}, "3 generated ids and 1 log-prob"),
        ({"generation_log_probs": [-0.1, float("nan"), 0.0]}, "finite number, not nan"),
        ({"generation_log_probs": [-0.1, True, 0.0]}, "finite number, not True"),
        ({"generation_log_probs": [-0.1, None, 0.0]}, "finite number, not None"),
        ({"generation_log_probs": [-0.1, 10**400, 0.0]}, "finite number, not 1000"),
        ({"prompt_token_ids": None}, "all three or none"),
        ({"generation_token_ids": ["20", 21, 2]}, "a whole number from 0 on, not '20'"),
        ({"generation_token_ids": [20, -1, 2]}, "a whole number from 0 on, not -1"),
        ({"prompt_token_ids": [1, -100]}, "a whole number from 0 on, not -100"),
        ({"prompt_token_ids": [1, False]}, "a whole number from 0 on, not False"),
        ({"generation_token_ids": [0, 0, 0]}, "every generated id is 0"),
        ({"fidelity": ["exact"]}, "fidelity is one of exact, forked, retokenized"),
    ],
)
def test_fields_that_no_model_can_have_sampled_are_refused(change: dict[str, object], words: str) -> None:
    """The message names the step."""
    with pytest.raises(TokensError, match=f"step 0: .*{words}"):
        turns_of({"steps": [{"tokens": WHOLE[0] | change}]})


@pytest.mark.parametrize(("prompt", "refused"), [([0], True), ([], True), ([5, 0], False)])
def test_a_single_zero_is_a_placeholder_where_the_prompt_is_one_too(prompt: list[int], refused: bool) -> None:
    """Case F04: harnesses without ids write `[0]` for both; after a real prompt a 0 may be the end of the text."""
    line = items({"prompt_token_ids": prompt, "generation_token_ids": [0], "generation_log_probs": [0.0]})
    if refused:
        with pytest.raises(TokensError, match="output item 0: every generated id is 0"):
            turns_of(line)
    else:
        assert turns_of(line) == [Turn([5, 0], [0], [0.0])]


def test_an_episode_without_a_generation_has_no_sample() -> None:
    """Case F04 b, c: nothing is made up."""
    assert segments(turns_of({"steps": [{"tokens": None}], "response": {"output": [{"type": "reasoning"}]}})) == []
    assert segments([Turn([1, 2], [], [])]) == []


@given(
    IDS, st.lists(st.tuples(st.lists(st.integers(0, 99), min_size=1, max_size=4), GENERATION), min_size=1, max_size=6)
)
def test_any_episode_flattens_and_rebuilds(
    prompt: list[int], steps: list[tuple[list[int], list[tuple[int, float]]]]
) -> None:
    """Ids, masks and log-probabilities are the same after the way there and back, through the stored deltas too."""
    turns, before = [], prompt
    for number, (between, generation) in enumerate(steps):
        given_ids = before + (between if number else [])
        turn = Turn(given_ids, [token for token, _ in generation], [log_prob for _, log_prob in generation])
        turns.append(turn)
        before = turn.prompt_ids + turn.generation_ids
    [segment] = segments(turns)
    assert rebuild(segment) == turns
    assert turns_of({"steps": [{"tokens": each} for each in deltas(turns)]}) == turns
    assert len(segment.completion_ids) == len(segment.mask) == len(segment.log_probs)


@given(st.lists(st.builds(Turn, IDS, IDS.map(lambda ids: ids[:1]), st.just([-1.0])), max_size=5))
def test_unrelated_turns_are_never_joined(turns: list[Turn]) -> None:
    """Whatever the ids: every sampled id is in exactly one sample, behind the prompt that it was sampled for."""
    kept = [each for each in turns if each.generation_ids]
    made: list[Segment] = segments(turns)
    assert sum(each.trainable for each in made) == len(kept)
    assert sum(each.turns for each in made) == len(kept)
