"""Is the world as it should be? Net changes of tables and trees, compared by content.

What counts is the difference between before and after, not how it came about: a change undone is no change.
Created rows are compared by content, as a multiset, since their ids only tell in which order they were made.
Values are compared in canonical form: `30`, `30.0` and `"30"` are one number, `2023-12-01 09:00` and
`2023-12-01T09:00:00` one moment, a text is itself up to Unicode composition and outer white space.

A table is `{id: row}` or a list of rows that carry their id in the column `key` names. Unchanged rows that are the
same object before and after cost nothing, so worlds should copy a row when they change it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from resources_server.grading import dates, numbers
from resources_server.grading.forms import EXACT, Form
from resources_server.grading.grade import Grade, right, short, wrong

Canon = Callable[[Any], Hashable]
FormName = Literal["value", "exact", "text", "ignore_case", "number", "date", "datetime", "boolean"]
Forms = Mapping[str, FormName | Canon]  # column, or `table.column` where tables differ -> how it is compared

NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")  # no leading zeros: 00000012 is an id, not twelve
MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?")
MISSING = object()


@dataclass(frozen=True)
class Change:
    """The net change of one table, in canonical form. Empty means that nothing is different."""

    created: Counter[Hashable]  # content of each new row, without its id -> how many
    updated: frozenset[tuple[str, str, Hashable]]  # (id, column, new value)
    deleted: frozenset[str]  # ids

    def __bool__(self) -> bool:
        return bool(self.created or self.updated or self.deleted)


def match(
    before: Mapping[str, Any],
    produced: Mapping[str, Any],
    expected: Mapping[str, Any],
    *,
    keys: Mapping[str, str] | None = None,
    forms: Forms | None = None,
    ignore: Iterable[str] = (),
) -> Grade:
    """1 when `produced` differs from `before` exactly as `expected` does, else 0 with the first difference.

    Each is the whole world: name -> table or any other JSON value; a name that one side lacks is an empty table.
    `keys` gives the id column of tables that are lists of rows. `ignore` names columns (or `table.column`) that do not
    count, and whole tables. For several accepted end states call it once for each, or use `any_of`.
    """
    skipped = frozenset(ignore)
    for name in sorted({*before, *produced, *expected} - skipped):
        start, got, want = (world.get(name, MISSING) for world in (before, produced, expected))
        if got is want:
            continue
        fault = _fault(name, start, got, want, (keys or {}).get(name), forms or {}, skipped)
        if fault:
            return wrong(fault)
    return right()


def any_of(grades: Iterable[Grade]) -> Grade:
    """The best of several accepted end states; with none right, the first one's reason."""
    tried = list(grades)
    if not tried:
        raise ValueError("no accepted end state was given")
    return max(tried, key=lambda grade: grade.reward)


def change(
    before: Any,
    after: Any,
    *,
    table: str = "",
    key: str | None = None,
    forms: Forms | None = None,
    ignore: Iterable[str] = (),
) -> Change:
    """The net change from one table to another."""
    old, new = _rows(before, key, table), _rows(after, key, table)
    plain = _Columns(table, forms or {}, frozenset([*ignore, *([key] if key else [])]))
    created: Counter[Hashable] = Counter()
    updated: set[tuple[str, str, Hashable]] = set()
    for id, row in new.items():
        earlier = old.get(id, MISSING)
        if earlier is MISSING:
            created[plain.content(row)] += 1
        elif earlier is not row:
            updated.update((id, column, value) for column, value in plain.differences(earlier, row))
    return Change(created, frozenset(updated), frozenset(old.keys() - new.keys()))


def same(produced: Change, expected: Change, table: str = "state") -> str:
    """What differs between two net changes of one table, in words; "" when they are the same."""
    if produced == expected:
        return ""
    for verb, ours, theirs in (
        ("deleted", Counter[Hashable](produced.deleted), Counter[Hashable](expected.deleted)),
        ("updated", Counter[Hashable](produced.updated), Counter[Hashable](expected.updated)),
        ("created", produced.created, expected.created),
    ):
        missing, extra = sorted(map(_shown, theirs - ours)), sorted(map(_shown, ours - theirs))
        if missing:
            return f"{table}: not {verb}: {missing[0]}" + (f"; {verb} instead: {extra[0]}" if extra else "")
        if extra:
            return f"{table}: {verb}, which was not expected: {extra[0]}"
    return f"{table}: differs"


def canonical(value: Any, form: FormName | Canon = "value") -> Hashable:
    """Hashable, and equal exactly for values that `form` takes for the same. Trees are canonical through and through.

    `value` (the default) reads plain numbers and ISO dates out of text; `exact` takes text as it is; `text` also
    collapses white space; `ignore_case` ignores case too; `number`, `date`, `datetime`, `boolean` read generously,
    and what they cannot read is compared as `value`.
    """
    if callable(form):
        return form(value)
    if form not in READERS:
        raise ValueError(f"form {form!r} is none of {', '.join(READERS)}")
    if isinstance(value, Mapping):
        return ("object", frozenset((str(name), canonical(each, form)) for name, each in value.items()))
    if isinstance(value, list | tuple):
        return ("array", tuple(canonical(each, form) for each in value))
    if isinstance(value, set | frozenset):
        return ("set", frozenset(canonical(each, form) for each in value))
    if hasattr(value, "model_dump"):
        return canonical(value.model_dump(mode="json"), form)
    read = READERS[form](value)
    return _value(value) if read is None else read


