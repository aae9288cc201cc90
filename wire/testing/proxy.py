"""A proxy that misbehaves: of what passes between two servers it refuses, delays, loses, cuts, doubles and garbles a share.

    async with FaultyProxy("http://127.0.0.1:8000", share=0.05, seed=1) as proxy:
        ...                                   # point the caller at proxy.url
    assert proxy.met["cut"] > 0

It speaks HTTP/1.1 over real sockets, so that a caller meets what a network does to it: a port that refuses, a reset, half a reply.
Replies are read whole before they are passed on. A caller that leaves is gone for the server too.
"""

import asyncio
import random
import socket
import struct
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

FAULTS = ("refuse", "delay", "lose", "lose_reply", "cut", "double", "garble", "spoil")
"""refuse: the connection is reset before anything was read of it, and for a moment nobody can connect. delay: the request is late.
lose: the connection ends before the server has the request. lose_reply: it ends after the server has answered. cut: it ends in the
middle of the reply. double: the server gets the request twice, one after the other or at once, and either reply is passed on. garble: the
reply is no HTTP. spoil: the reply's body is no JSON."""
SHARE = 0.05
LONGEST_DELAY_S = 0.2
REFUSING_S = 0.1  # a server that is being started again refuses for longer; this is a moment's
T = TypeVar("T")
HEAD_BYTES = 1 << 20  # of a request's or reply's head at most


@dataclass(frozen=True, slots=True)
class _Message:
    """A request or reply as it came."""

    head: bytes
    body: bytes
    last: bool = False  # nothing else can come on its connection

    @property
    def path(self) -> str:
        """Of a request, without its query."""
        return self.head.split(b" ", 2)[1].partition(b"?")[0].decode("latin-1")

    @property
    def raw(self) -> bytes:
        return self.head + self.body


class _GoneError(Exception):
    """The caller has left."""


class FaultyProxy:
    """Stands in front of one server; an async context manager.

    Args:
        target: The server's base URL, http.
        share: Of the requests, so many meet with a fault; may be changed while in use.
        seed: Of the faults' order.
        faults: Those of `FAULTS` that may happen, all alike.
        spoils: Whether the reply for a path may be spoilt: where any text is a good reply, nobody can tell that it was.
        port: 0 for any free one.

    Attributes:
        url: Where callers reach the server through it.
        met: How often each fault was met, and `none`.
        came: How many requests came for each path.
    """

    def __init__(
        self,
        target: str,
        *,
        share: float = SHARE,
        seed: int = 0,
        faults: Sequence[str] = FAULTS,
        spoils: Callable[[str], bool] = lambda path: True,
        port: int = 0,
    ) -> None:
        parts = urlsplit(target)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self.share = share
        self.met: Counter[str] = Counter()
        self.came: Counter[str] = Counter()
        self._faults, self._spoils = list(faults), spoils
        self._chance = random.Random(seed)
        self._arrived = asyncio.Condition()
        self._at = ("127.0.0.1", port)
        self._server: asyncio.Server
        self._reopening: asyncio.Task[None] | None = None
        self._callers: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Where callers reach the server through it."""
        return f"http://{self._at[0]}:{self._at[1]}"

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(self, *error: object) -> None:
        ending = [*self._callers, *([self._reopening] if self._reopening else [])]
        for each in ending:
            each.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        self._server.close()

    async def until(self, path: str, times: int) -> None:
        """Wait until so many requests have come for a path."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: self.came[path] >= times)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, *self._at, limit=HEAD_BYTES, backlog=4096)
        self._at = self._server.sockets[0].getsockname()[:2]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._callers.add(task)
        task.add_done_callback(self._callers.discard)
        caller = _Caller(reader, writer)
        try:
            while await self._one(caller):
                pass
        except (OSError, EOFError, _GoneError):
            pass
        except asyncio.CancelledError:
            return  # the proxy is closed; asyncio would log it
        finally:
            caller.close()

    async def _one(self, caller: "_Caller") -> bool:
        """Pass one request on; False when the connection is to end."""
        request = await caller.request()
        if request is None:
            return False
        async with self._arrived:
            self.came[request.path] += 1
            self._arrived.notify_all()
        fault = self._draw(request.path)
        self.met[fault] += 1
        if fault == "refuse":
            caller.reset()
            self._refuse()
        if fault in ("refuse", "lose"):
            return False
        if fault == "delay":
            await caller.while_there(asyncio.sleep(self._chance.uniform(0, LONGEST_DELAY_S)))
        reply = await caller.while_there(self._twice(request) if fault == "double" else self._ask(request))
        if reply is None or fault == "lose_reply":
            return False
        await caller.reply(_harmed(reply, fault))
        return not reply.last and fault not in ("cut", "garble")

    def _draw(self, path: str) -> str:
        if self._chance.random() >= self.share:
            return "none"
        return self._chance.choice([each for each in self._faults if each != "spoil" or self._spoils(path)])

    def _refuse(self) -> None:
        if self._reopening is None or self._reopening.done():
            self._server.close()
            self._reopening = asyncio.create_task(self._listen_again())

    async def _listen_again(self) -> None:
        await asyncio.sleep(self._chance.uniform(0, REFUSING_S))
        await self._listen()

    async def _twice(self, request: _Message) -> _Message | None:
        if self._chance.random() < 0.5:
            replies = [await self._ask(request), await self._ask(request)]
        else:
            replies = list(await asyncio.gather(self._ask(request), self._ask(request)))
        first, second = replies if self._chance.random() < 0.5 else reversed(replies)
        return first or second

    async def _ask(self, request: _Message) -> _Message | None:
        """The server's reply, on a connection of its own; None when there is none."""
        try:
            reader, writer = await asyncio.open_connection(self._host, self._port, limit=HEAD_BYTES)
        except OSError:
            return None
        try:
            writer.write(request.raw)
            return await _read(reader, reply_to=request.head.partition(b" ")[0])
        except (OSError, EOFError):
            return None
        finally:
            writer.close()


