"""Tasks as a flat table, for programs that rework data (NeMo Data Designer takes it as its seed data), and back."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rollouts.tasks.prompts import entities, lost, prompt_of, with_prompt
from rollouts.tasks.sift import template_of
from wire import jsonl, strict_json
from wire.errors import UsageError

COLUMNS = ("task_id", "template", "prompt", "entities", "row")
SUFFIXES = (".csv", ".jsonl", ".parquet")


def write(rows: Iterable[dict[str, Any]], path: Path) -> int:
    """Write one line per task, all columns text: `row` holds the whole task as JSON, `entities` what its prompt must keep.

    Raises:
        UsageError: the file's name does not say its form.
    """
    lines = [_line(row, number) for number, row in enumerate(rows)]
    match path.suffix:
        case ".csv":
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS)
                writer.writeheader()
                writer.writerows(lines)
        case ".jsonl":
            path.write_bytes(b"".join(strict_json.dumps(line) + b"\n" for line in lines))
        case ".parquet":
            _parquet().write_table(_arrow().Table.from_pylist(lines), path)
        case _:
            raise UsageError(f"{path}: a table ends in {', '.join(SUFFIXES)}")
    return len(lines)


def read(path: Path, column: str) -> Iterator[dict[str, Any] | str]:
    """Tasks whose prompt is the table's `column`; for a line that has lost something of the task, a sentence instead.

    Raises:
        UsageError: the table cannot be read, or lacks a column.
    """
    for number, line in enumerate(_lines(path), 1):
        if missing := [name for name in ("row", column) if not isinstance(line.get(name), str)]:
            raise UsageError(f"{path}: line {number} has no text in column {missing[0]!r} (have: {', '.join(line)})")
        try:
            row = strict_json.loads(line["row"])
        except strict_json.JSONError as error:
            raise UsageError(f"{path}: line {number}: column 'row' is no JSON: {error}") from error
        text = line[column].strip()
        name = f"{row.get('task_id', number)}-designed-{number}"
        if gone := lost(row, text):
            yield f"{name}: the new prompt has lost or added {', '.join(gone[:5])}"
        else:
            yield {**with_prompt(row, text), "task_id": name}


def _line(row: dict[str, Any], number: int) -> dict[str, str]:
    return {
        "task_id": str(row.get("task_id", number)),
        "template": template_of(row),
        "prompt": prompt_of(row),
        "entities": ", ".join(entities(row)),
        "row": strict_json.dumps(row).decode(),
    }


def _lines(path: Path) -> Sequence[dict[str, Any]]:
    match path.suffix:
        case ".csv":
            with path.open(encoding="utf-8", newline="") as file:
                return list(csv.DictReader(file))
        case ".jsonl":
            return [line for _, line in jsonl.read(path)]
        case ".parquet":
            return list(_parquet().read_table(path).to_pylist())
    raise UsageError(f"{path}: a table ends in {', '.join(SUFFIXES)}")


def _arrow() -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError:
        raise UsageError(
            "Parquet needs the package pyarrow: pip install 'trivium[parquet]'; CSV and JSON lines do not"
        ) from None
    return pyarrow


def _parquet() -> Any:
    _arrow()
    import pyarrow.parquet

    return pyarrow.parquet
