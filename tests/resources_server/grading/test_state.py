"""Worlds compared by their net change, in canonical form."""

import time
from typing import Any

import pytest

from resources_server.grading import state

MAIL = {"1": {"subject": "a", "read": False}, "2": {"subject": "b", "read": False}}


def world(**tables: Any) -> dict[str, Any]:
    return {"mail": MAIL, "clock": "2023-11-30 23:59:00", **tables}


def mail(**rows: Any) -> dict[str, Any]:
    return world(mail={**MAIL, **rows})


NEW_A, NEW_B = {"subject": "x", "minutes": 30}, {"subject": "y", "minutes": 5}
CASES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], float]] = [
    (world(), world(), {}, 1),
    (mail(m3=NEW_A), mail(m3=NEW_A), {}, 1),
    (mail(m3=NEW_A, m4=NEW_B), mail(m3=NEW_B, m4=NEW_A), {}, 1),  # order of independent creates
    (mail(m9=NEW_A), mail(m3=NEW_A), {}, 1),  # ids of new rows do not count
    (mail(m3=NEW_A, m4=NEW_A), mail(m3=NEW_A), {}, 0),
    (mail(m3=NEW_A), mail(m3=NEW_A, m4=NEW_A), {}, 0),
    (world(), mail(m3=NEW_A), {}, 0),
    (mail(m3=NEW_A), world(), {}, 0),
    (mail(m3={"subject": "x", "minutes": "30"}), mail(m3=NEW_A), {}, 1),
    (mail(m3={"subject": "x", "minutes": 30.0}), mail(m3=NEW_A), {}, 1),
    (mail(m3={"subject": "X", "minutes": 30}), mail(m3=NEW_A), {}, 0),
    (mail(m3={"subject": "X", "minutes": 30}), mail(m3=NEW_A), {"forms": {"subject": "ignore_case"}}, 1),
    (mail(m3={"subject": "X", "minutes": 30}), mail(m3=NEW_A), {"forms": {"mail.subject": "ignore_case"}}, 1),
    (mail(m3={"subject": "X", "minutes": 30}), mail(m3=NEW_A), {"ignore": ["subject"]}, 1),
    (mail(m3={**NEW_A, "note": None}), mail(m3=NEW_A), {}, 1),
    (mail(**{"1": {"subject": "a", "read": True}}), mail(**{"1": {"subject": "a", "read": True}}), {}, 1),
    (mail(**{"1": {"subject": "a", "read": True}}), mail(**{"2": {"subject": "b", "read": True}}), {}, 0),
    (mail(**{"1": {"subject": "a", "read": False}}), world(), {}, 1),  # written over with itself
    (world(mail={"2": MAIL["2"]}), world(mail={"2": MAIL["2"]}), {}, 1),
    (world(mail={"2": MAIL["2"]}), world(), {}, 0),
    (world(mail={}), world(mail={"2": MAIL["2"]}), {}, 0),
    (world(extra={"1": NEW_A}), world(), {}, 0),
    (world(extra={}), world(), {}, 1),
    (world(clock="2023-11-30T23:59"), world(), {}, 1),
    (world(clock="2023-11-30T23:58"), world(), {}, 0),
]


@pytest.mark.parametrize(("produced", "expected", "options", "reward"), CASES)
def test_net_changes(produced: Any, expected: Any, options: dict[str, Any], reward: float) -> None:
    """Created rows by content and number, updates and deletions by id, values in canonical form."""
    assert state.match(world(), produced, expected, **options).reward == reward


SAME = [
    (30, "30"),
    (30, 30.0),
    ("30.0", 30),
    ("2023-12-01 09:00", "2023-12-01 09:00:00"),
    ("2023-12-01T09:00:00Z", "2023-12-01 09:00:00+00:00"),
    (" a ", "a"),
    ("caf\u00e9", "cafe\u0301"),
    ([1, "2"], (1.0, 2)),
    ({"a": 1, "b": 2}, {"b": "2", "a": 1}),
]
DIFFERENT = [
    ("00000012", "12"),
    ("1e3", 1000),
    (True, 1),
    (True, "True"),
    ("a", "A"),
    ("a b", "a  b"),
    ([1, 2], [2, 1]),
    (None, ""),
    ("2023-12-01", "2023-12-02"),
    (0.1, 0.2),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_values_that_mean_the_same_are_canonically_equal(one: Any, other: Any) -> None:
    """Numbers written as text, moments with and without seconds."""
    assert state.canonical(one) == state.canonical(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_values_that_differ_stay_different(one: Any, other: Any) -> None:
    """An id's zeros, truth values and case are not formatting."""
    assert state.canonical(one) != state.canonical(other)


@pytest.mark.parametrize(
    ("form", "one", "other"),
    [
        ("boolean", "True", True),
        ("date", "March 5, 2024", "2024-03-05 10:00"),
        ("datetime", "2024-03-05 9:00 am", "2024-03-05T09:00"),
        ("number", "$1,000", 1000),
        ("text", "a  b", "a b"),
        (lambda value: len(value), "ab", "cd"),
    ],
)
def test_a_column_may_be_read_generously(form: Any, one: Any, other: Any) -> None:
    """Where the column's meaning is known, or by a function of one's own."""
    assert state.canonical(one, form) == state.canonical(other, form)


def test_tables_may_be_lists_of_rows_with_an_id_column() -> None:
    """The id is then no part of a new row's content."""
    before = {"tasks": [{"id": 1, "name": "a"}]}
    produced = {"tasks": [{"id": 1, "name": "a"}, {"id": 7, "name": "b"}]}
    expected = {"tasks": [{"id": 2, "name": "b"}, {"id": 1, "name": "a"}]}
    assert state.match(before, produced, expected, keys={"tasks": "id"}).reward == 1


@pytest.mark.parametrize(
    ("produced", "words"),
    [
        (world(), "mail: not created: {'minutes': 30, 'subject': 'x'}"),
        (mail(m3=NEW_B), "created instead: {'minutes': 5, 'subject': 'y'}"),
        (mail(m3=NEW_A, m4=NEW_B), "mail: created, which was not expected"),
        (mail(m3=NEW_A, **{"1": {"subject": "z", "read": False}}), "updated, which was not expected: 1 subject = 'z'"),
    ],
)
def test_the_reason_names_the_first_difference(produced: Any, words: str) -> None:
    """Table, what happened to it, and the row."""
    assert words in state.match(world(), produced, mail(m3=NEW_A)).reason


def test_several_accepted_end_states() -> None:
    """The best counts; none at all is the row's fault."""
    grades = [state.match(world(), mail(m3=NEW_A), accepted) for accepted in (world(), mail(m3=NEW_A))]
    assert state.any_of(grades).reward == 1
    with pytest.raises(ValueError, match="accepted"):
        state.any_of([])


def test_unchanged_rows_cost_next_to_nothing() -> None:
    """2,300 rows, as many as the workplace has, well under the 5 ms that a verdict may take."""
    big = {f"table{n}": {str(i): {"a": str(i), "b": "text"} for i in range(460)} for n in range(5)}
    after = {name: {**table, "new": {"a": "1"}} for name, table in big.items()}
    also = {name: {**table, "other": {"a": 1}} for name, table in big.items()}
    best = min(_timed(big, after, also) for _ in range(5))
    assert best < 0.01


def _timed(before: Any, produced: Any, expected: Any) -> float:
    start = time.perf_counter()
    assert state.match(before, produced, expected).reward == 1
    return time.perf_counter() - start
