"""Is this answer the expected one? Text, numbers, dates, booleans, choices and lists, each a pure function.

All take what the model wrote, in full, and what the row expects. The final answer is looked up first (`finals`):
the last marked one, or the whole text. `extract="whole"` skips that. An expected value that cannot be read is
the row's fault: `ValueError`, which is a failed verdict and not a zero.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date as calendar_date
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from resources_server.grading import dates, finals, numbers
from resources_server.grading.choices import NEGATION, named_in, option_of, options_of
from resources_server.grading.forms import Form, plain
from resources_server.grading.grade import Grade, right, short, wrong
from resources_server.grading.units import canonical_unit

Extract = Literal["auto", "whole", "marked"]
TRUE = frozenset(["true", "yes", "y", "t", "1", "correct", "right"])
FALSE = frozenset(["false", "no", "n", "f", "0", "incorrect", "wrong"])
PAIRS = (("true", "false"), ("yes", "no"), ("correct", "incorrect"))
HEDGED = re.compile(r"(?:\b(?:not|n't|than|least|most|under|over|below|above)|[<>≤≥≠])\s*[$€£]?\s*$", re.I)
ALTERNATIVE = re.compile(
    r"(?:\s|[,;/|&:()\[\]'\"]|\b(?:or|and|to|maybe|either|perhaps|through|versus|vs)\b|[-–—])*", re.I
)


def string(
    text: str,
    expected: str | Sequence[str],
    *,
    form: Form = Form(),  # noqa: B008 (frozen)
    extract: Extract = "auto",
    **options: Any,
) -> Grade:
    """Same text, up to what `form` lets pass; with several `expected`, any of them. Options are `Form`'s fields."""
    form = Form(**options) if options else form
    accepted = [expected] if isinstance(expected, str) else list(expected)
    if not accepted or not all(isinstance(each, str) for each in accepted):
        raise ValueError(f"the expected text is missing: {expected!r}")
    said, note = _said(text, extract)
    if said is None:
        return wrong(note)
    candidates = {form.of(said)} if extract == "whole" else {form.of(said), form.of(finals.unwrapped(said))}
    if candidates & {form.of(each) for each in accepted}:
        return right()
    return wrong(f"answered {short(said)}, expected {short(accepted[0] if len(accepted) == 1 else accepted)}")


def number(
    text: str,
    expected: int | float | Decimal | Fraction | str,
    *,
    tolerance: float = 0.0,
    relative: float = 0.0,
    unit: str | None = None,
    decimal: str = ".",
    extract: Extract = "auto",
) -> Grade:
    """Same value. `tolerance` is absolute, `relative` a share of the expected value; both 0 means exactly equal.

    An answer without a unit is taken to be in the expected one; one with another unit is converted, or wrong. A
    percent sign means a hundredth, except beside an expected bare number above 1 (50 % of an expected 50).
    """
    wanted = _expected_number(expected, decimal)
    wanted_unit = canonical_unit(unit) if unit else wanted.unit
    said, note = _said(text, extract)
    got = None if said is None else _number_in(said, decimal, extract)
    if isinstance(got, str) or got is None:
        return wrong(note or got or f"no number in {short(text)}")
    values = _comparable(got, wanted, wanted_unit)
    if not values:
        return wrong(f"answered in {got.unit}, expected {wanted_unit}")
    allowed = max(Fraction(tolerance), abs(wanted.value) * Fraction(relative))
    for value in values:
        if abs(value - wanted.value) <= allowed or (isinstance(expected, float) and _float(value) == expected):
            return right()
    return wrong(f"answered {short(said)}, expected {expected}")


def date(text: str, expected: str | calendar_date, *, format: str | None = None, extract: Extract = "auto") -> Grade:
    """Same day, and same moment when `expected` has a time. `format` (`day_first`, `month_first`, `DD/MM/YYYY`, …)
    says how 03/05/2024 is meant; without one it is ambiguous and earns nothing."""
    wanted, needs_time = _expected_date(expected, format)
    said, note = _said(text, extract)
    if said is None:
        return wrong(note)
    found = dates.find(finals.unwrapped(said), format)
    if extract == "whole":
        whole = dates.read(said, format)
        found = [whole] if whole else []
    if not found:
        return wrong(f"no date in {short(said)}")
    unclear = next((each.note for each in found if each.value is None), None)
    if unclear:
        return wrong(unclear)
    moments = {each.value for each in found if each.value is not None}
    if len({moment if needs_time else moment.date() for moment in moments}) > 1:
        return wrong(f"{len(moments)} different dates in the answer")
    moment = moments.pop()
    if needs_time and not found[0].has_time:
        return wrong(f"answered {moment.date()} without a time, expected {wanted}")
    same = dates.same_moment(moment, wanted) if needs_time else moment.date() == wanted.date()
    return right() if same else wrong(f"answered {moment if needs_time else moment.date()}, expected {expected}")