class _Columns:
    """How the columns of one table are compared; remembers which form each has."""

    def __init__(self, table: str, forms: Forms, ignore: frozenset[str]) -> None:
        self.table, self.forms, self.ignore = table, forms, ignore

    def content(self, row: Any) -> Hashable:
        """A row without its ignored columns; a cell that is None or absent is the same."""
        if not isinstance(row, Mapping):
            return canonical(row, self.form("*"))
        cells = ((name, canonical(value, self.form(name))) for name, value in row.items() if self.counts(name))
        return frozenset((name, value) for name, value in cells if value is not None)

    def differences(self, old: Any, new: Any) -> list[tuple[str, Hashable]]:
        if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
            after = self.content(new)
            return [] if self.content(old) == after else [("*", after)]
        found = []
        for name in {**old, **new}:
            was, now = old.get(name), new.get(name)
            if was is not now and self.counts(name):
                form = self.form(name)
                if (value := canonical(now, form)) != canonical(was, form):
                    found.append((name, value))
        return found

    def counts(self, column: str) -> bool:
        return column not in self.ignore and f"{self.table}.{column}" not in self.ignore

    def form(self, column: str) -> FormName | Canon:
        return self.forms.get(f"{self.table}.{column}") or self.forms.get(column) or "value"


def _fault(name: str, start: Any, got: Any, want: Any, key: str | None, forms: Forms, ignore: frozenset[str]) -> str:
    """What is wrong with one table, or one value, of the produced world."""
    if _is_table(start, key) and _is_table(got, key) and _is_table(want, key):
        options: dict[str, Any] = {"table": name, "key": key, "forms": forms, "ignore": ignore}
        return same(change(start, got, **options), change(start, want, **options), name)
    form = forms.get(name) or "value"
    as_is = [canonical(None if each is MISSING else each, form) for each in (got, want)]
    return "" if as_is[0] == as_is[1] else f"{name}: is {short(got)}, expected {short(want)}"


def _is_table(value: Any, key: str | None) -> bool:
    if value is MISSING:
        return True
    if key is not None:
        return isinstance(value, list | tuple | Mapping)
    return isinstance(value, Mapping) and all(_is_row(row) for row in value.values())


def _is_row(row: Any) -> bool:
    return isinstance(row, Mapping) or hasattr(row, "model_dump")


def _rows(table: Any, key: str | None, name: str) -> dict[str, Any]:
    if table is MISSING or table is None:
        return {}
    if isinstance(table, dict) and all(type(id) is str and type(row) is dict for id, row in table.items()):
        return table
    if isinstance(table, Mapping):
        return {str(id): _row(row) for id, row in table.items()}
    if key is None:
        raise ValueError(f"table {name!r} is a list of rows; keys={{{name!r}: <its id column>}} is missing")
    rows = [_row(row) for row in table]
    if any(key not in row for row in rows):
        raise ValueError(f"a row of table {name!r} has no column {key!r}")
    return {str(row[key]): row for row in rows}


def _row(row: Any) -> Any:
    return row.model_dump(mode="json") if hasattr(row, "model_dump") else row


def _value(value: Any) -> Hashable:
    if isinstance(value, bool):
        return ("boolean", value)
    if value is None:
        return None
    if isinstance(value, int | float):
        return _numeric(value)
    if not isinstance(value, str):
        return ("text", str(value))
    text = EXACT.of(value)
    if NUMBER.fullmatch(text) and len(text) <= 300:
        return _numeric(float(text) if "." in text else int(text))
    if MOMENT.fullmatch(text) and (moment := _moment(text)) is not None:
        return moment
    return ("text", text)


def _numeric(value: float) -> Hashable:
    return ("number", int(value) if math.isfinite(value) and value == int(value) else value)


def _exact(value: Any) -> Hashable | None:
    return ("text", value) if isinstance(value, str) else None


def _text(value: Any) -> Hashable | None:
    return ("text", Form(case="exact", collapse=True).of(value)) if isinstance(value, str) else None


def _ignore_case(value: Any) -> Hashable | None:
    return ("text", Form(collapse=True).of(value)) if isinstance(value, str) else None


def _number(value: Any) -> Hashable | None:
    read = numbers.read(value) if isinstance(value, str) else None
    return None if read is None else _numeric(float(read.value))


def _moment(value: Any) -> Hashable | None:
    found = dates.read(value) if isinstance(value, str) else None
    return None if found is None or found.value is None else ("moment", found.value.isoformat())


def _date(value: Any) -> Hashable | None:
    found = dates.read(value) if isinstance(value, str) else None
    return None if found is None or found.value is None else ("date", found.value.date().isoformat())


def _boolean(value: Any) -> Hashable | None:
    text = str(value).strip().casefold()
    return ("boolean", text in ("true", "1", "yes")) if text in ("true", "1", "yes", "false", "0", "no") else None


def _shown(value: Any) -> str:
    """A canonical row, cell or id for a sentence, without the tags that make it canonical."""
    if isinstance(value, frozenset):
        return short(dict(sorted((name, _bare(cell)) for name, cell in value)), 200)
    if isinstance(value, tuple) and len(value) == 3:
        return f"{value[0]} {value[1]} = {short(_bare(value[2]))}"
    return short(value)


def _bare(cell: Any) -> Any:
    return cell[1] if isinstance(cell, tuple) and len(cell) == 2 else cell


READERS: dict[str, Callable[[Any], Hashable | None]] = {
    "value": lambda value: None,
    "exact": _exact,
    "text": _text,
    "ignore_case": _ignore_case,
    "number": _number,
    "date": _date,
    "datetime": _moment,
    "boolean": _boolean,
}
