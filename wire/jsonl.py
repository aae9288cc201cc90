"""Strict JSON lines: records split on `\\n` only, errors that name `file:line`, whole records appended, a torn tail mended."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from wire import strict_json
from wire.errors import UsageError

BOM = b"\xef\xbb\xbf"
TAIL_BLOCK_BYTES = 1 << 16  # read from the end at a time, when looking for the last newline


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Physical line number (from 1) and bytes of each line that is not blank; byte order mark and CRLF are dropped.

    Raises:
        UsageError: the file cannot be opened.
    """
    try:
        with path.open("rb") as source:
            for number, line in enumerate(source, 1):
                text = (line.removeprefix(BOM) if number == 1 else line).strip(b" \t\r\n")
                if text:
                    yield number, text
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def read(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Physical line number and object of each line.

    Raises:
        UsageError: a line is no JSON object; the message names `file:line`.
    """
    for number, text in read_lines(path):
        yield number, parse_line(path, number, text)


def read_whole(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """As `read`, for files of our own that may have been cut off: a torn last line is left out, a missing file has none."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                yield number, parse_line(path, number, line.strip())


def parse_line(path: Path, number: int, text: bytes) -> dict[str, Any]:
    """The JSON object of one line.

    Raises:
        UsageError: it is none; the message names `file:line`.
    """
    try:
        value = strict_json.loads(text)
    except strict_json.JSONError as error:
        raise UsageError(f"{path}:{number}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path}:{number}: a line is a JSON object, this one is a {type(value).__name__}")
    return value


def mend_tail(path: Path) -> int:
    """Cut a file back to its last `\\n`; how many bytes went. A missing file has nothing to mend."""
    if not path.exists():
        return 0
    with path.open("r+b") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - TAIL_BLOCK_BYTES)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        file.truncate(end)
    return size - end


class Appender:
    """A file that only ever grows by whole lines, each one write to the operating system."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def append(self, record: dict[str, Any]) -> int:
        """Write one record; how many bytes.

        Raises:
            JSONError: the record has no strict JSON form; nothing was written.
        """
        return self.append_bytes(strict_json.dumps(record))

    def append_bytes(self, record: bytes) -> int:
        """Write one record that is JSON text already, without its newline."""
        line = record + b"\n"
        written = os.write(self._descriptor, line)
        while written < len(line):  # a full disk or a signal: go on, or raise
            written += os.write(self._descriptor, line[written:])
        return written

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