def boolean(text: str, expected: bool | str, *, extract: Extract = "auto") -> Grade:
    """Same truth value: true/false, yes/no, 1/0, correct/incorrect. A text that says both says neither."""
    wanted = expected if isinstance(expected, bool) else _truth(plain(str(expected)).casefold())
    if wanted is None:
        raise ValueError(f"the expected value {expected!r} is no boolean")
    said, note = _said(text, extract)
    got = None if said is None else _truth_in(finals.unwrapped(said), extract)
    if got is None:
        return wrong(note or f"neither true nor false: {short(text)}")
    return right() if got == wanted else wrong(f"answered {got}, expected {wanted}")


def choice(
    text: str,
    expected: str,
    choices: Sequence[str] | Mapping[str, str] | None = None,
    *,
    extract: Extract = "auto",
) -> Grade:
    """Same option of a question with several. `choices` are the labels, or label -> its text; then the text counts
    as well as the label, and a label with another option's text counts as neither. Naming several earns nothing."""
    options = options_of(choices, expected)
    wanted = option_of(expected, options)
    if wanted is None:
        raise ValueError(f"the expected choice {expected!r} is none of {', '.join(options)}")
    said, note = _said(text, extract)
    got = None if said is None else option_of(said, options)
    if got is None and said is not None and extract != "whole":
        got = named_in(said, options)
    if got is None:
        return wrong(note or f"no single choice in {short(text)}")
    return right() if got == wanted else wrong(f"answered {got}, expected {wanted}")


def boxed(text: str, expected: Any, *, kind: str = "auto", **options: Any) -> Grade:
    r"""What stands in the last `\boxed{…}`, compared as `kind`; `auto` compares numbers as numbers, else text."""
    inner = finals.boxed(text)
    if inner is None:
        return wrong(r"no \boxed{…} in the answer")
    if kind == "auto":
        kind = "number" if numbers.read(str(expected)) is not None else "string"
    return grade(inner, expected, {"type": kind, "extract": "whole" if kind == "choice" else "auto", **options})


def items(
    text: str,
    expected: Sequence[Any],
    *,
    ordered: bool = False,
    partial: bool = False,
    kind: str = "auto",
    extract: Extract = "auto",
    **options: Any,
) -> Grade:
    """Same list: a JSON array, bullets, lines, or items with commas between. Order counts when `ordered`; each item
    as often as expected. `partial` gives the F1 of the items instead of all or nothing, so that more is not better."""
    if isinstance(expected, str):
        raise ValueError(f"the expected list is a text: {expected!r}")
    said, note = _said(text, extract)
    if said is None:
        return wrong(note)
    got = split(said, several=len(expected) != 1)
    same = _same_item(kind, options)
    aligned = zip(got, expected, strict=False)
    hits = sum(same(*pair) for pair in aligned) if ordered else _pairs(got, list(expected), same)
    if hits == len(got) == len(expected):
        return right()
    reason = f"{hits} of {len(expected)} expected items among {len(got)}"
    return Grade(2 * hits / (len(got) + len(expected)), reason) if partial else wrong(reason)


def grade(text: str, expected: Any, match: Mapping[str, Any]) -> Grade:
    """The verdict that a row's or config's `match: {type: string, case: ignore, …}` asks for; the other keys are that
    function's parameters. `number`'s and `date`'s forms ignore case and white space by themselves."""
    options = dict(match)
    kind = str(options.pop("type", "string"))
    if kind not in KINDS:
        raise ValueError(f"match type {kind!r} is none of {', '.join(KINDS)}")
    if kind not in TEXT_KINDS:
        options = {name: value for name, value in options.items() if name not in Form.__dataclass_fields__}
    try:
        return KINDS[kind](text, expected, **options)
    except TypeError as error:
        raise ValueError(f"match {dict(match)}: {error}") from error


def split(text: str, *, several: bool = True) -> list[str]:
    """The items of a list as a model writes one."""
    text = finals.unwrapped(text)
    if text.startswith("["):
        try:
            loaded = json.loads(text)
        except ValueError:
            text = text.strip("[]")
        else:
            return [each if isinstance(each, str) else json.dumps(each) for each in loaded]
    text = re.sub(r"^[{(](.*)[)}]$", r"\1", text, flags=re.S)
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1:
        parts = [re.sub(r"^\s*(?:[-*•]|\d+[.)])\s+", "", line).strip().rstrip(",;") for line in lines]
    elif ";" in text:
        parts = text.split(";")
    else:
        parts = re.split(r",\s*(?:and\s+|&\s+)?(?!\d{3}(?:\D|$))|\s+and\s+", text) if several else [text]
    return [finals.unwrapped(part) for part in parts if part.strip()]


def _said(text: str, extract: Extract) -> tuple[str | None, str]:
    if not isinstance(text, str):
        raise ValueError(f"the answer is {type(text).__name__}, not text")
    if extract == "whole":
        return text, ""
    found = finals.final(text)
    if found.text is None:
        return None, found.note
    if extract == "marked" and not found.marked:
        return None, "the answer is not marked (Answer: …, <answer>…</answer> or \\boxed{…})"
    return found.text, ""


