"""The files of a run: each ended rollout is one whole line in one of them, whatever happens to the process.

`out.jsonl` has the rollouts with a verdict, each key once. `out_failures.jsonl` has one line per failed attempt. `out_groups.jsonl` is
derived from both and written anew when a run is resumed.
"""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rollouts import toolsets
from wire import jsonl, strict_json
from wire.errors import UsageError

Line = dict[str, Any]


def beside(output: Path, ending: str) -> Path:
    """The file of a run that stands beside its rollouts file."""
    return output.with_name(output.stem + ending)


def read(path: Path) -> Iterator[tuple[str, Line]]:
    """`file:line` and object of each whole line; a torn last one is left out, a missing file has none.

    Raises:
        UsageError: any other line is no JSON object; the message names it.
    """
    for number, line in jsonl.read_whole(path):
        yield f"{path}:{number}", line


class Journal:
    """The files of one output, held by this process alone.

    Args:
        output: The rollouts file; its folder is made.

    Raises:
        UsageError: it cannot be written, is no plain file, or another process collects into it.
    """

    def __init__(self, output: Path) -> None:
        self.output = output
        self.failures = beside(output, "_failures.jsonl")
        self.groups = beside(output, "_groups.jsonl")
        self.run = beside(output, "_run.json")
        self.rows = beside(output, "_run.rows")
        self.tools = beside(output, "_tools.jsonl")
        self._toolsets: set[str] = set()
        self._lock = _lock(output)
        self._open: dict[Path, _Lines] = {}

    def holds_lines(self) -> bool:
        """Whether an earlier run has left something to resume."""
        return any(path.exists() and path.stat().st_size for path in (self.output, self.failures))

    def begin(self, *, fresh: bool) -> int:
        """Open for writing: cleared, or cut back to the last whole line. How many bytes of torn lines went.

        What is derived goes first and the rollouts last, so that no instant leaves failures of a run whose rollouts are gone.
        """
        torn = 0
        for path in (self.groups, self.failures, self.output, self.tools):
            try:
                if fresh or path is self.groups:
                    _clear(path)
                else:
                    torn += jsonl.mend_tail(path)
                self._open[path] = _Lines(path)
            except OSError as error:
                raise UsageError(f"cannot write {path}: {error.strerror}") from error
        self._toolsets = set(toolsets.read(self.output))
        return torn

    def rollout(self, line: bytes) -> None:
        """Write a rollout that has a verdict."""
        self._open[self.output].append(line)

    def failure(self, line: bytes) -> None:
        """Write a failed attempt."""
        self._open[self.failures].append(line)

    def keep_tools(self, line: Line) -> None:
        """Move a line's tool schemas to the file that holds each set once, before the line that names them is written."""
        tools = toolsets.take(line)
        if tools is not None and line[toolsets.FIELD] not in self._toolsets:
            self._toolsets.add(line[toolsets.FIELD])
            self._open[self.tools].append(strict_json.dumps({toolsets.FIELD: line[toolsets.FIELD], "tools": tools}))

    def group(self, record: Line) -> None:
        """Write what became of a group."""
        self._open[self.groups].append(strict_json.dumps(record))

    def close(self) -> None:
        """Close the files and let others have them."""
        for each in self._open.values():
            each.close()
        self._open.clear()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


class _Lines:
    """A file that grows by whole lines: one that could not be written in full is taken back."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._appender = jsonl.Appender(path)

    def append(self, line: bytes) -> None:
        size = self._path.stat().st_size if self._size is None else self._size
        try:
            self._size = size + self._appender.append_bytes(line)
        except OSError as error:
            os.truncate(self._path, size)
            raise UsageError(f"cannot write {self._path}: {error.strerror}; what was written is whole") from error

    _size: int | None = None

    def close(self) -> None:
        self._appender.close()


def _clear(path: Path) -> None:
    if path.exists():
        os.truncate(path, 0)


def _lock(output: Path) -> int:
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        if output.exists() and not output.is_file():
            raise UsageError(f"cannot write {output}: it is {'a folder' if output.is_dir() else 'no plain file'}")
        descriptor = os.open(output, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise UsageError(f"another process is collecting into {output}") from error
    return descriptor
