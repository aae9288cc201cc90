"""The rows that come with an environment, a page at a time."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from wire import jsonl
from wire.errors import UsageError

DEFAULT_ROWS = 20
MOST_ROWS = 500  # of one page


class Tasks:
    """One data set file; it may be missing, and then has no rows."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def page(self, query: bytes) -> dict[str, Any]:
        """`{total, offset, rows}` for `offset=…&limit=…`.

        Raises:
            UsageError: They are no numbers, or the file has a bad line.
        """
        asked = parse_qs(query.decode("latin-1"))
        offset = _number(asked, "offset", 0)
        limit = min(_number(asked, "limit", DEFAULT_ROWS), MOST_ROWS)
        rows: list[dict[str, Any]] = []
        total = 0
        if self._path is not None and self._path.is_file():
            for total, (_, row) in enumerate(jsonl.read(self._path), 1):
                if offset < total <= offset + limit:
                    rows.append(row)
        return {"total": total, "offset": offset, "rows": rows}


def _number(asked: dict[str, list[str]], name: str, default: int) -> int:
    text = asked.get(name, [str(default)])[-1]
    if not text.isdecimal() or len(text) > 12:
        raise UsageError(f"{name}={text!r} should be a whole number from 0 on", param=name)
    return int(text)
