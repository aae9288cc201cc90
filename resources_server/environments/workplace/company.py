"""The company that all sessions share: five tables and a directory, read once from CSV files and never changed afterwards.

Sessions look at it through `records.Records`, which keeps only what the session changed.
"""

import csv
import functools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from resources_server.environments.workplace import canonical
from resources_server.environments.workplace.canonical import Kind
from wire.errors import UsageError

Row = Mapping[str, str]

OWN_TABLES = Path(__file__).parent / "tables"
DEFAULT_CLOCK = "2023-11-30 23:59:00"


@dataclass(frozen=True)
class Layout:
    """What a table looks like."""

    noun: str  # what one row is, in messages: "no event has the id …"
    file: str  # the name of its CSV file, without the ending
    key: str  # the column that names a row
    kinds: Mapping[str, Kind]  # every other column, in the order of the file
    searched: tuple[str, ...] = ()  # columns that a text search looks into
    newest: str = ""  # the column by which lists are ordered, newest first; "" keeps the order of the ids

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, the key first."""
        return (self.key, *self.kinds)

    def haystack(self, row: Row) -> str:
        """The text that a search looks into, in lower case."""
        return "\n".join(row[column] for column in self.searched).lower()

    def place(self, row: Row) -> tuple[str, str]:
        """Sort key of a list."""
        return (row[self.newest] if self.newest else "", row[self.key])


EMAILS = Layout(
    "email",
    "emails",
    "email_id",
    {
        "inbox/outbox": "text",
        "sender/recipient": "address",
        "subject": "text",
        "sent_datetime": "moment",
        "body": "text",
    },
    searched=("subject", "body", "sender/recipient"),
    newest="sent_datetime",
)
EVENTS = Layout(
    "event",
    "calendar_events",
    "event_id",
    {"event_name": "text", "participant_email": "address", "event_start": "moment", "duration": "number"},
    searched=("event_name", "participant_email"),
    newest="event_start",
)
TASKS = Layout(
    "task",
    "project_tasks",
    "task_id",
    {"task_name": "text", "assigned_to_email": "address", "list_name": "choice", "due_date": "date", "board": "choice"},
    searched=("task_name",),
)
CUSTOMERS = Layout(
    "customer",
    "customer_relationship_manager_data",
    "customer_id",
    {
        "assigned_to_email": "address",
        "customer_name": "text",
        "customer_email": "address",
        "customer_phone": "text",
        "last_contact_date": "date",
        "product_interest": "text",
        "status": "choice",
        "follow_up_by": "date",
        "notes": "text",
    },
    searched=("customer_name",),
)
PLOTS = Layout(
    "plot",
    "plots",
    "plot_id",
    {"path": "text", "time_min": "date", "time_max": "date", "value_to_plot": "choice", "plot_type": "choice"},
)

VISIT_COLUMNS = (
    "date_of_visit",
    "visitor_id",
    "page_views",
    "session_duration_seconds",
    "traffic_source",
    "user_engaged",
)


@dataclass(frozen=True)
class Table:
    """The rows of one table as they were before any session."""

    layout: Layout
    rows: Mapping[str, Row]  # by id
    ordered: tuple[tuple[Row, str], ...]  # every row with its haystack, in the order of lists
    highest: int  # the highest id, -1 in an empty table


def table(layout: Layout, rows: list[Row]) -> Table:
    """A table with its indices."""
    ordered = sorted(rows, key=layout.place, reverse=bool(layout.newest))
    return Table(
        layout,
        MappingProxyType({row[layout.key]: row for row in rows}),
        tuple((row, layout.haystack(row)) for row in ordered),
        max((int(row[layout.key]) for row in rows if row[layout.key].isdecimal()), default=-1),
    )


@dataclass
class Day:
    """What happened on the web site on one day."""

    visits: int = 0
    engaged: int = 0
    seconds: float = 0.0  # of all sessions together
    by_source: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Visits:
    """The web site's visits, summed by day once instead of at each question."""

    by_visitor: Mapping[str, tuple[Row, ...]]
    days: Mapping[str, Day]
    dates: tuple[str, ...]  # sorted

    def between(self, first: str, last: str) -> Iterator[tuple[str, Day]]:
        """The days with visits from `first` to `last`, both included; "" is no bound."""
        low = bisect_left(self.dates, first) if first else 0
        high = bisect_right(self.dates, last) if last else len(self.dates)
        for date in self.dates[low:high]:
            yield date, self.days[date]


