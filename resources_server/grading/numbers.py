"""Numbers as people and models write them, read exactly: `$1,234.50`, `1.5 × 10^3`, `1 1/2`, `50 %`, `3 million`."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

from resources_server.grading.forms import plain
from resources_server.grading.units import CURRENCIES, SCALES, UNITS, canonical_unit

MAX_CHARS = 1000  # longer is no number that a row expects, and exact arithmetic on it is not free
MAX_EXPONENT = 400  # 10^400 is past any float; without a bound 1e999999999 would fill the memory

SPACES = "\u00a0\u2007\u2009\u202f"
MINUS = str.maketrans(dict.fromkeys("\u2212\u2013\u2012\ufe63\uff0d\u2011\u2010", "-"))
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
SPELLED = "zero one two three four five six seven eight nine ten eleven twelve"
WORDS = {word: value for value, word in enumerate(SPELLED.split())}
_MAGNITUDE = "|".join(
    [
        r"\d{1,3}(?P<sep>[,'’_ " + SPACES + r"])\d{3}(?:(?P=sep)\d{3})*(?!\d)(?:\.\d+|(?<![,\d]{4}),\d{1,2}(?!\d))?",
        r"\d{1,3}(?:\.\d{3})+,\d+",  # 1.234,56
        r"\d{1,3}(?:\.\d{3}){2,}(?![\d.])",  # 1.234.567 can only be thousands
        r"\d+,\d{1,2}(?![\d,])",  # 1,5 cannot be thousands
        r"\d{1,2}(?:,\d{2})+,\d{3}(?!\d)(?:\.\d+)?",  # 12,34,567 as in India
        r"\d+\.?\d*",
        r"\.\d+",
    ]
)
LITERAL = re.compile(
    rf"(?P<sign>[+-]?)\s*(?P<money>us\$|[$€£¥₹₩₽])?\s*(?P<sign2>[+-]?)(?P<digits>(?:{_MAGNITUDE}))"
    r"(?:(?:\s*(?:[x×·*]|\\times|\\cdot)\s*10\s*(?:\^|\*\*)\s*\{?\s*|e)(?P<exponent>[+-]?\d+)\s*\}?)?",
    re.I,
)
POWER = re.compile(r"(?P<sign>[+-]?)10\s*(?:\^|\*\*)\s*\{?\s*(?P<exponent>[+-]?\d+)\s*\}?")
LATEX_FRACTION = re.compile(r"\\[dt]?frac\s*(?:\{\s*(-?\d+)\s*\}|(\d))\s*(?:\{\s*(-?\d+)\s*\}|(\d))")
SLASHED = re.compile(r"(?P<sign>[+-]?)\s*(?:(?P<whole>\d+)(?:\s+|-))?(?P<top>\d+)\s*[/⁄∕]\s*(?P<bottom>[+-]?\d+)")


@dataclass(frozen=True)
class Number:
    """An exact value and what stood beside it. `percent` means that the sign was there; `value` is then the
    share (50 % is 1/2). `unit` is lower case, a currency its three letters, "" when there is none."""

    value: Fraction
    unit: str = ""
    percent: bool = False


def read(text: str, *, decimal: str = ".") -> Number | None:
    """The number that `text` is, as a whole; None when it is anything else, or more than a number.

    `decimal="," ` reads 1.234,5 and 1,5 and 1.234 as the continent does. With the point, 1,234 is one thousand and
    so on, while 1,5 can only be one and a half.
    """
    if len(text) > MAX_CHARS:
        return None
    text = _spelled(text)
    if decimal == ",":
        text = _swap(text)
    found = _value(text)
    if found is None:
        return None
    value, money, rest = found
    return _dressed(value, money, rest.strip())


def all_in(text: str) -> list[tuple[int, int, str]]:
    """Start, end and text of every number literal in prose, ranges and fractions as they stand."""
    pattern = re.compile(rf"(?<![\w.,/^])(?:{SLASHED.pattern.replace('?P<sign>', '?:')}|{LITERAL.pattern})%?", re.I)
    return [(m.start(), m.end(), m.group().strip().rstrip(".")) for m in pattern.finditer(text)]


def convert(number: Number, unit: str) -> Fraction | None:
    """The value of `number` in `unit`; None when the two cannot be compared. A bare number is taken to be in it."""
    wanted = canonical_unit(unit)
    if number.unit in ("", wanted):
        return number.value
    theirs, ours = UNITS.get(number.unit), UNITS.get(wanted)
    if theirs is None or ours is None or theirs[0] != ours[0]:
        return None
    return number.value * theirs[1] / ours[1]


def _spelled(text: str) -> str:
    text = re.sub(r"10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+)", lambda m: "10^" + m.group(1).translate(SUPERSCRIPTS), text)
    text = re.sub(r"(\d)\s*([½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒])", r"\1 \2", text)
    text = plain(text.replace("\\,", "").replace("{,}", ",").replace("\\!", "")).translate(MINUS)
    text = text.replace("\\$", "$").replace("\\%", "%").replace("\\left", "").replace("\\right", "")
    text = LATEX_FRACTION.sub(lambda m: f" {m[1] or m[2]}/{m[3] or m[4]} ", text).strip()
    return "".join(str(unicodedata.digit(char, char)) if char.isdigit() else char for char in text)


def _swap(text: str) -> str:
    return text.translate(str.maketrans(",.", ".,"))


def _value(text: str) -> tuple[Fraction, str, str] | None:
    """Value, currency before it and what is left after it."""
    word, _, rest = text.partition(" ")
    if word.casefold() in WORDS:
        return Fraction(WORDS[word.casefold()]), "", rest
    code = re.match(r"(?P<money>[a-z]{2,3})\s+(?=[\d.+-])", text, re.I)
    money = ""
    if code and code.group("money").casefold() in CURRENCIES:
        money, text = code.group("money").casefold(), text[code.end() :]
    if (m := SLASHED.match(text)) and int(m["bottom"]):
        whole = Fraction(int(m["whole"] or 0)) + Fraction(int(m["top"]), int(m["bottom"]))
        return (-whole if m["sign"] == "-" else whole), money, text[m.end() :]
    if m := POWER.match(text):
        return _signed(Fraction(1), m["sign"], int(m["exponent"]), money, text[m.end() :])
    if m := LITERAL.match(text):
        digits = _digits(m["digits"])
        sign = "-" if "-" in (m["sign"] + m["sign2"]) else ""
        exponent = m["exponent"] or "0"
        rest = text[m.end() :]
        if len(exponent) <= 6 and digits is not None:
            return _signed(digits, sign, int(exponent), (m["money"] or money).casefold(), rest)
    return None


def _signed(value: Fraction, sign: str, exponent: int, money: str, rest: str) -> tuple[Fraction, str, str] | None:
    if abs(exponent) > MAX_EXPONENT:
        return None
    value *= Fraction(10) ** exponent
    return (-value if sign == "-" else value), money, rest


def _digits(text: str) -> Fraction | None:
    """A magnitude with its separators: the last of comma and point is the decimal one, when both are there."""
    if "," in text and "." in text and text.rindex(",") > text.rindex("."):
        text = text.replace(".", "").replace(",", ".")
    elif text.count(".") > 1:
        text = text.replace(".", "")
    elif re.fullmatch(r"[\d '’_]+,\d{1,2}", text):
        text = text.replace(",", ".")
    text = re.sub(rf"[,'’_ {SPACES}]", "", text)
    return Fraction("0" + text.rstrip(".")) if text.strip(".") else None


def _dressed(value: Fraction, money: str, rest: str) -> Number | None:
    """With scale word, percent sign, currency and unit after it; None when digits or a sentence follow."""
    unit = CURRENCIES.get(money, "")
    word, _, after = rest.partition(" ")
    scale = SCALES.get(word.casefold()) or (6 if word == "M" else None)
    if scale:
        value, rest = value * 10**scale, after.strip()
    if re.fullmatch(r"%|percent|per cent|pct\.?", rest, re.I):
        return Number(value / 100, "", percent=True)
    if (
        re.match(r"/\s*\d", rest)
        or re.search(r"[\d=]", re.sub(r"\^?-?[\d]\b|/[a-z]\w*", "", rest))
        or len(rest.split()) > 4
    ):
        return None
    if rest and not re.match(r"[^\W\d_]|°|/|\\|\(", rest) and rest.casefold() not in CURRENCIES:
        return None
    beside = canonical_unit(rest)
    if unit and beside in CURRENCIES.values() and beside != unit:
        return None
    return Number(value, unit or beside)
