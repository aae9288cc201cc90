"""What a command in a sandbox may use, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

MIB = 2**20

KilledBy = Literal["cpu", "wall", "memory", "output"]


@dataclass(frozen=True)
class Limits:
    """Bounds on one command with everything that it starts. Each has a default, none can be switched off."""

    cpu_s: float = 5.0  # over all processes together
    wall_s: float = 10.0
    memory_bytes: int = 512 * MIB  # address space of each process, and resident size of all together
    processes: int = 32  # threads count too
    output_bytes: int = 1 * MIB  # stdout and stderr together; more ends the command
    file_bytes: int = 16 * MIB  # of one file
    disk_bytes: int = 64 * MIB  # of /work and of /tmp, fixed when the session opens
    open_files: int = 64

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not 0 < value < 2**62:
                raise ValueError(f"sandbox limit {name} is {value}; it must be above 0 and finite")

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Result:
    """How a command ended. `exit_code` is negative for a signal; `killed_by` names the limit that ended it."""

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    cpu_s: float = 0.0
    wall_s: float = 0.0
    killed_by: KilledBy | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)  # the ones asked for, by path below /work

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and self.killed_by is None

    def text(self, most: int = 10_000) -> str:
        """What a model is told: output, then errors, then what ended it; the middle cut out past `most` characters."""
        parts = [part.decode(errors="replace").rstrip() for part in (self.stdout, self.stderr)]
        if self.killed_by:
            parts.append(f"[stopped: over the limit on {REASONS[self.killed_by]}]")
        elif self.exit_code:
            parts.append(f"[exit code {self.exit_code}]")
        told = "\n".join(part for part in parts if part)
        return told if len(told) <= most else f"{told[: most // 2]}\n[…]\n{told[-most // 2 :]}"


REASONS = {"cpu": "CPU time", "wall": "time", "memory": "memory", "output": "output"}
