"""A session's view of one shared table: copy on write, and the net change that remains at the end.

The fields are the state that goes into a rollout line: only what the session changed, whatever the size of the table.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import ClassVar

from pydantic import PrivateAttr

from resources_server import ToolError, Toolkit
from resources_server.environments.workplace import canonical
from resources_server.environments.workplace.canonical import Kind
from resources_server.environments.workplace.company import Company, Layout, Row, Table

LONGEST_TEXT = 20_000  # characters in one cell; a mail is at most a few thousand
LARGEST_PAGE = 50  # rows; more than this is more than a model can read

Change = tuple[str, ...]
"""One change to a table, in canonical form: `(table, "created", column, value, …)`, `(table, "deleted", id)` or
`(table, "updated", id, column, value)`. Equal changes are equal tuples."""


class Records(Toolkit):
    """A toolkit over one table. Subclasses say which table, and add tools."""

    layout: ClassVar[Layout]

    created: dict[str, dict[str, str]] = {}
    """New rows by id."""
    updated: dict[str, dict[str, str]] = {}
    """Shared rows by id: the cells that are different now."""
    deleted: list[str] = []
    """Ids of shared rows that are gone."""
    writes: dict[str, int] = {}
    """How often each row was written to, rows whose change was taken back included."""

    _company: Company = PrivateAttr()

    def open(self, company: Company) -> None:
        """Look at this company. Called for every new or restored world."""
        self._company = company

    def changes(self) -> Counter[Change]:
        """What is different from the shared table now: a multiset, since new rows are told apart by content alone."""
        name, kinds, base = self.layout.file, self.layout.kinds, self._table().rows
        found: Counter[Change] = Counter((name, "deleted", key) for key in self.deleted)
        for row in self.created.values():
            cells = ((column, canonical.canonical(kind, row[column])) for column, kind in kinds.items())
            found[name, "created", *(part for cell in cells for part in cell)] += 1
        for key, cells_now in self.updated.items():
            for column, value in cells_now.items():
                now = canonical.canonical(kinds[column], value)
                if now != canonical.canonical(kinds[column], base[key][column]):
                    found[name, "updated", key, column, now] += 1
        return found

    def undone(self) -> int:
        """Writes to rows that are now as they were before: taken back, or without effect in the first place."""
        return sum(count for key, count in self.writes.items() if not self._differs(key))

    def _differs(self, key: str) -> bool:
        if key in self.created or key in self.deleted:
            return True
        kinds, base = self.layout.kinds, self._table().rows
        return any(
            canonical.canonical(kinds[column], value) != canonical.canonical(kinds[column], base[key][column])
            for column, value in self.updated.get(key, {}).items()
        )

    def _table(self) -> Table:
        raise NotImplementedError(f"{type(self).__name__} has no _table()")

    def _row(self, key: str) -> Row:
        """The row with this id, as it is now.

        Raises:
            ToolError: there is none.
        """
        key = self._key(key)
        if key in self.created:
            return self.created[key]
        row = self._table().rows.get(key)
        if row is None or key in self.deleted:
            raise ToolError(f"no {self.layout.noun} has the id {key!r}")
        return {**row, **self.updated[key]} if key in self.updated else row

    def _key(self, key: str) -> str:
        """The id with its leading zeros: `57` can only mean `00000057`."""
        text = str(key).strip()
        return text.zfill(8) if text.isascii() and text.isdecimal() else text

    def _cell(self, key: str, column: str) -> dict[str, str]:
        row = self._row(key)
        if column not in row:
            raise ToolError(f"{self.layout.noun} has no field {column!r} (it has: {', '.join(self.layout.columns)})")
        return {column: row[column]}

    def _find(self, wanted: Callable[[Row, str], bool]) -> list[Row]:
        """The rows that are `wanted`, asked with the row and its text in lower case, in the order of lists."""
        layout, changed = self.layout, {*self.deleted, *self.updated}
        found = [row for row, text in self._table().ordered if row[layout.key] not in changed and wanted(row, text)]
        own = [row for row in self._own() if wanted(row, layout.haystack(row))]
        return sorted(found + own, key=layout.place, reverse=bool(layout.newest)) if own else found

    def _own(self) -> Iterator[Row]:
        yield from self.created.values()
        for key in self.updated:
            yield self._row(key)

    def _create(self, cells: dict[str, str]) -> str:
        """Add a row and give its id: one above the highest that there ever was, in this session too."""
        highest = max((int(key) for key in self.writes if key.isdecimal()), default=-1)
        key = f"{max(highest, self._table().highest) + 1:08d}"
        self.created[key] = {
            self.layout.key: key,
            **{column: self._fit(column, cells[column]) for column in self.layout.kinds},
        }
        self._count(key)
        return key

    def _update(self, key: str, column: str, value: str) -> str:
        """Write one cell; gives the id with its zeros."""
        if column not in self.layout.kinds:
            raise ToolError(f"field {column!r} cannot be changed (these can: {', '.join(self.layout.kinds)})")
        key, new = self._row(key)[self.layout.key], self._fit(column, value)
        if key in self.created:
            self.created[key][column] = new
        else:
            base, cells = self._table().rows[key], {**self.updated.pop(key, {}), column: new}
            if changed := {name: cell for name, cell in cells.items() if cell != base[name]}:
                self.updated[key] = changed
        self._count(key)
        return key

    def _delete(self, key: str) -> str:
        """Take a row away; gives the id with its zeros."""
        key = self._row(key)[self.layout.key]
        if self.created.pop(key, None) is None:
            self.updated.pop(key, None)
            self.deleted.append(key)
        self._count(key)
        return key

    def _count(self, key: str) -> None:
        self.writes[key] = self.writes.get(key, 0) + 1

    def _fit(self, column: str, value: str) -> str:
        """The value as it is kept.

        Raises:
            ToolError: it does not fit its column.
        """
        text = str(value)
        if len(text) > LONGEST_TEXT:
            raise ToolError(f"{column} has {len(text)} characters; at most {LONGEST_TEXT} fit")
        return fit(self.layout.kinds[column], column, text)


def fit(kind: Kind, name: str, text: str) -> str:
    """The text as a cell of this kind keeps it.

    Raises:
        ToolError: it is no such thing; the sentence says what would be.
    """
    if kind in ("text", "choice"):
        return text
    checks = {
        "address": canonical.address,
        "number": canonical.number,
        "date": canonical.day,
        "moment": canonical.moment,
    }
    right = {
        "address": "an e-mail address, such as name@company.example",
        "number": "a number",
        "date": "a date (YYYY-MM-DD)",
        "moment": "a time (YYYY-MM-DD HH:MM:SS)",
    }
    kept = checks[kind](text.strip())
    if kept is None:
        raise ToolError(f"{name} {text[:80]!r} is not {right[kind]}")
    return kept


def bound(name: str, text: str, *, end: bool = False) -> str:
    """A lower or upper limit of time as full text, "" for none; a mere day as an upper limit means its last second.

    Raises:
        ToolError: it is no time.
    """
    if not text.strip():
        return ""
    moment = fit("moment", name, text)
    return f"{moment[:10]} 23:59:59" if end and len(text.strip()) <= 10 else moment


def page_of(found: list[Row], noun: str, page: int, page_size: int) -> dict[str, object]:
    """One page of a list and where it stands: `{noun: […], pagination: {total_<noun>, page, page_size, total_pages}}`."""
    if page < 1 or not 1 <= page_size <= LARGEST_PAGE:
        raise ToolError(f"page starts at 1 and page_size is 1 to {LARGEST_PAGE}, not page {page} of size {page_size}")
    first = (page - 1) * page_size
    pages = -(-len(found) // page_size)
    counts = {f"total_{noun}": len(found), "page": page, "page_size": page_size, "total_pages": pages}
    return {noun: [dict(row) for row in found[first : first + page_size]], "pagination": counts}
