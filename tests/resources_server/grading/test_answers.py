"""Answers: what counts as the same, what does not, and that more answers are never worth more than one."""

from fractions import Fraction
from typing import Any

import pytest

from resources_server.grading import answers

CAFE, CAFE_APART = "caf\u00e9", "cafe\u0301"

STRINGS: list[tuple[str, str, dict[str, Any], float]] = [
    ("Paris", "  paris\n", {}, 1),
    ("Paris", "paris", {"case": "exact"}, 0),
    ("Paris", " Paris ", {"case": "exact"}, 1),
    ("Paris", " Paris", {"trim": False}, 1),  # unwrapped as an answer, unless the whole text is compared
    ("Paris", " Paris", {"trim": False, "extract": "whole"}, 0),
    (CAFE, CAFE_APART, {}, 1),
    (CAFE_APART, CAFE, {}, 1),
    (CAFE.upper(), CAFE_APART, {}, 1),
    (CAFE, CAFE_APART, {"unicode": "none"}, 0),
    (CAFE, "cafe", {}, 0),
    ("A B", "A  B", {}, 0),
    ("A B", "A  B", {"collapse": True}, 1),
    ("A B", "A\u00a0B", {"collapse": True}, 1),
    ("A B", "A\u00a0B", {}, 0),
    ("A B", "A\tB", {"collapse": True}, 1),
    ("A B", "AB", {"collapse": True}, 0),
    ("no", "nope", {}, 0),
    ("no", "no", {}, 1),
    ("Paris", "Paris.", {}, 1),
    ("Paris", '"Paris"', {}, 1),
    ("Paris", "**Paris**", {}, 1),
    ("Paris", "The answer is Paris.", {}, 1),
    ("Paris", "I thought about Rome.\nAnswer: Paris", {}, 1),
    ("Paris", "<answer>Paris</answer>", {}, 1),
    ("Paris", "Final Answer:\nParis", {}, 1),
    ("Paris", "**Final answer:** Paris", {}, 1),
    ("Paris", "**Final answer**: Paris", {}, 1),
    ("Paris", "<think>Answer: Rome</think>Answer: Paris", {}, 1),
    ("Paris", "Answer: Rome. Wait, that is Italy's capital. Answer: Paris", {}, 1),
    ("Paris", "Answer: Paris. Wait, that is France's capital. Answer: Rome", {}, 0),
    ("Paris", "Answer: Rome\nAnswer: Paris", {}, 0),  # a spray
    ("Paris", "Answer: Paris\nAnswer: Paris", {}, 1),
    ("Paris", "Paris Rome London", {}, 0),
    ("Paris", "Answer: Paris, Rome or London", {}, 0),
    ("Paris", "<answer>Rome</answer><answer>Paris</answer>", {}, 0),
    ("Paris", "", {}, 0),
    ("ﬁne", "fine", {"unicode": "nfkc"}, 1),
    ("ﬁne", "fine", {"unicode": "nfc", "case": "exact"}, 0),
    ("５", "5", {"unicode": "nfkc"}, 1),
    ("Straße", "STRASSE", {}, 1),
    ("U.S.A.", "U.S.A.", {}, 1),
    ("", "", {}, 1),
]


@pytest.mark.parametrize(("expected", "text", "options", "reward"), STRINGS)
def test_texts_are_the_same_up_to_their_form(expected: str, text: str, options: dict[str, Any], reward: float) -> None:
    """Case, outer spaces and composition do not matter unless told so; inner spaces do unless told so."""
    assert answers.string(text, expected, **options).reward == reward