class _Caller:
    """The connection to whoever asks."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._early = b""  # what came while a reply was awaited

    async def request(self) -> _Message | None:
        """The next one; None when no more come."""
        early, self._early = self._early, b""
        try:
            return await _read(self._reader, early=early)
        except asyncio.IncompleteReadError:
            return None

    async def while_there(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something until the caller leaves.

        Raises:
            _GoneError: it has.
        """
        working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(self._reader.read(1))
        try:
            await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (working, leaving):
                each.cancel()
            await asyncio.gather(working, leaving, return_exceptions=True)
        if not leaving.cancelled():
            self._early += leaving.result()
        if working.cancelled():
            raise _GoneError
        return working.result()

    async def reply(self, raw: bytes) -> None:
        """Send it."""
        self._writer.write(raw)
        await self._writer.drain()

    def reset(self) -> None:
        """Let the connection end without a farewell, as one to a port that refuses does."""
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def close(self) -> None:
        self._writer.close()


def _harmed(reply: _Message, fault: str) -> bytes:
    if fault == "cut":
        return reply.raw[: len(reply.head) + len(reply.body) // 2] if reply.body else reply.head[: len(reply.head) // 2]
    if fault == "garble":
        return b"\x00\xff" + reply.raw[2:]
    if fault == "spoil" and reply.body:
        begin = reply.body.index(b"\r\n") + 2 if b"chunked" in reply.head.lower() else 0
        return reply.head + reply.body[:begin] + b"\x00" + reply.body[begin + 1 :]
    return reply.raw


async def _read(reader: asyncio.StreamReader, *, reply_to: bytes = b"", early: bytes = b"") -> _Message:
    """The next request, or the reply to one of the method `reply_to`."""
    head = early + await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    fields = dict(line.split(b":", 1) for line in lines[1:] if b":" in line)
    status = lines[0].split(b" ")[1] if reply_to else b""
    if reply_to == b"HEAD" or status in (b"204", b"304"):
        return _Message(head, b"")
    if b"chunked" in fields.get(b"transfer-encoding", b""):
        return _Message(head, await _chunks(reader))
    if (length := fields.get(b"content-length")) is not None:
        return _Message(head, await reader.readexactly(int(length)))
    return _Message(head, await reader.read(), last=True) if reply_to else _Message(head, b"")


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    """A chunked body as it came, its last chunk and trailers included."""
    read = bytearray()
    while True:
        size = await reader.readuntil(b"\r\n")
        read += size
        if int(size.partition(b";")[0], 16) == 0:
            break
        read += await reader.readexactly(int(size.partition(b";")[0], 16) + 2)
    line = b""
    while line != b"\r\n":
        line = await reader.readuntil(b"\r\n")
        read += line
    return bytes(read)
