"""Connections to servers, kept and used again."""

import asyncio
import ssl
from collections import OrderedDict
from typing import Any

import aiohappyeyeballs

from wire.http.connection import Answer, Connection
from wire.http.errors import NoConnection
from wire.http.names import Names
from wire.http.request import Origin

MAX_BYTES = 256 << 20  # of an answer, all that comes counted; as our servers bound a request
NEXT_ADDRESS_S = 0.25  # before a host's next address is tried beside the one before (RFC 8305)


class Pool:
    """Connections to servers, kept while they are of use. It belongs to the event loop that uses it.

    Args:
        connections: Calls at once, at most; further ones wait.
        connect_s: For a connection to be made.
        keep_alive_s: An idle one is used again for so long: less than the servers' own, so that no call is sent into a closing socket.
        max_bytes: Of one answer.
    """

    def __init__(self, *, connections: int, connect_s: float, keep_alive_s: float, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self._places = asyncio.Semaphore(connections)
        self._connect_s, self._keep_alive_s = connect_s, keep_alive_s
        self._idle: dict[Origin, OrderedDict[Connection, float]] = {}  # since when, the longest first
        self._all: set[Connection] = set()
        self._names = Names()
        self._tls: ssl.SSLContext | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    async def call(self, origin: Origin, head: str, body: bytes | list[bytes] | None, limit_s: float) -> Answer:
        """Send one request and read its answer.

        Args:
            origin: Where to.
            head: What `head` made, and more of `lines`.
            body: Whole or in pieces; None for a request without one.
            limit_s: Seconds for everything.

        Raises:
            NoConnection: none could be made; nothing was sent.
            TimeoutError: the time is up.
            Broken, NotHttp, TooLarge: no whole answer came.
            ValueError: the head holds what is no text.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + limit_s
        size = sum(map(len, body)) if isinstance(body, list) else len(body or b"")
        first = (f"{head}\r\n" if body is None else f"{head}Content-Length: {size}\r\n\r\n").encode()
        if self._places.locked():
            async with asyncio.timeout_at(until):
                await self._places.acquire()
        else:
            await self._places.acquire()
        try:
            connection = self._kept(origin, loop.time()) or await self._connected(loop, origin, until)
            answered = connection.send(first, body)
            timer = loop.call_at(until, connection.give_up, answered, TimeoutError())
            try:
                return await answered
            finally:
                timer.cancel()
                connection.give_up(
                    answered
                )  # where the caller was cancelled; an answer that has come is nobody's any more
        finally:
            self._places.release()

    async def close(self) -> None:
        """End every connection, and the calls on it; there are none from now on."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for each in list(self._all):
            each.abort()
        await asyncio.sleep(0)  # for the transports to be gone

    def _kept(self, origin: Origin, now: float) -> "Connection | None":
        if self._closed:
            raise NoConnection("the client is closed")
        idle = self._idle.get(origin)
        while idle:
            connection, since = idle.popitem()
            if connection.usable and now - since < self._keep_alive_s:
                return connection
            connection.abort()
        return None

    async def _connected(self, loop: asyncio.AbstractEventLoop, origin: Origin, until: float) -> "Connection":
        limit_s = min(self._connect_s, until - loop.time())
        try:
            async with asyncio.timeout(limit_s):
                place = await self._place(loop, origin)
                _, connection = await loop.create_connection(
                    lambda: Connection(self, origin, loop), **place, **self._secure(origin)
                )
        except TimeoutError as error:
            if limit_s < self._connect_s:
                raise
            raise NoConnection(f"no connection within {limit_s:.1f} s") from error
        except (OSError, ValueError) as error:  # ValueError: a host name that is none
            raise NoConnection(str(error) or type(error).__name__) from error
        if self._closed:
            connection.abort()
            raise NoConnection("the client is closed")
        if not connection.lost:
            self._all.add(connection)
        return connection

    async def _place(self, loop: asyncio.AbstractEventLoop, origin: Origin) -> dict[str, Any]:
        """What `create_connection` needs: the one address there is, or a socket that is connected to one of them."""
        addresses = await self._names.of(origin.host, origin.port)
        if len(addresses) == 1:
            host, port = addresses[0][4][:2]
            return {"host": host, "port": port}
        return {
            "sock": await aiohappyeyeballs.start_connection(addresses, happy_eyeballs_delay=NEXT_ADDRESS_S, loop=loop)
        }

    def _secure(self, origin: Origin) -> dict[str, Any]:
        if not origin.tls:
            return {}
        self._tls = self._tls or ssl.create_default_context()
        return {"ssl": self._tls, "server_hostname": origin.host}

    def keep(self, connection: "Connection", now: float) -> None:
        """It has nothing to do."""
        self._idle.setdefault(connection.origin, OrderedDict())[connection] = now
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(self._keep_alive_s, self._sweep)

    def gone(self, connection: "Connection") -> None:
        """It has ended."""
        self._all.discard(connection)
        idle = self._idle.get(connection.origin)
        if idle is not None:
            idle.pop(connection, None)
            if not idle:
                del self._idle[connection.origin]

    def _sweep(self) -> None:
        """End those that have been idle for too long; come again while there are others."""
        loop = asyncio.get_running_loop()
        oldest = loop.time() - self._keep_alive_s
        for idle in self._idle.values():
            for connection, since in idle.items():
                if since > oldest:
                    break
                connection.abort()
        self._sweeper = loop.call_later(self._keep_alive_s, self._sweep) if self._idle else None