NUMBERS: list[tuple[Any, str, dict[str, Any], float]] = [
    ("0", "$0.00", {}, 1),
    (0, "-0.0", {}, 1),
    ("1234.5", "1,234.50", {}, 1),
    ("1,234.50", "1234.5", {}, 1),
    ("1234567", "1 234 567", {}, 1),
    ("1234567", "1\u202f234\u00a0567", {}, 1),
    ("1234567", "1'234'567", {}, 1),
    ("1234567", "1_234_567", {}, 1),
    ("1234.5", "1.234,5", {}, 1),
    ("1234.5", "1.234,5", {"decimal": ","}, 1),
    ("1.5", "1,5", {}, 1),
    ("1234", "1,234", {}, 1),
    ("1.234", "1,234", {}, 0),
    ("1,234", "1,234", {"decimal": ","}, 1),
    ("0.5", "50%", {}, 1),
    ("50%", "0.5", {}, 1),
    ("50%", "50 percent", {}, 1),
    ("50", "50%", {}, 1),
    ("0.5", "0.5%", {}, 0),
    ("1000", "1e3", {}, 1),
    ("1500", "1.5 × 10^3", {}, 1),
    ("1500", r"1.5 \times 10^{3}", {}, 1),
    ("1000000", "10⁶", {}, 1),
    ("0.75", "3/4", {}, 1),
    ("3/4", "0.75", {}, 1),
    ("1/3", "0.333", {}, 0),
    ("1/3", "0.333", {"tolerance": 0.001}, 1),
    ("1/3", "0.333", {"relative": 0.01}, 1),
    ("1.5", "1 1/2", {}, 1),
    ("1.5", "1½", {}, 1),
    ("0.75", r"\frac{3}{4}", {}, 1),
    ("-5", "\u22125", {}, 1),
    ("-5", "5", {}, 0),
    ("42", "42 apples", {}, 1),
    ("42", "forty-two", {}, 0),
    ("7", "seven", {}, 1),
    ("5 km", "5000 m", {}, 1),
    ("5 km", "5", {}, 1),
    ("5 km", "5 kg", {}, 0),
    ("90", "1.5 hours", {"unit": "min"}, 1),
    ("$5", "€5", {}, 0),
    ("$5", "5 dollars", {}, 1),
    ("5", "€5", {}, 1),
    ("3000000", "3 million", {}, 1),
    ("1000", "$1,000 per month", {}, 1),
    (0.1, "0.1", {}, 1),
    (1 / 3, "0.3333333333333333", {}, 1),
    (Fraction(1, 3), "1/3", {}, 1),
    (10**30, "1" + "0" * 30, {}, 1),
    (10**30 + 1, "1" + "0" * 30, {}, 0),
    (999, "10", {}, 0),
    ("42", "The total is 42.", {}, 1),
    ("42", "6 * 7 = 42", {}, 1),
    ("42", "I have 6 boxes of 7 bolts, so there are 42 bolts in all.", {}, 1),
    ("42", "The answer is 42 because 6 * 7 = 42 and not 41.", {}, 1),
    ("42", "#### 42", {}, 1),
    ("42", r"So \boxed{42}. That beats 17.", {}, 1),
    ("42", r"\boxed{40}, or \boxed{42}", {}, 0),
    ("42", "It is 41 or 42", {}, 0),
    ("42", "40, 41, 42", {}, 0),
    ("42", "40 41 42", {}, 0),
    ("42", "40\n41\n42", {}, 0),
    ("42", "40-42", {}, 0),
    ("42", "Answer: 41, 42", {}, 0),
    ("42", "nan", {}, 0),
    ("42", "", {}, 0),
    ("42", "1e999999999", {}, 0),
    ("42", "9" * 100_000, {}, 0),
    ("42", "42", {"extract": "marked"}, 0),
    ("42", "it is 42", {"extract": "whole"}, 0),
    ("-3", "x = -3", {}, 1),
    ("0.5", ".5", {}, 1),
]


@pytest.mark.parametrize(("expected", "text", "options", "reward"), NUMBERS)
def test_numbers_are_compared_by_value(expected: Any, text: str, options: dict[str, Any], reward: float) -> None:
    """Currency, separators, percent, exponents, fractions and units do not matter; several numbers earn nothing."""
    assert answers.number(text, expected, **options).reward == reward


