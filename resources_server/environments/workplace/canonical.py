"""One form for every value, so that two ways to write a thing compare equal: `30` and `"30"`, `2023-12-01 09:00` and `…09:00:00`.

A column's kind says which differences matter. Pure functions; nothing here knows a table.
"""

import re
import unicodedata
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Literal

Kind = Literal["text", "address", "choice", "number", "date", "moment"]
"""`text`: case and outer space do not matter · `address`: an e-mail address · `choice`: one of a fixed set, case matters ·
`number` · `date`: YYYY-MM-DD · `moment`: YYYY-MM-DD HH:MM:SS."""

MOMENT = re.compile(r"(\d{4}-\d{1,2}-\d{1,2})(?:[T ]+(\d{1,2}:\d{2})(?::(\d{2})(?:\.0+)?)?)?Z?", re.ASCII)
ADDRESS = re.compile(r"[^\s@,;<>]+@[^\s@,;<>]+")  # WorkBench has customers at bare host names
LONGEST_NUMBER = 32  # characters; Decimal would happily spend seconds on an exponent of nine digits


def canonical(kind: Kind, value: str) -> str:
    """The form of a value in which two cells are compared; a value that does not fit its kind is compared as text."""
    trimmed = value.strip()
    if kind == "choice":
        return trimmed
    exact = {"number": number, "date": day, "moment": moment}.get(kind)
    return (exact(trimmed) if exact else None) or unicodedata.normalize("NFC", trimmed).casefold()


def number(text: str) -> str | None:
    """Plain decimal digits (`30.0` -> `30`), or None if the text is no finite number."""
    if len(text) > LONGEST_NUMBER:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    if not value.is_finite() or abs(value.adjusted()) > LONGEST_NUMBER:
        return None
    plain = f"{value:f}" if value else "0"  # -0.0 is 0
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def moment(text: str) -> str | None:
    """`YYYY-MM-DD HH:MM:SS` (midnight where only a day is given), or None if the text is no such time."""
    found = MOMENT.fullmatch(text)
    if not found:
        return None
    date, minutes, seconds = found.groups()
    try:
        return str(datetime.strptime(f"{date} {minutes or '0:00'}:{seconds or '00'}", "%Y-%m-%d %H:%M:%S"))
    except ValueError:
        return None


def day(text: str) -> str | None:
    """`YYYY-MM-DD`, a time of day cut off, or None if the text is no such date."""
    found = moment(text)
    return found and found[:10]


def address(text: str) -> str | None:
    """The e-mail address in lower case, or None if the text is none."""
    return text.lower() if ADDRESS.fullmatch(text) else None
