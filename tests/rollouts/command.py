"""The command as a person calls it: a process of its own, in a folder of its own."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wire import jsonl, strict_json

ROOT = Path(__file__).parents[2]
WORLDS = Path(__file__).parent / "worlds"
STUCK_S = 60  # no command of the tests takes nearly so long

CONFIG = """
extends: base.yaml
model_interface:
  backend: scripted
  options: {delay_s: %s}
resources_server:
  environment: counter
rollouts:
  dataset: rows.jsonl
  concurrency: 4
"""


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    status: int
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    """This process's, with the checkout and the tests' worlds on the Python path and no colours."""
    found = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(WORLDS)]), "COLUMNS": "200", "NO_COLOR": "1"}
    return {**found, **more}


def trivium(*arguments: object, folder: Path, **more: str) -> Done:
    """Run `trivium …` in a folder and wait for its end."""
    command = [sys.executable, "-m", "rollouts.cli", *map(str, arguments)]
    ended = subprocess.run(
        command, cwd=folder, env=environment(**more), capture_output=True, text=True, timeout=STUCK_S, check=False
    )
    return Done(ended.returncode, ended.stdout, ended.stderr)


@contextmanager
def running(*arguments: object, folder: Path, **more: str) -> Iterator["subprocess.Popen[str]"]:
    """`trivium …` while the block runs; its session is its own, so that a test's signals reach only it."""
    command = [sys.executable, "-m", "rollouts.cli", *map(str, arguments)]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(PYTHONUNBUFFERED="1", **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)


def served(process: "subprocess.Popen[str]", count: int = 3) -> dict[str, str]:
    """The servers that `trivium serve` says are up."""
    assert process.stdout is not None
    lines = [process.stdout.readline().split() for _ in range(count)]
    return {line[0]: line[1] for line in lines}


def children(pid: int) -> list[int]:
    """Process ids of the living children of a process."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in found.split()]


def exists(pid: int) -> bool:
    """Whether a process lives (one that only waits to be reaped does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def free(port: int) -> bool:
    """Whether a server could be bound to a loopback port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def setting(folder: Path, *, rows: int = 2, delay_s: float = 0.0) -> Path:
    """A folder with `c.yaml` (a scripted model that answers "done") and `rows.jsonl`."""
    (folder / "c.yaml").write_text(CONFIG % delay_s)
    appender = [
        {"responses_create_params": {"input": f"Bring it to {each}."}, "initial_count": each, "expected_count": each}
        for each in range(rows)
    ]
    (folder / "rows.jsonl").write_bytes(b"".join(strict_json.dumps(row) + b"\n" for row in appender))
    return folder


def lines(path: Path) -> list[dict[str, Any]]:
    """The records of a JSONL file; none without one."""
    return [record for _, record in jsonl.read(path)] if path.exists() else []


def keys(path: Path) -> list[tuple[int, int]]:
    """(task, repeat) of each line."""
    return [(each["task_index"], each["rollout_index"]) for each in lines(path)]
