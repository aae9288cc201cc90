"""The data set as an index: where each row's bytes are and what they hash to, so that a million rows cost megabytes.

Rows are checked when the index is built, once; afterwards their bytes go to the agent server as they stand in the file.
"""

import hashlib
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rollouts.plan import Source
from wire import jsonl, strict_json
from wire.errors import UsageError
from wire.rollout import check_row

DIGEST_BYTES = 16
RowCheck = Callable[[dict[str, Any]], str | None]
"""What is wrong with a row, for one environment; None when nothing is."""

_DUPLICATES_AT_ONCE = 100_000  # task ids compared in one pass: bounds memory, not the number of rows
_WHITE = b" \t\r\n"


class Rows:
    """The tasks of a run.

    With several data sets, task indices alternate between them (0, 2, 4, … and 1, 3, 5, …), so that neither a limit nor rows added to one
    of them renumbers another.

    Args:
        sources: Where rows come from, and the names that rows may be routed to.
        limit: Rows read of each data set that has no limit of its own.
        checks: For each source, what its environment has to say about a row.

    Raises:
        UsageError: a data set cannot be read, holds no tasks, or has a bad row; the message names `file:line`.
    """

    def __init__(
        self, sources: Sequence[Source], limit: int | None = None, checks: Sequence[RowCheck | None] = ()
    ) -> None:
        self.sources = sources
        self._routes = {source.name: index for index, source in enumerate(sources)}
        self._checks = tuple(checks) or (None,) * len(sources)
        read = [index for index, source in enumerate(sources) if source.dataset is not None]
        if not read:
            raise UsageError("no data set: give --input, or rollouts.dataset in the config")
        self._files = [_File(sources[index], index, limit) for index in read]
        for file in self._files:
            self._build(file)
            file.refuse_ambiguous_ids()
        self.tasks = max((len(file) - 1) * len(read) + at + 1 for at, file in enumerate(self._files))

    def __len__(self) -> int:
        """How many tasks there are; `tasks` is one above the highest index."""
        return sum(len(file) for file in self._files)

    def __contains__(self, task: int) -> bool:
        return 0 <= task // len(self._files) < len(self._files[task % len(self._files)])

    def __iter__(self) -> Iterator[int]:
        """Task indices in order."""
        return (task for task in range(self.tasks) if task in self)

    def by_source(self) -> list[list[int] | range]:
        """Task indices of each source, in order."""
        count = len(self._files)
        if count == len(self.sources) and all(file.unrouted for file in self._files):
            return [range(at, len(file) * count + at, count) for at, file in enumerate(self._files)]
        found: list[list[int] | range] = [[] for _ in self.sources]
        for task in self:
            tasks = found[self.source_index(task)]
            if isinstance(tasks, list):
                tasks.append(task)
        return found

    def source_index(self, task: int) -> int:
        """Which source plays the task."""
        file, row = self._locate(task)
        return file.routed[row]

    def source(self, task: int) -> Source:
        """The source that plays the task."""
        return self.sources[self.source_index(task)]

    def place(self, task: int) -> str:
        """`file:line`, for messages."""
        file, row = self._locate(task)
        return f"{file.path}:{file.lines[row]}"

    def digests(self) -> bytes:
        """Of each task index in turn, `DIGEST_BYTES` each; zeros where there is no such task."""
        if len(self._files) == 1:
            return bytes(self._files[0].digests)
        found = bytearray(self.tasks * DIGEST_BYTES)
        for task in self:
            found[task * DIGEST_BYTES : (task + 1) * DIGEST_BYTES] = self.digest(task)
        return bytes(found)

    def digest(self, task: int) -> bytes:
        """Of the row's bytes, without white space around them."""
        file, row = self._locate(task)
        return bytes(file.digests[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES])

    def read(self, task: int) -> bytes:
        """The row's bytes.

        Raises:
            UsageError: they are not what they were when the index was built.
        """
        file, row = self._locate(task)
        return file.read(row)

    def parsed(self, task: int) -> dict[str, Any]:
        """The row as an object. Raises as `read`."""
        row: dict[str, Any] = strict_json.loads(self.read(task))
        return row

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()

    def _locate(self, task: int) -> tuple["_File", int]:
        row, file = divmod(task, len(self._files))
        return self._files[file], row

    def _build(self, file: "_File") -> None:
        for number, offset, text in file.scan():
            row = jsonl.parse_line(file.path, number, text)
            problem = check_row(row) or _overflow(row)
            route = self._route(row, file) if problem is None else file.source_index
            check = self._checks[route] if isinstance(route, int) else None
            problem = problem or (route if isinstance(route, str) else check(row) if check else None)
            if problem:
                raise UsageError(f"{file.path}:{number}: {problem}")
            file.add(number, offset, text, row.get("task_id"), int(route))

    def _route(self, row: dict[str, Any], file: "_File") -> int | str:
        """The source that plays a row, or what is wrong with the name it gives."""
        if len(self.sources) == 1:
            return file.source_index
        reference = row.get("agent_ref")
        agent = reference.get("name") if isinstance(reference, dict) else None
        for field, name in (("environment", row.get("environment")), ("agent_ref.name", agent)):
            if name is not None:
                known = self._routes.get(name) if isinstance(name, str) else None
                have = ", ".join(self._routes)
                return known if known is not None else f"{field} {name!r} is none of this run's (have: {have})"
        return file.source_index


