"""One sandbox in use: commands and files through the socket to its init process. Frames as `inside` defines them."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from resources_server.sandbox.limits import Limits, Result
from wire.errors import Failed

HEAD = struct.Struct("!II")
GRACE_S = 3.0  # for moving files and for init's own work, beyond a command's wall time
SCRIPT = "/tmp/program.py"  # where Python source stands inside


class Session:
    """A private machine with a writable /work that lasts from command to command. One command at a time.

    After each command every process that it left is killed; files stay. Leave it with `close` or `async with`.
    """

    def __init__(
        self,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        limits: Limits,
        python: str,
        turn: AbstractAsyncContextManager[Any],
        end: Callable[[], Awaitable[None]],
        pid: int = 0,
    ) -> None:
        self.limits = limits
        self.pid = pid  # of its init, as this machine counts; 0 where it is not known
        self._reader, self._writer = streams
        self._python = python
        self._turn = turn  # how many commands run at once on this machine
        self._end = end
        self._lock = asyncio.Lock()
        self._closed = False

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def run(
        self,
        program: str | Sequence[str],
        *,
        stdin: bytes | str = b"",
        files: Mapping[str, bytes | str] | None = None,
        read: Iterable[str] = (),
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Result:
        """Runs a Python source (text) or a command (a sequence of words) in /work.

        `files` are written before it, `read` names files below /work to bring back after it (`["*"]`: all).
        Raises `Failed("sandbox_lost")` when the sandbox itself is gone, which says nothing about the program.
        """
        written = dict(files or {})
        if isinstance(program, str):
            written[SCRIPT] = program
            argv = [self._python, "-I", "-B", "-X", "utf8", SCRIPT]
        else:
            argv = list(program)
        async with self._turn:
            return await self._ask(argv, stdin, written, [*read] or None, limits or self.limits, env)

    async def write(self, files: Mapping[str, bytes | str]) -> None:
        """Puts files below /work."""
        await self._ask([], b"", files, None, self.limits, None)

    async def read(self, names: Iterable[str]) -> dict[str, bytes]:
        """The named files below /work; one that is missing or no regular file is left out."""
        return dict((await self._ask([], b"", {}, list(names), self.limits, None)).files)

    async def snapshot(self) -> dict[str, bytes]:
        """Every regular file below /work, by its path there."""
        return await self.read(["*"])

    async def close(self) -> None:
        """Ends everything inside and frees it; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._writer.close()
            await self._end()

    async def _ask(
        self,
        argv: list[str],
        stdin: bytes | str,
        files: Mapping[str, bytes | str],
        read: list[str] | None,
        limits: Limits,
        env: Mapping[str, str] | None,
    ) -> Result:
        if self._closed:
            raise Failed("sandbox_lost", "the sandbox is closed")
        for name in [*files, *(read or ())]:
            if name != SCRIPT and (name.startswith("/") or ".." in name.split("/") or "\0" in name or not name):
                raise ValueError(f"sandbox file {name!r} is not below /work")
        fed = stdin.encode() if isinstance(stdin, str) else stdin
        contents = {name: data.encode() if isinstance(data, str) else data for name, data in files.items()}
        ask = {
            "argv": argv,
            "stdin": len(fed),
            "put": [[name, len(data), 0o644] for name, data in contents.items()],
            "get": read,
            "limits": limits.as_json(),
            "env": dict(env or {}),
        }
        try:
            async with self._lock, asyncio.timeout(limits.wall_s + GRACE_S):
                await send(self._writer, ask, b"".join([fed, *contents.values()]))
                answer, payload = await receive(self._reader)
        except (OSError, EOFError, TimeoutError) as error:
            await self.close()
            raise Failed("sandbox_lost", f"the sandbox is gone: {error or type(error).__name__}") from error
        except BaseException:  # cancelled half-way: what comes next on the socket belongs to nobody
            await self.close()
            raise
        if answer.get("fault"):
            raise OSError(f"sandbox: {answer['fault']}")
        return _result(answer, payload)


async def send(writer: asyncio.StreamWriter, header: dict[str, Any], payload: bytes = b"") -> None:
    """Writes one frame."""
    head = json.dumps(header).encode()
    writer.write(HEAD.pack(len(head), len(payload)) + head + payload)
    await writer.drain()


async def receive(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytes]:
    """Reads one frame; EOFError when the other side is gone."""
    sizes = HEAD.unpack(await reader.readexactly(HEAD.size))
    header: dict[str, Any] = json.loads(await reader.readexactly(sizes[0]))
    return header, await reader.readexactly(sizes[1])


def _result(answer: dict[str, Any], payload: bytes) -> Result:
    out, err = answer["sizes"]
    at, files = out + err, {}
    for name, size in answer.get("files", ()):
        files[name] = payload[at : at + size]
        at += size
    return Result(
        exit_code=answer["exit"] if answer["exit"] is not None else 0,
        stdout=payload[:out],
        stderr=payload[out : out + err],
        cpu_s=answer.get("cpu_s", 0.0),
        wall_s=answer.get("wall_s", 0.0),
        killed_by=answer["killed_by"],
        files=files,
    )
