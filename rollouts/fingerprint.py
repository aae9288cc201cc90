"""What a run is made of, written beside its lines: a resume with other rows, config or model is refused, naming the first difference."""

import hashlib
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rollouts.rows import DIGEST_BYTES, Rows
from wire import strict_json
from wire.errors import UsageError

FORMAT = 1  # of the two files
_UNKNOWN = bytes(DIGEST_BYTES)  # a task index that has no row
_MISSING = "(nothing)"


@dataclass(frozen=True)
class Run:
    """The identity of a run, the same for everything that resumes it."""

    fingerprint: dict[str, Any]
    sources: list[str]
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    started_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    format: int = FORMAT
    code: dict[str, str] = field(default_factory=dict)
    """Digest of the source of each environment of one's own; not compared, since mending a verifier is what a resume may be for."""

    @property
    def config_sha256(self) -> str:
        """Of the fingerprint, keys sorted."""
        return hashlib.sha256(strict_json.dumps(_sorted(self.fingerprint))).hexdigest()


class Record:
    """`<stem>_run.json` and `<stem>_run.rows` (16 bytes per task: the digest of its row), each replaced in one step."""

    def __init__(self, run: Path, digests: Path) -> None:
        self._run, self._digests = run, digests

    def load(self) -> Run | None:
        """The run that was recorded; None without one.

        Raises:
            UsageError: the file is none of ours.
        """
        try:
            value = strict_json.loads(self._run.read_bytes())
            return Run(**value)
        except FileNotFoundError:
            return None
        except (strict_json.JSONError, TypeError) as error:
            raise UsageError(f"{self._run} is no record of a run ({error}); --fresh starts anew") from error

    def digests(self) -> bytes:
        """Of each task index in turn, 16 bytes."""
        return self._digests.read_bytes() if self._digests.exists() else b""

    def save(self, run: Run, digests: bytes) -> None:
        """Record a run; the digests first, since only the other file says that there is one."""
        _replace(self._digests, digests)
        _replace(self._run, strict_json.dumps(asdict(run)) + b"\n")


def extended(before: bytes, now: bytes) -> bytes:
    """Digests of a run that has seen both: rows that a limit leaves out now are not forgotten."""
    if len(before) <= len(now) and _UNKNOWN not in now[: len(before)]:
        return now
    size = max(len(before), len(now))
    pairs = ((now[at : at + DIGEST_BYTES], before[at : at + DIGEST_BYTES]) for at in range(0, size, DIGEST_BYTES))
    return b"".join(one if one and one != _UNKNOWN else other or _UNKNOWN for one, other in pairs)


def refuse_other_config(output: Path, before: Run, now: Run) -> None:
    """Raise, naming the first difference, when the lines of two runs do not compare."""
    if before.sources != now.sources and max(len(before.sources), len(now.sources)) > 1:
        raise UsageError(_refusal(output, "the environments were", before.sources, now.sources))
    for name, old, new in differences(before.fingerprint, now.fingerprint):
        raise UsageError(_refusal(output, f"{name} was", old, new))


def refuse_other_rows(output: Path, before: bytes, rows: Rows, *, limited: bool) -> None:
    """Raise, naming the first row that is another one, or that is gone although no limit leaves it out."""
    for task in range(len(before) // DIGEST_BYTES):
        old = before[task * DIGEST_BYTES : (task + 1) * DIGEST_BYTES]
        if old == _UNKNOWN:
            continue
        if task in rows and rows.digest(task) != old:
            raise UsageError(
                f"{rows.place(task)}: the row of task {task} is not the one that {output} was made with; --fresh starts anew"
            )
        if task not in rows and not limited:
            raise UsageError(
                f"the row of task {task}, with which {output} was made, is gone from the data set; --fresh starts anew"
            )


def differences(before: Mapping[str, Any], now: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Dotted name, old and new value of each field that differs, by name."""
    for key in sorted(before.keys() | now.keys()):
        old, new = before.get(key, _MISSING), now.get(key, _MISSING)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from differences(old, new, f"{path}{key}.")
        elif _plain(old) != _plain(new):
            yield f"{path}{key}", old, new


def _refusal(output: Path, what: str, old: Any, new: Any) -> str:
    return f"{output} cannot be resumed: {what} {_short(old)} and is now {_short(new)}; --fresh starts anew"


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _short(value: Any) -> str:
    text = value if value == _MISSING else strict_json.dumps(value).decode()
    return text if len(text) <= 120 else text[:119] + "…"


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list | tuple) else value


def _replace(path: Path, content: bytes) -> None:
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
