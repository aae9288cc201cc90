"""Token ids: which lists are tokens, and the thread that they grow."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_interface.tokens import Thread, checked

NO_IDS = [[True], [1.0], ["1"], [None], [-1], [2**64], [[1]], [[]], ["],["], (1,), "1", None]
NO_NUMBERS = [[True], ["1"], [None], [[1]], [[]], ["],["], [float("nan")], [float("-inf")], [10**400], (-0.5,), None]
ids = st.lists(st.integers(0, 2**64 - 1), max_size=20)


@pytest.mark.parametrize("wrong", NO_IDS)
def test_what_is_no_list_of_ids_is_no_tokens(wrong: Any) -> None:
    """In the prompt or among the generated."""
    assert checked(wrong, [], [], fidelity="exact") is None
    assert checked([1], wrong, [-0.5], fidelity="exact") is None


@pytest.mark.parametrize("wrong", NO_NUMBERS)
def test_what_is_no_finite_log_probability_is_no_tokens(wrong: Any) -> None:
    """Too large for a float, for instance: who reads the line could not compute with it."""
    assert checked([1], [2], wrong, fidelity="exact") is None


@given(ids, st.lists(st.tuples(st.integers(0, 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False))))
def test_the_text_is_the_lists(prompt: list[int], made: list[tuple[int, float]]) -> None:
    """Read back, they are the same numbers; any of them may be empty."""
    generation, scores = [each for each, _ in made], [score for _, score in made]
    tokens = checked(prompt, generation, scores, fidelity="forked")
    assert tokens is not None
    assert list(json.loads(tokens.text).values()) == [prompt, generation, scores, "forked"]


@given(st.lists(st.tuples(ids, ids), max_size=40), ids, st.integers(0, 100))
def test_a_thread_is_the_ids_of_its_steps_one_after_the_other(
    steps: list[tuple[list[int], list[int]]], more: list[int], length: int
) -> None:
    """As numbers and as text, whole and cut; a longer prompt is known by its beginning."""
    thread, whole = Thread(), list[int]()
    for prompt, generation in steps:
        tokens = checked(prompt, generation, [-0.5] * len(generation), fidelity="exact")
        assert tokens is not None
        thread.add(tokens)
        whole += prompt + generation
    cut = thread.cut(length)
    assert (thread.ids, cut.ids) == (whole, whole[:length])
    assert [_text(each.ids) for each in (thread, cut)] == [b"".join(each.text) for each in (thread, cut)]
    assert thread.end_in(b"[" + _text([*whole, *more]) + b"7]", 1) == 1 + len(_text(whole))
    assert not whole or thread.end_in(b"[" + _text(whole[:-1]) + b"]", 1) is None


def _text(numbers: list[int]) -> bytes:
    return b"".join(b"%d," % each for each in numbers)