DATES: list[tuple[str, str, str | None, float]] = [
    ("2024-03-05", "March 5, 2024", None, 1),
    ("2024-03-05", "5 March 2024", None, 1),
    ("2024-03-05", "5th of March, 2024", None, 1),
    ("2024-03-05", "Mar. 5 2024", None, 1),
    ("2024-03-05", "05-Mar-2024", None, 1),
    ("2024-03-05", "Tuesday, March 5, 2024", None, 1),
    ("2024-03-05", "Monday, March 5, 2024", None, 0),
    ("2024-03-05", "2024/3/5", None, 1),
    ("2024-03-05", "20240305", None, 1),
    ("2024-03-05", "2024-03-05T10:00:00Z", None, 1),
    ("2024-03-05", "It happened on March 5, 2024.", None, 1),
    ("2024-03-05", "MARCH 5, 2024", None, 1),
    ("2024-03-05", "03/05/2024", None, 0),
    ("2024-03-05", "03/05/2024", "month_first", 1),
    ("2024-03-05", "03/05/2024", "day_first", 0),
    ("2024-03-05", "05/03/2024", "%d/%m/%Y", 1),
    ("2024-03-05", "05.03.2024", "DD.MM.YYYY", 1),
    ("2024-03-25", "03/25/2024", None, 1),
    ("2024-03-25", "25/03/2024", None, 1),
    ("2024-03-03", "03/03/2024", None, 1),
    ("2024-03-05", "3/5/24", None, 0),
    ("2024-03-05", "3/5/24", "month_first", 1),
    ("2024-02-29", "February 30, 2024", None, 0),
    ("2024-03-05", "March 5", None, 0),
    ("2024-03-05", "March 5, 2024 or March 6, 2024", None, 0),
    ("2024-03-05", "March 5, 2024, that is 2024-03-05", None, 1),
    ("2024-03-05", "", None, 0),
    ("2024-03-05 09:00", "2024-03-05T09:00:00", None, 1),
    ("2024-03-05 09:00", "March 5, 2024 at 9:00 am", None, 1),
    ("2024-03-05 21:00", "March 5, 2024, 9 pm", None, 1),
    ("2024-03-05 09:00", "2024-03-05 10:00", None, 0),
    ("2024-03-05 09:00", "2024-03-05", None, 0),
    ("2024-03-05T09:00:00Z", "2024-03-05T10:00:00+01:00", None, 1),
]


@pytest.mark.parametrize(("expected", "text", "format", "reward"), DATES)
def test_dates_are_compared_as_days_and_moments(expected: str, text: str, format: str | None, reward: float) -> None:
    """However they are written, unless they could be read two ways and no format is declared."""
    assert answers.date(text, expected, format=format).reward == reward


def test_an_ambiguous_date_says_so() -> None:
    """The note is what the row's author needs, since the model may have been right."""
    assert "ambiguous date" in answers.date("03/05/2024", "2024-03-05").reason


BOOLEANS: list[tuple[Any, str, float]] = [
    ("true", "True", 1),
    (True, "yes", 1),
    (True, "Yes, because it is even.", 1),
    (False, "No.", 1),
    (False, "FALSE", 1),
    ("no", "0", 1),
    (True, "The answer is yes", 1),
    (True, "yes and no", 0),
    (True, "True or false", 0),
    (True, "not true", 0),
    (True, "It isn't true", 0),
    (False, "nope", 0),
    (True, "", 0),
    (True, "I think that is true.", 1),
    (True, "Yes. No.", 0),
    (False, r"\boxed{\text{false}}", 1),
]


@pytest.mark.parametrize(("expected", "text", "reward"), BOOLEANS)
def test_booleans_in_their_usual_words(expected: Any, text: str, reward: float) -> None:
    """Saying both earns nothing."""
    assert answers.boolean(text, expected).reward == reward


CITIES = {"A": "Paris", "B": "Rome", "C": "London", "D": "Berlin"}
CHOICES: list[tuple[str, str, Any, float]] = [
    ("B", "B", None, 1),
    ("B", "b", None, 1),
    ("B", "(B)", None, 1),
    ("B", "B.", None, 1),
    ("B", "**B**", None, 1),
    ("B", "Option B", None, 1),
    ("B", "The answer is B.", None, 1),
    ("B", "The answer is (B) because Rome is in Italy", None, 1),
    ("B", "B) Rome", CITIES, 1),
    ("B", "B: Paris", CITIES, 0),
    ("B", "Rome", CITIES, 1),
    ("B", "It must be Rome.", CITIES, 1),
    ("B", "rome", ["Paris", "Rome"], 1),
    ("Rome", "rome", ["Paris", "Rome"], 1),
    ("D", "A B C D all of them", None, 0),
    ("D", "A, B, C, D", None, 0),
    ("D", "A\nB\nC\nD", None, 0),
    ("D", "Answer: A\nAnswer: B\nAnswer: C\nAnswer: D", None, 0),
    ("D", "Answer: A, B, C, D", None, 0),
    ("D", r"\boxed{A}\boxed{B}\boxed{C}\boxed{D}", None, 0),
    ("B", "Paris, Rome, London and Berlin", CITIES, 0),
    ("B", "not B", None, 0),
    ("B", "A or B", None, 0),
    ("B", "E", None, 0),
    ("B", "", None, 0),
    ("A", "A dog is an animal", None, 0),
    ("A", "A dog is an animal, so (A)", None, 1),
    ("all", "all", ["none", "all"], 1),
]


