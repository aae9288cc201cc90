"""Verdicts on any text at all: a grade, in reasonable time, and the right answer is always right."""

import contextlib
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources_server.grading import answers, latex, state, trajectory

TEXTS = st.text(max_size=200) | st.text(
    alphabet=" 0123456789,.-/%$€ABCDab()[]{}\\boxedfrac*#:\n\u00a0\u2212½e^", max_size=120
)
JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_every_text_gets_a_grade(text: str) -> None:
    """Nothing a model writes makes a verdict fail."""
    verdicts: list[tuple[Any, Any]] = [
        (answers.string, "x"),
        (answers.number, "4242.42"),
        (answers.date, "2024-03-05"),
        (answers.boolean, "true"),
        (answers.choice, "B"),
        (answers.boxed, "4242.42"),
        (answers.items, ["a", "b"]),
    ]
    for verdict, expected in verdicts:
        assert verdict(text, expected).reward in (0.0, 1.0)


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_mathematics_is_read_or_is_unreadable(text: str) -> None:
    """By one exception, whatever the text."""
    with contextlib.suppress(latex.Unreadable):
        latex.parse(text)


@given(st.decimals(min_value=-(10**12), max_value=10**12, places=3))
@settings(deadline=None)
def test_a_number_is_right_in_every_dress(value: Decimal) -> None:
    """Separators, currency, marks."""
    for dress in ("{}", "{:,}", "**{:,}**", "Answer: {}", "\\boxed{{{}}}", "${}$", "{}.", " {}\n", "#### {}"):
        assert answers.number(dress.format(value), str(value)).reward == 1, dress


@given(st.dates(min_value=date(1000, 1, 1)))
@settings(deadline=None)
def test_a_date_is_right_in_every_dress(value: date) -> None:
    """As ISO, in words, with and without weekday."""
    for dress in ("%Y-%m-%d", "%B %d, %Y", "%d %b %Y", "%A, %d %B %Y", "%d-%b-%Y", "on %B %d, %Y."):
        assert answers.date(value.strftime(dress), value.isoformat()).reward == 1, dress


@given(st.text(max_size=50))
@settings(deadline=None)
def test_a_text_equals_itself(value: str) -> None:
    """Exactly, whatever is in it."""
    assert answers.string(value, value, extract="whole").reward == 1


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b"]), st.dictionaries(st.text(max_size=4), JSON, max_size=3)), max_size=4)
)
@settings(deadline=None)
def test_a_trajectory_matches_itself_in_any_order(calls: list[tuple[str, dict[str, Any]]]) -> None:
    """And with one call more it does not."""
    made = [{"name": name, "arguments": arguments} for name, arguments in calls]
    assert trajectory.match(made[::-1], made).reward == 1
    assert trajectory.match(made, made, mode="ordered").reward == 1
    assert trajectory.match([*made, {"name": "c", "arguments": {}}], made).reward == 0


@given(st.dictionaries(st.text(max_size=4), st.dictionaries(st.text(max_size=4), JSON, max_size=3), max_size=4))
@settings(deadline=None)
def test_a_world_matches_itself(table: dict[str, Any]) -> None:
    """Created from nothing, under other ids too."""
    other = {f"{id}-new": dict(row) for id, row in table.items()}
    assert state.match({"t": {}}, {"t": table}, {"t": other}).reward == 1
    assert state.match({"t": {}}, {"t": {**table, "more": {"x": "y"}}}, {"t": other}).reward == 0


@pytest.mark.parametrize("text", ["(" * 10**5, "1," * 10**5, "Answer: " * 10**4, "<answer>" * 10**4, "\\boxed{" * 2000, "9" * 10**5,
                                  "**" * 10**5, "a " * 10**5, "March 5, " * 10**4, "A, " * 10**5, "-" * 10**5, " " * 10**6])  # fmt: skip
@pytest.mark.timeout(20)
def test_floods_are_graded_quickly(text: str) -> None:
    """No pattern goes quadratic on them."""
    for verdict, expected in (
        (answers.number, "42"),
        (answers.choice, "B"),
        (answers.date, "2024-03-05"),
        (answers.string, "x"),
    ):
        assert verdict(text, expected).reward == 0