def _overflow(row: dict[str, Any]) -> str | None:
    """What is wrong with a number that the line could not repeat, such as 1e999."""
    try:
        strict_json.refuse_overflow(row)
    except strict_json.JSONError as error:
        return str(error)
    return None


class _File:
    """One data set: a few numbers per row, and the file kept open, so that replacing it changes nothing."""

    def __init__(self, source: Source, source_index: int, limit: int | None) -> None:
        assert source.dataset is not None
        self.path: Path = source.dataset
        self.source_index = source_index
        self.limit = source.limit or limit
        self.lines, self.offsets, self.lengths = array("I"), array("Q"), array("I")
        self.routed, self.digests = array("H"), bytearray()
        self.unrouted = True  # every row is played by the source whose data set this is
        self._ids = array("Q")  # hash of the explicit task id; 0 for none
        try:
            self._descriptor = os.open(
                self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
            )  # a pipe that nobody writes to would wait for ever
            self._seekable = os.lseek(self._descriptor, 0, os.SEEK_CUR) == 0 and self.path.is_file()
        except OSError as error:
            raise UsageError(f"cannot read {self.path}: {error.strerror}") from error
        if not self._seekable:
            raise UsageError(
                f"cannot read {self.path}: the data set has to be a file, since rows are read when their turn comes"
            )

    def __len__(self) -> int:
        return len(self.lines)

    def scan(self) -> Iterator[tuple[int, int, bytes]]:
        """Physical line number, offset of the text, and text of each row up to the limit."""
        offset = 0
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            for number, line in enumerate(file, 1):
                start = len(jsonl.BOM) if number == 1 and line.startswith(jsonl.BOM) else 0
                text = line[start:].strip(_WHITE)
                if text:
                    yield number, offset + line.index(text[:1], start), text
                offset += len(line)
                if self.limit is not None and len(self) >= self.limit:
                    return
        if not len(self):
            raise UsageError(f"no tasks in {self.path}: it holds no row")

    def add(self, number: int, offset: int, text: bytes, task_id: object, source: int) -> None:
        self.lines.append(number)
        self.offsets.append(offset)
        self.lengths.append(len(text))
        self.digests += _digest(text)
        self.routed.append(source)
        self.unrouted = self.unrouted and source == self.source_index
        self._ids.append(0 if task_id is None else _short_hash(strict_json.dumps(task_id)))

    def read(self, row: int) -> bytes:
        text = os.pread(self._descriptor, self.lengths[row], self.offsets[row])
        if _digest(text) != self.digests[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES]:
            raise UsageError(f"{self.path}:{self.lines[row]}: the row was changed while the run was reading it")
        return text

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def refuse_ambiguous_ids(self) -> None:
        """Rows may repeat each other; one explicit task id may not stand for two contents."""
        passes = len(self) // _DUPLICATES_AT_ONCE + 1
        for part in range(passes):
            first: dict[int, int] = {}
            for row, short in enumerate(self._ids):
                if short and short % passes == part and first.setdefault(short, row) != row:
                    self._refuse_if_different(first[short], row)
        self._ids = array("Q")

    def _refuse_if_different(self, first: int, second: int) -> None:
        if self._same_bytes(first, second):
            return
        one, other = (strict_json.loads(self.read(row)) for row in (first, second))
        if one["task_id"] == other["task_id"] and one != other:
            raise UsageError(
                f"{self.path}:{self.lines[second]}: task_id {other['task_id']!r} stands in line {self.lines[first]} for other content; "
                "give it another task_id, or none"
            )

    def _same_bytes(self, first: int, second: int) -> bool:
        one, other = (self.digests[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES] for row in (first, second))
        return one == other


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=DIGEST_BYTES).digest()


def _short_hash(text: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") or 1
