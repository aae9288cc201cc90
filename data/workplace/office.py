"""What the makers of tasks look things up in: the whole tables, never a page of a search, and words for what they found."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TypeVar

import company
from company import Dice, Row

T = TypeVar("T")
Call = dict[str, str]

TODAY = company.NOW.date()  # a Thursday
FIRST = tuple(name.split()[0] for name in company.STAFF)
LENGTHS = (30, 45, 60, 90)  # minutes
TIMES = ("09:30", "10:00", "11:00", "13:30", "14:00", "15:30", "16:00")
DAY_START, DAY_END = "09:00", "18:00"  # as the system prompt says


class Unfit(Exception):
    """What was drawn makes no good task: nothing matches, too much does, or it would be ambiguous. Draw again."""


@dataclass(frozen=True)
class Draft:
    """A task in the making."""

    query: str
    calls: list[Call]  # the ground truth; [] where nothing is to be changed
    accept: list[list[Call]] = field(default_factory=list)  # other changes that are as right


@dataclass(frozen=True)
class Template:
    """A kind of task."""

    name: str
    toolkits: tuple[str, ...]  # what a solver needs, the directory aside
    draw: Callable[["Office", Dice, bool], Draft]  # the last argument: whether the condition is to hold
    conditional: bool = False  # most of its tasks are made so that the condition is false and nothing is to be done
    easy: bool = False  # one call, with everything it needs in the question


def template(
    *toolkits: str, conditional: bool = False, easy: bool = False
) -> Callable[[Callable[..., Draft]], Template]:
    """Make a function into a template of the same name. A conditional one is also told whether its condition is to hold."""

    def make(function: Callable[..., Draft]) -> Template:
        draw = function if conditional else lambda office, dice, _: function(office, dice)
        return Template(function.__name__, toolkits, draw, conditional, easy)

    return make


class Office:
    """The company's tables with the questions that tasks ask of them. Lists are oldest first."""

    def __init__(self) -> None:
        tables = company.tables()
        self.emails = sorted(tables["emails"], key=lambda row: row["sent_datetime"])
        self.events = sorted(tables["calendar_events"], key=lambda row: row["event_start"])
        self.tasks = tables["project_tasks"]
        self.customers = tables["customer_relationship_manager_data"]
        self.visits = tables["analytics_data"]

    def received(self, first_name: str) -> list[Row]:
        """Mail from a colleague."""
        return [
            row for row in self.emails if row["inbox/outbox"] == "inbox" and of(row, "sender/recipient") == first_name
        ]

    def sent(self, first_name: str) -> list[Row]:
        """Mail to a colleague."""
        return [
            row for row in self.emails if row["inbox/outbox"] == "outbox" and of(row, "sender/recipient") == first_name
        ]

    def mentioning(self, text: str) -> list[Row]:
        """Mail in whose subject or body all the words are, as a search would find it."""
        words = text.lower().split()
        return [row for row in self.emails if all(word in f"{row['subject']} {row['body']}".lower() for word in words)]

    def on(self, day: date) -> list[Row]:
        """The day's events."""
        return [row for row in self.events if row["event_start"].startswith(str(day))]

    def ahead(self, *, name: str = "", first_name: str = "") -> list[Row]:
        """Events still to come, with this name or this participant."""
        return [
            row
            for row in self.events
            if row["event_start"] > str(company.NOW)
            and (not name or row["event_name"] == name)
            and (not first_name or of(row, "participant_email") == first_name)
        ]

    def busy(self, day: date, start: str, minutes: int) -> bool:
        """Whether an event lies at least partly within this time."""
        begin = datetime.fromisoformat(f"{day} {start}:00")
        return any(starts(row) < begin + timedelta(minutes=minutes) and ends(row) > begin for row in self.on(day))

    def first_free(self, day: date, minutes: int) -> str:
        """The earliest free start of this length between 9:00 and 18:00, as HH:MM."""
        at = datetime.fromisoformat(f"{day} {DAY_START}:00")
        while f"{at + timedelta(minutes=minutes):%H:%M}" <= DAY_END:
            if not self.busy(day, f"{at:%H:%M}", minutes):
                return f"{at:%H:%M}"
            at += timedelta(minutes=5)
        raise Unfit

    def tasks_of(self, first_name: str, **cells: str) -> list[Row]:
        """A colleague's tasks with these cells."""
        return [row for row in self.tasks if of(row, "assigned_to_email") == first_name and _has(row, cells)]

    def customers_of(self, first_name: str, **cells: str) -> list[Row]:
        """The customers that a colleague looks after, with these cells."""
        return [row for row in self.customers if of(row, "assigned_to_email") == first_name and _has(row, cells)]

    def visits_on(self, day: date) -> list[Row]:
        """The day's visits to the web site."""
        return [row for row in self.visits if row["date_of_visit"] == str(day)]

    def visits_between(self, first: date, last: date) -> list[Row]:
        """The visits of a range of days, both included."""
        return [row for row in self.visits if str(first) <= row["date_of_visit"] <= str(last)]


def _has(row: Row, cells: dict[str, str]) -> bool:
    return all(row[column] == value for column, value in cells.items())


def of(row: Row, column: str) -> str:
    """The first name in an address."""
    return row[column].split(".")[0].capitalize()


def starts(event: Row) -> datetime:
    """When an event begins."""
    return datetime.fromisoformat(event["event_start"])


def ends(event: Row) -> datetime:
    """When an event is over."""
    return starts(event) + timedelta(minutes=int(event["duration"]))


def call(name: str, /, **arguments: str) -> Call:
    """One call of a ground truth."""
    return {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}


def only(rows: Sequence[T]) -> T:
    """The one row there is; Unfit where there are none or several."""
    if len(rows) != 1:
        raise Unfit
    return rows[0]


def few(rows: Sequence[T], most: int = 6, least: int = 1) -> Sequence[T]:
    """The rows, if they are not too many to be dealt with one by one."""
    check(least <= len(rows) <= most)
    return rows


def check(fits: bool) -> None:
    """Unfit unless it fits."""
    if not fits:
        raise Unfit


def latest(rows: Sequence[Row]) -> Row:
    """The last row; Unfit where there are none."""
    check(bool(rows))
    return rows[-1]


def others(dice: Dice, *taken: str, among: Sequence[str] = FIRST) -> str:
    """A colleague's first name that is not taken."""
    return dice.pick([name for name in among if name not in taken])


def workday(dice: Dice, first: date = date(2023, 12, 1), last: date = date(2023, 12, 22)) -> date:
    """A Monday to Friday in the range."""
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    return dice.pick([day for day in days if day.weekday() < 5])


def past_day(dice: Dice, least: int = 1, most: int = 90) -> date:
    """A day so many days ago."""
    return TODAY - timedelta(days=dice.between(least, most))


def say_day(day: date | str) -> str:
    """`December 4`."""
    when = date.fromisoformat(str(day)[:10])
    return f"{when:%B} {when.day}"


def say_time(text: str) -> str:
    """`15:30` -> `3:30 pm`."""
    hour, minute = int(text[:2]), text[3:5]
    half = "am" if hour < 12 else "pm"
    return f"{(hour - 1) % 12 + 1}{'' if minute == '00' else ':' + minute} {half}"


def say_names(names: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last