@pytest.mark.parametrize(("expected", "text", "options", "reward"), CHOICES)
def test_one_choice_and_only_one(expected: str, text: str, options: Any, reward: float) -> None:
    """By label, by text or by both when they agree; naming several is naming none."""
    assert answers.choice(text, expected, options).reward == reward


BOXED: list[tuple[Any, str, float]] = [
    ("42", r"So \boxed{42}", 1),
    ("42", r"\boxed{41} is wrong, rather \boxed{42.0}", 1),
    ("42", "42", 0),
    ("x+1", r"\boxed{x+1}", 1),
    (r"\frac{1}{2}", r"\boxed{\frac{1}{2}}", 1),
    ("{1}", r"\boxed{{1}}", 1),
    ("42", r"\boxed{42", 0),
]


@pytest.mark.parametrize(("expected", "text", "reward"), BOXED)
def test_boxed_answers(expected: Any, text: str, reward: float) -> None:
    r"""The last complete `\boxed{…}`, braces balanced, and nothing else."""
    assert answers.boxed(text, expected).reward == reward


LISTS: list[tuple[list[Any], str, dict[str, Any], float]] = [
    (["a", "b"], "a, b", {}, 1),
    (["a", "b"], "b and a", {}, 1),
    (["a", "b"], '["a", "b"]', {}, 1),
    (["a", "b"], "- a\n- b", {}, 1),
    (["a", "b"], "1. b\n2. a", {}, 1),
    (["a", "b"], "a; b", {}, 1),
    (["a", "b"], "[a, b]", {}, 1),
    (["a", "b"], "Answer: A, B", {}, 1),
    (["a", "b"], "b, a", {"ordered": True}, 0),
    (["a", "b"], "a, b", {"ordered": True}, 1),
    (["a", "b"], "a, b, c", {}, 0),
    (["a", "b"], "a", {}, 0),
    (["a", "b"], "a, a", {}, 0),
    (["a", "a"], "a, a", {}, 1),
    ([1, 2], "1.0, 2", {}, 1),
    ([1000, 2], "1,000; 2", {}, 1),
    (["a", "b"], "a, c", {"partial": True}, 0.5),
    (["New York"], "New York", {}, 1),
]


@pytest.mark.parametrize(("expected", "text", "options", "reward"), LISTS)
def test_lists_as_models_write_them(expected: list[Any], text: str, options: dict[str, Any], reward: float) -> None:
    """Any order unless told so; each item as often as expected; more is not better."""
    assert answers.items(text, expected, **options).reward == reward


@pytest.mark.parametrize(
    ("call", "expected"),
    [(answers.number, "many"), (answers.number, True), (answers.date, "03/05/2024"), (answers.boolean, "maybe"),
     (answers.choice, "Z"), (answers.string, []), (answers.items, "a, b")],
)  # fmt: skip
def test_an_expected_value_that_cannot_be_read_is_no_zero(call: Any, expected: Any) -> None:
    """The row is at fault, so the verdict fails instead of scoring the model."""
    with pytest.raises(ValueError, match="expected"):
        call("x", expected)


def test_match_options_pick_the_verdict() -> None:
    """`match` as a row or config declares it; unknown types and options are refused, not ignored."""
    match = {"case": "ignore", "trim": True, "unicode": "nfc"}
    assert answers.grade("  paris\n", "Paris", {**match, "type": "string"}).reward == 1
    assert answers.grade("$0.00", "0", {**match, "type": "number"}).reward == 1
    assert answers.grade("True", "true", {**match, "type": "bool"}).reward == 1
    with pytest.raises(ValueError, match="numbr"):
        answers.grade("1", "1", {"type": "numbr"})
    with pytest.raises(ValueError, match="tolerence"):
        answers.grade("1", "1", {"type": "number", "tolerence": 1})
    with pytest.raises(ValueError, match="case"):
        answers.grade("1", "1", {"type": "string", "case": "lower"})
