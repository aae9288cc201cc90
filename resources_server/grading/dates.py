"""Dates and moments as people and models write them. What could be read two ways is not guessed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from resources_server.grading.forms import plain

NAMES = "january february march april may june july august september october november december"
MONTHS = {name: number for number, name in enumerate(NAMES.split(), start=1)}
MONTHS |= {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH = "(?P<month>" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.(?=\s))?"
_WEEKDAY = r"(?:(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+)?(?:the\s+)?"
_YEAR = r"(?P<year>\d{4})"
CLOCK = re.compile(
    r"(?:T|,?\s+(?:at\s+)?)(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?(?::(?P<second>\d{2})(?P<part>[.,]\d{1,9})?)?"
    r"\s*(?P<half>[ap]\.?m\.?)?(?:\s*(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2}))?(?![\d:])",
    re.I,
)
WRITTEN = [
    re.compile(rf"(?<![\d-]){_YEAR}(?P<sep>[-/.])(?P<month>\d{{1,2}})(?P=sep)(?P<day>\d{{1,2}})(?!\d|[-/]\d)", re.I),
    re.compile(rf"\b{_WEEKDAY}{_MONTH}[\s-]*(?:the\s+)?{_DAY}[\s,-]*{_YEAR}(?!\d)", re.I),
    re.compile(rf"(?<!\d){_WEEKDAY}{_DAY}(?:\s+of)?[\s-]*{_MONTH}[\s,-]*{_YEAR}(?!\d)", re.I),
    re.compile(rf"\b{_YEAR}[\s,-]+{_MONTH}[\s,-]*{_DAY}(?!\d)", re.I),
    re.compile(r"^(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})(?=$|T)"),
]
NUMERIC = re.compile(r"(?<![\d/.-])(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})(?!\d|[-/.]\d)")
FORMATS = {"day_first": "dmy", "dmy": "dmy", "dd/mm/yyyy": "dmy", "%d/%m/%y": "dmy", "d/m/y": "dmy", "eu": "dmy",
           "month_first": "mdy", "mdy": "mdy", "mm/dd/yyyy": "mdy", "%m/%d/%y": "mdy", "m/d/y": "mdy", "us": "mdy",
           "iso": "", "yyyy-mm-dd": "", "%y-%m-%d": "", "": ""}  # fmt: skip


@dataclass(frozen=True)
class Found:
    """One date in a text: its value, or why it has none (`ambiguous date 03/05/2024: …`)."""

    value: datetime | None
    has_time: bool
    note: str
    start: int
    end: int


def order_of(format: str | None) -> str:
    """`dmy`, `mdy` or "" (nothing declared), from the ways people declare it; ValueError for any other."""
    key = re.sub(r"[-. ]", "/", (format or "").casefold()) if "%" in (format or "") else (format or "").casefold()
    key = key.replace("%y/%m/%d", "%y-%m-%d")
    key = re.sub(r"(?<=[dmy])[-. ](?=[dmy])", "/", key) if not key.startswith("y") and "_" not in key else key
    if key not in FORMATS:
        raise ValueError(f"date format {format!r} is none of {', '.join(sorted(filter(None, FORMATS)))}")
    return FORMATS[key]


def find(text: str, format: str | None = None) -> list[Found]:
    """Every date in `text`, in the order in which they stand."""
    order = order_of(format)
    text = plain(text)
    found = sorted([*_written(text), *_numeric(text, order)], key=lambda each: (each.start, -each.end))
    kept: list[Found] = []
    for each in found:
        if not kept or each.start >= kept[-1].end:
            kept.append(each)
    return kept


def read(text: str, format: str | None = None) -> Found | None:
    """The date that `text` is, as a whole (a final full stop does not matter); None when it is anything else."""
    found = find(text, format)
    whole = plain(text)
    if len(found) == 1 and not whole[: found[0].start].strip() and not whole[found[0].end :].strip(" ."):
        return found[0]
    return None


def _written(text: str) -> Iterator[Found]:
    for pattern in WRITTEN:
        for match in pattern.finditer(text):
            groups = match.groupdict()
            month = groups["month"].casefold()
            number = MONTHS.get(month) or int(month)
            yield _made(text, match, int(groups["year"]), number, int(groups["day"]), groups.get("weekday"))


def _numeric(text: str, order: str) -> Iterator[Found]:
    for match in NUMERIC.finditer(text):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        if len(match[4]) == 2:
            if not order:
                yield Found(None, False, f"ambiguous date {match[0]}: two-digit year", match.start(), match.end())
                continue
            year += 2000 if year < 69 else 1900  # POSIX's rule for two-digit years
        as_dmy, as_mdy = (second, first), (first, second)
        readable = [month for month, day in (as_dmy, as_mdy) if 1 <= month <= 12 and 1 <= day <= 31]
        if not order and len(readable) == 2 and first != second:
            note = f"ambiguous date {match[0]}: day and month could be either, and no format is declared"
            yield Found(None, False, note, match.start(), match.end())
            continue
        month, day = as_dmy if order == "dmy" or (not order and second <= 12 < first) else as_mdy
        yield _made(text, match, year, month, day, None)


def _made(text: str, match: re.Match[str], year: int, month: int, day: int, weekday: str | None) -> Found:
    start, end = match.start(), match.end()
    try:
        value = date(year, month, day)
    except ValueError:
        return Found(None, False, f"there is no date {match[0]}", start, end)
    if weekday and not DAYS[value.weekday()].startswith(weekday.casefold()[:3]):
        return Found(None, False, f"{match[0]} is a {DAYS[value.weekday()].title()}", start, end)
    clock = CLOCK.match(text, end)
    moment = _moment(clock) if clock else None
    if clock is None or moment is None:
        return Found(datetime.combine(value, time()), False, "", start, end)
    return Found(datetime.combine(value, moment), True, "", start, clock.end())


def _moment(clock: re.Match[str]) -> time | None:
    """The time of day; None when these digits are none (`in 2024 12 people`: an hour alone needs am or pm)."""
    hour, half = int(clock["hour"]), (clock["half"] or "").casefold().replace(".", "")
    if clock["minute"] is None and not half:
        return None
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    zone = datetime.strptime(_offset(clock["zone"]), "%z").tzinfo if clock["zone"] else None
    micro = int(float("0." + (clock["part"] or "0")[1:].ljust(1, "0")) * 1e6)
    try:
        return time(hour, int(clock["minute"] or 0), int(clock["second"] or 0), micro, tzinfo=zone)
    except ValueError:
        return None


def _offset(zone: str) -> str:
    return "+0000" if zone.upper() in ("Z", "UTC", "GMT") else zone


def same_moment(one: datetime, other: datetime) -> bool:
    """Equal as instants when both have a zone, else as the clock on the wall shows them."""
    if one.tzinfo and other.tzinfo:
        return one.astimezone(UTC) == other.astimezone(UTC)
    return one.replace(tzinfo=None) == other.replace(tzinfo=None)