@dataclass(frozen=True)
class Company:
    """Everything that sessions share, read-only."""

    emails: Table
    events: Table
    tasks: Table
    customers: Table
    visits: Visits
    addresses: tuple[str, ...]
    clock: str = DEFAULT_CLOCK  # the time at which every session takes place
    assignable: frozenset[str] | None = None  # addresses that tasks may be assigned to; None: any

    def __deepcopy__(self, memo: dict[int, Any]) -> "Company":
        """Itself: a copied world keeps looking at the one company."""
        return self


@functools.cache
def load(folder: Path = OWN_TABLES, clock: str = DEFAULT_CLOCK, known_assignees: bool = False) -> Company:
    """The company in a folder of CSV files; read once per folder and settings.

    Raises:
        UsageError: a file is missing, lacks a column, or has a cell that does not fit; the message names file and line.
    """
    now = canonical.moment(clock)
    if not now:
        raise UsageError(f"workplace: clock {clock!r} is no time (YYYY-MM-DD HH:MM:SS)")
    emails, events, tasks, customers = (
        table(layout, [_cleaned(layout, *line) for line in _lines(folder, layout.file, layout.columns)])
        for layout in (EMAILS, EVENTS, TASKS, CUSTOMERS)
    )
    visits = _visits([row for _, row in _lines(folder, "analytics_data", VISIT_COLUMNS)])
    addresses = _addresses(folder, emails, events, tasks, customers)
    known = frozenset(map(str.lower, (*addresses, *(row["assigned_to_email"] for row in tasks.rows.values()))))
    return Company(emails, events, tasks, customers, visits, addresses, now, known if known_assignees else None)


def _lines(folder: Path, name: str, columns: tuple[str, ...]) -> Iterator[tuple[str, Row]]:
    """The rows of a CSV file with `file:line`, only the columns named; others are left out."""
    path = folder / f"{name}.csv"
    if not path.is_file():
        raise UsageError(f"workplace: {path} is missing (a company has {', '.join(_files())})")
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream)
        missing = [column for column in columns if column not in (reader.fieldnames or ())]
        if missing:
            raise UsageError(f"workplace: {path}:1: column {missing[0]!r} is missing (it has: {reader.fieldnames})")
        for line in reader:
            yield f"{path}:{reader.line_num}", {column: line[column] or "" for column in columns}


def _files() -> list[str]:
    return [f"{layout.file}.csv" for layout in (EMAILS, EVENTS, TASKS, CUSTOMERS)] + ["analytics_data.csv"]


def _cleaned(layout: Layout, where: str, row: Row) -> Row:
    """The row with times and dates in one form, so that they can be compared as text."""
    clean = dict(row)
    for column, kind in layout.kinds.items():
        if kind in ("date", "moment") and row[column]:
            value = canonical.day(row[column]) if kind == "date" else canonical.moment(row[column])
            if value is None:
                raise UsageError(f"workplace: {where}: {column} {row[column]!r} is no {kind}")
            clean[column] = value
    return MappingProxyType(clean)


def _visits(rows: list[Row]) -> Visits:
    days: dict[str, Day] = {}
    by_visitor: dict[str, tuple[Row, ...]] = {}
    for row in rows:
        by_visitor[row["visitor_id"]] = (*by_visitor.get(row["visitor_id"], ()), row)
        day = days.setdefault(row["date_of_visit"][:10], Day())
        day.visits += 1
        day.engaged += row["user_engaged"].strip().lower() in ("true", "1")
        day.seconds += float(row["session_duration_seconds"] or 0)
        day.by_source[row["traffic_source"]] = day.by_source.get(row["traffic_source"], 0) + 1
    return Visits(by_visitor, days, tuple(sorted(days)))


def _addresses(folder: Path, *tables: Table) -> tuple[str, ...]:
    """The directory: its own file (one address a line, with or without a header), or else every colleague in the tables."""
    path = folder / "email_addresses.csv"
    if path.is_file():
        lines = [line.strip().strip('"') for line in path.read_text(encoding="utf-8-sig").splitlines()]
        return tuple(line for line in lines if "@" in line)
    columns = ("sender/recipient", "participant_email", "assigned_to_email")
    return tuple(sorted({row[c] for each in tables for row in each.rows.values() for c in columns if row.get(c)}))
