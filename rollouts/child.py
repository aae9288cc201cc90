"""One server process of ours: started with its message on stdin, watched, stopped with everything that it started.

Its stdin stays open for as long as we live: the end of it tells the child that we are gone, even after `kill -9`.
"""

import asyncio
import contextlib
import os
import platform
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any, cast

import wire
from wire import strict_json

GROUP_S = 0.5  # for what a child had started to be gone once killed
OUTPUT_S = 0.2  # for the last words of a child that has ended; what it started may hold its output open
TAIL_LINES = 30  # of its output, kept for the moment it dies
LINE_BYTES = 64 * 1024  # longer lines of output are broken up
SECRETS = ("TRIVIUM_TOKEN",)  # handed over on stdin, so that nothing which the child starts inherits them
LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "PYTHONMALLOC": "malloc"}
"""All memory from glibc, and that in pages of 2 MiB: a model interface that holds hundreds of conversations touches each seldom, and
finding its small pages again takes up to a sixth of its time (`benchmarks/model_interface.py`). Who holds little, and what it starts,
only pays for it: glibc's malloc takes half again as long as Python's own for small objects."""
LARGE_PAGES_FOR = "model_interface"
LARGE_PAGES_GLIBC = (2, 35)  # the first that asks for them
LARGE_PAGES_KERNEL = Path("/sys/kernel/mm/transparent_hugepage/enabled")  # `always [madvise] never`
OnLine = Callable[[str, str], None]


class Child(asyncio.SubprocessProtocol):
    """A running server process.

    A protocol rather than `asyncio.subprocess.Process`, whose `wait` lasts for as long as anybody holds the output open.

    Attributes:
        name: The server's name.
        tail: The last lines it wrote to stdout or stderr.
    """

    def __init__(self, name: str, on_line: OnLine) -> None:
        self.name = name
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._on_line = on_line
        self._rest = b""
        self._exited = asyncio.Event()
        self._silent = asyncio.Event()
        self._transport: asyncio.SubprocessTransport

    @classmethod
    async def start(cls, message: dict[str, Any], on_line: OnLine) -> "Child":
        """Start `python -m wire.child` in its own session, so that the terminal's Ctrl-C reaches only us.

        Args:
            message: What the child reads as its first line: room, source, config, urls, fd, token, name.
            on_line: Called with the server's name and each line of its output.
        """
        transport, child = await asyncio.get_running_loop().subprocess_exec(
            lambda: cls(message["name"], on_line), sys.executable, "-m", "wire.child",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=environment(message["room"]), pass_fds=(message["fd"],), start_new_session=True,
        )  # fmt: skip
        child._transport = transport
        child._stdin().write(strict_json.dumps(message) + b"\n")
        return child

    @property
    def pid(self) -> int:
        """Its process id, and that of its session and group."""
        return self._transport.get_pid()

    async def wait(self) -> int:
        """Its exit status (negative: the signal that ended it), once its output has been read."""
        await self._exited.wait()
        with contextlib.suppress(TimeoutError):  # somebody whom it started still holds it open
            async with asyncio.timeout(OUTPUT_S):
                await self._silent.wait()
        return cast("int", self._transport.get_returncode())

    async def stop(self, patience_s: float) -> None:
        """End it and all that it started: asked first, killed when it takes longer than `patience_s`."""
        self._stdin().close()
        if not self._exited.is_set():
            self._transport.terminate()
        try:
            async with asyncio.timeout(patience_s):
                await self._exited.wait()
        except TimeoutError:
            self.kill()
        await self._group_gone()
        await self._exited.wait()
        self._transport.close()

    def kill(self) -> bool:
        """End its whole process group at once; False when nobody was left in it."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    async def _group_gone(self) -> None:
        """A killed process takes a moment to go; one that nobody reaps stays in the group as a zombie, so not for ever."""
        deadline = monotonic() + GROUP_S
        while self.kill() and monotonic() < deadline:  # noqa: ASYNC110 - the kernel has no event for the end of a group
            await asyncio.sleep(0.005)

    def _stdin(self) -> asyncio.WriteTransport:
        return cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Asyncio's call: output came."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_BYTES:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            self._say(line)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Asyncio's call: its output has ended (or its stdin, which is nothing to us)."""
        if fd == 1:
            if self._rest:
                self._say(self._rest)
            self._silent.set()

    def process_exited(self) -> None:
        """Asyncio's call: the process has ended."""
        self._exited.set()

    def _say(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()
        self.tail.append(text)
        self._on_line(self.name, text)


def environment(room: str) -> dict[str, str]:
    """Ours without its secrets; the child finds the same packages, a checkout's too, and has large pages if they help."""
    environment = {key: value for key, value in os.environ.items() if key not in SECRETS}
    if room == LARGE_PAGES_FOR and environment.keys().isdisjoint(LARGE_PAGES) and _has_large_pages():
        environment |= LARGE_PAGES
    root = Path(wire.__file__).parents[1]
    if root.name not in ("site-packages", "dist-packages"):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(root), environment.get("PYTHONPATH")]))
    return environment


def _has_large_pages() -> bool:
    """Whether glibc asks for them here, and the kernel has them."""
    name, version = platform.libc_ver()
    if name != "glibc" or tuple(map(int, version.split(".")[:2])) < LARGE_PAGES_GLIBC:
        return False
    try:
        return "[never]" not in LARGE_PAGES_KERNEL.read_text()
    except OSError:
        return False