def _expected_number(expected: Any, decimal: str) -> numbers.Number:
    if isinstance(expected, bool):
        raise ValueError(f"the expected value {expected!r} is no number")
    if isinstance(expected, Fraction):
        return numbers.Number(expected)
    read = numbers.read(str(expected), decimal=decimal if isinstance(expected, str) else ".")
    if read is None:
        raise ValueError(f"the expected value {expected!r} is no number")
    return read


def _number_in(said: str, decimal: str, extract: Extract) -> numbers.Number | str | None:
    """The number that `said` is or, in prose, its last; a text for why there is none."""
    text = finals.unwrapped(said)
    whole = numbers.read(text, decimal=decimal)
    if whole is None and "=" in text:
        whole = numbers.read(text.rpartition("=")[2], decimal=decimal)
    if whole is not None or extract == "whole":
        return whole
    found = numbers.all_in(text)
    if not found:
        return None
    (start, end, literal), before = found[-1], found[:-1]
    if before and ALTERNATIVE.fullmatch(text[before[-1][1] : start]) and before[-1][2] != literal:
        return f"several numbers in the answer: {short(text)}"
    if HEDGED.search(text[:start]) or re.match(r"\s*[+?]", text[end:]):
        return f"no settled number in the answer: {short(text)}"
    tail = re.match(r"\s*(?:%|[^\W\d_]+)?", text[end:])
    beside = text[start:end] + (tail.group() if tail else "")
    known = numbers.read(beside, decimal=decimal)
    bare = numbers.read(literal, decimal=decimal)
    if known and (known.percent or known.unit in UNIT_NAMES):
        return known
    return bare


def _comparable(got: numbers.Number, wanted: numbers.Number, unit: str) -> list[Fraction]:
    """The values that `got` may stand for, in the unit that `wanted` is in; none when the units do not agree."""
    if not unit and got.unit:
        return [got.value]  # 42 apples, where 42 was expected
    value = numbers.convert(got, unit)
    if value is None:
        return []
    if got.percent != wanted.percent:
        bare = wanted if got.percent else got
        if abs(bare.value) > 1:  # 50 % beside 50; a share above 1 would be written as a percentage itself
            return [value, got.value * 100 if got.percent else got.value / 100]
    return [value]


def _float(value: Fraction) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _expected_date(expected: str | calendar_date, format: str | None) -> tuple[datetime, bool]:
    if isinstance(expected, datetime):
        return expected, True
    if isinstance(expected, calendar_date):
        return datetime(expected.year, expected.month, expected.day), False
    found = dates.read(str(expected), format)
    if found is None or found.value is None:
        raise ValueError(f"the expected date {expected!r} cannot be read: {found.note if found else 'no date'}")
    return found.value, found.has_time


def _truth(word: str) -> bool | None:
    return True if word in TRUE else False if word in FALSE else None


def _truth_in(said: str, extract: Extract) -> bool | None:
    text = plain(said).casefold().strip(" .!")
    exact = _truth(text)
    if exact is not None or extract == "whole":
        return exact
    words = set(re.findall(r"\w+", text))
    if any(yes in words and no in words for yes, no in PAIRS):
        return None
    leading = re.match(r"(yes|no|true|false|correct|incorrect)(?:[\s]*[,.;:!—-]|$)", text)
    if leading:
        return _truth(leading.group(1))
    spoken = {word for pair in PAIRS for word in pair} & words
    if len(spoken) != 1 or NEGATION.search(text):
        return None
    return _truth(spoken.pop())


def _same_item(kind: str, options: Mapping[str, Any]) -> Callable[[str, Any], bool]:
    def same(said: str, wanted: Any) -> bool:
        as_number = kind == "auto" and (not isinstance(wanted, str) or numbers.read(wanted) is not None)
        how = ("number" if as_number else "string") if kind == "auto" else kind
        return grade(said, wanted, {"type": how, "extract": "whole", **options}).reward == 1.0

    return same


def _pairs(got: list[str], expected: list[Any], same: Callable[[str, Any], bool]) -> int:
    """How many of `got` can be paired off with an expected item of their own."""
    left = Counter(range(len(expected)))
    for each in got:
        hit = next((index for index in left if same(each, expected[index])), None)
        if hit is not None:
            del left[hit]
    return len(expected) - len(left)


UNIT_NAMES = {
    canonical_unit(unit)
    for unit in [
        "$",
        "€",
        "£",
        "¥",
        "km",
        "m",
        "cm",
        "mm",
        "kg",
        "g",
        "mg",
        "lb",
        "oz",
        "s",
        "min",
        "h",
        "day",
        "week",
        "l",
        "ml",
        "kb",
        "mb",
        "gb",
    ]
}
TEXT_KINDS = {"string", "boxed", "items"}
KINDS: dict[str, Callable[..., Grade]] = {
    "string": string,
    "number": number,
    "date": date,
    "boolean": boolean,
    "bool": boolean,
    "choice": choice,
    "boxed": boxed,
    "items": items,
    "list": items,
}
