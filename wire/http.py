"""HTTP/1.1 for whole answers: a request is written in one piece, its answer is read to the end, connections are kept and used again.

On the path of a step aiohttp's client is the largest single cost (90 to 115 us a call on two cores, where this takes 20): this one knows
no redirects, no proxies, no cookies of its own and no streams, so what needs them asks elsewhere. The parser is httptools' (llhttp), which
parses for uvicorn too.
"""

import asyncio
import ssl
import zlib
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import httptools
from yarl import URL

LARGE_BYTES = 1 << 16  # a body from here on is not copied behind its head
MAX_BYTES = 1 << 30  # of an answer, its header lines included
QUOTED_BYTES = 200  # of what came, in a message
GZIP_OR_ZLIB = 47  # zlib's window bits for both forms, told apart by their first bytes
FIRST_FINAL_STATUS = 200  # below it an answer is followed by another


class NoConnection(Exception):
    """None could be made: the request was not received."""


class Broken(Exception):
    """The connection ended before the answer did.

    Attributes:
        status: Of the answer, where its head had come.
        body: What had come of it.
        silent: Not a byte came back: most likely the server had closed it before the request came.
    """

    def __init__(self, message: str, *, status: int | None, body: bytes, silent: bool) -> None:
        super().__init__(message)
        self.status, self.body, self.silent = status, body, silent


class NotHttp(Exception):
    """What came is no HTTP/1.1 answer that can be read."""


class TooLarge(Exception):
    """The answer is larger than the pool's bound."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A server: whom to connect to, and what every request to it begins with."""

    host: str
    port: int
    tls: bool
    authority: str
    """For the `Host` line."""
    credentials: str | None
    """The `Authorization` of a URL that holds a name and a password."""

    @classmethod
    def of(cls, url: URL) -> "Origin":
        """Raises `NoConnection` for what is no http(s) URL."""
        host, port = url.raw_host, url.port
        if url.scheme not in ("http", "https") or not host or not port:
            raise NoConnection(f"{str(url)!r} is no http:// or https:// URL")
        authority = url.raw_authority.rpartition("@")[2]
        named = url.user is not None or url.password is not None
        pair = b64encode(f"{url.user or ''}:{url.password or ''}".encode()).decode()
        return cls(host, port, url.scheme == "https", authority, f"Basic {pair}" if named else None)


def head(method: str, url: URL, headers: Mapping[str, str]) -> str:
    """The first lines of a request, which more of `lines` may follow.

    Raises:
        ValueError: a header holds a line break.
        NoConnection: what is no http(s) URL.
    """
    origin = Origin.of(url)
    own = {"Host": origin.authority}
    if origin.credentials is not None:
        own["Authorization"] = origin.credentials
    return f"{method} {url.raw_path_qs} HTTP/1.1\r\n" + lines({**own, **headers})


def lines(headers: Mapping[str, str]) -> str:
    """Header lines. Raises `ValueError` where one holds a line break."""
    made = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if made.count("\r") != len(headers) or made.count("\n") != len(headers) or "\0" in made:
        raise ValueError("a header holds a line break")
    return made


@dataclass(slots=True)
class Answer:
    """A whole answer."""

    status: int
    body: bytes
    headers: dict[str, str]
    """Lower-case names; of several lines with one name the last, but for `set-cookie`."""
    cookies: list[str]
    """The `set-cookie` lines."""


class Pool:
    """Connections to servers, kept while they are of use. It belongs to the event loop that uses it.

    Args:
        connections: Open at once, at most; further calls wait.
        connect_s: For a connection to be made.
        keep_alive_s: An idle one is used again for so long: less than the servers' own, so that no call is sent into a closing socket.
        max_bytes: Of one answer.
    """

    def __init__(self, *, connections: int, connect_s: float, keep_alive_s: float, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self._places = asyncio.Semaphore(connections)
        self._connect_s, self._keep_alive_s = connect_s, keep_alive_s
        self._idle: dict[Origin, OrderedDict[_Connection, float]] = {}  # since when, the longest first
        self._all: set[_Connection] = set()
        self._tls: ssl.SSLContext | None = None

    async def call(self, origin: Origin, head: str, body: bytes | None, limit_s: float) -> Answer:
        """Send one request and read its answer.

        Args:
            origin: Where to.
            head: What `head` made, and more of `lines`.
            body: None for a request without one.
            limit_s: Seconds for everything.

        Raises:
            NoConnection: none could be made; nothing was sent.
            TimeoutError: the time is up.
            Broken, NotHttp, TooLarge: no whole answer came.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + limit_s
        if self._places.locked():
            async with asyncio.timeout_at(until):
                await self._places.acquire()
        else:
            await self._places.acquire()
        try:
            connection = self._kept(origin, loop.time()) or await self._connected(loop, origin, until)
            answered = connection.send(head, body)
            timer = loop.call_at(until, connection.fail, TimeoutError())
            try:
                return await answered
            except asyncio.CancelledError:
                connection.abort()
                raise
            finally:
                timer.cancel()
        finally:
            self._places.release()

    async def close(self) -> None:
        """End every connection."""
        for each in list(self._all):
            each.abort()
        await asyncio.sleep(0)  # for the transports to be gone

    def _kept(self, origin: Origin, now: float) -> "_Connection | None":
        idle = self._idle.get(origin)
        while idle:
            connection, since = idle.popitem()
            if connection.usable and now - since < self._keep_alive_s:
                return connection
            connection.abort()
        return None

    async def _connected(self, loop: asyncio.AbstractEventLoop, origin: Origin, until: float) -> "_Connection":
        limit_s = min(self._connect_s, until - loop.time())
        secure: dict[str, Any] = {}
        if origin.tls:
            self._tls = self._tls or ssl.create_default_context()
            secure = {"ssl": self._tls, "server_hostname": origin.host}
        try:
            async with asyncio.timeout(limit_s):
                _, connection = await loop.create_connection(
                    lambda: _Connection(self, origin, loop), origin.host, origin.port, **secure
                )
        except TimeoutError as error:
            raise NoConnection(f"none within {limit_s:.1f} s") from error
        except (OSError, ValueError) as error:  # ValueError: a host name that is none
            raise NoConnection(str(error) or type(error).__name__) from error
        return connection

    def opened(self, connection: "_Connection") -> None:
        """It is there, from now until it is `lost`."""
        self._all.add(connection)

    def keep(self, connection: "_Connection", now: float) -> None:
        """It has nothing to do."""
        idle = self._idle.get(connection.origin)
        if idle is None:
            idle = self._idle[connection.origin] = OrderedDict()
        while idle:
            oldest = next(iter(idle))
            if now - idle[oldest] < self._keep_alive_s:
                break
            del idle[oldest]
            oldest.abort()
        idle[connection] = now

    def lost(self, connection: "_Connection") -> None:
        """It has ended."""
        self._all.discard(connection)
        idle = self._idle.get(connection.origin)
        if idle is not None:
            idle.pop(connection, None)
            if not idle:
                del self._idle[connection.origin]


class _Connection(asyncio.Protocol):
    """One connection: one request in flight at most. What has no docstring is asyncio's or the parser's to call."""

    def __init__(self, pool: Pool, origin: Origin, loop: asyncio.AbstractEventLoop) -> None:
        self.origin = origin
        self._pool, self._loop = pool, loop
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport
        self._answered: asyncio.Future[Answer] | None = None
        self._begin()

    def _begin(self) -> None:
        self._status: int | None = None
        self._headers: dict[str, str] = {}
        self._cookies: list[str] = []
        self._chunks: list[bytes] = []
        self._size = 0
        self._heard = False

    @property
    def usable(self) -> bool:
        """Whether a request may be sent."""
        return self._answered is None and not self._transport.is_closing()

    def send(self, head: str, body: bytes | None) -> "asyncio.Future[Answer]":
        """Write a request; its answer comes."""
        self._answered = answered = self._loop.create_future()
        if body is None:
            self._transport.write(f"{head}\r\n".encode())
            return answered
        first = f"{head}Content-Length: {len(body)}\r\n\r\n".encode()
        if len(body) < LARGE_BYTES:
            self._transport.write(first + body)
        else:
            self._transport.writelines((first, body))
        return answered

    def fail(self, error: Exception) -> None:
        """Give up the answer, and the connection."""
        answered, self._answered = self._answered, None
        if answered is not None and not answered.done():
            answered.set_exception(error)
        self.abort()

    def abort(self) -> None:
        """End it at once."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own is none by its class
        self._pool.opened(self)

    def data_received(self, data: bytes) -> None:
        if self._answered is None:
            self.abort()  # nothing was asked
            return
        self._heard = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            self.fail(error.__context__ if isinstance(error.__context__, TooLarge) else NotHttp("more than was asked"))
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.fail(NotHttp(f"{error or 'a switch of protocols'}: {data[:QUOTED_BYTES]!r}"))

    def eof_received(self) -> None:
        framed = "content-length" in self._headers or "transfer-encoding" in self._headers
        if self._status is not None and not framed:
            self._finish(keep=False)  # an answer without a length ends with its connection

    def connection_lost(self, exc: Exception | None) -> None:
        self._pool.lost(self)
        if self._answered is not None:
            cause = str(exc or "") or "the server closed it"
            self.fail(Broken(cause, status=self._status, body=b"".join(self._chunks), silent=not self._heard))
        del self._parser  # it holds on to us

    def on_message_begin(self) -> None:
        if self._answered is None:
            raise NotHttp

    def on_header(self, name: bytes, value: bytes) -> None:
        self._grown(len(name) + len(value))
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        if key == "set-cookie":
            self._cookies.append(text)
        else:
            self._headers[key] = text

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._chunks.append(body)
        self._grown(len(body))

    def on_message_complete(self) -> None:
        if self._status is not None and self._status < FIRST_FINAL_STATUS:
            self._begin()
        else:
            self._finish(keep=self._parser.should_keep_alive())

    def _grown(self, size: int) -> None:
        self._size += size
        if self._size > self._pool.max_bytes:
            raise TooLarge(f"an answer over {self._pool.max_bytes} bytes")

    def _finish(self, *, keep: bool) -> None:
        answered, self._answered = self._answered, None
        status, headers, cookies, chunks = self._status, self._headers, self._cookies, self._chunks
        self._begin()
        if keep and not self._transport.is_closing() and not self._transport.get_write_buffer_size():
            self._pool.keep(self, self._loop.time())
        else:
            self.abort()
        if answered is None or answered.done() or status is None:
            return
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        try:
            if "content-encoding" in headers:
                body = _decoded(headers["content-encoding"], body, self._pool.max_bytes)
            answered.set_result(Answer(status, body, headers, cookies))
        except (NotHttp, TooLarge) as error:
            answered.set_exception(error)


def _decoded(encoding: str, body: bytes, most: int) -> bytes:
    """Plain bodies are asked for; some servers send these all the same."""
    if encoding == "identity" or not body:
        return body
    if encoding not in ("gzip", "deflate"):
        raise NotHttp(f"a body in content-encoding {encoding!r}, which was not asked for")
    made = zlib.decompressobj(GZIP_OR_ZLIB)
    try:
        text = made.decompress(body, most)
    except zlib.error as error:
        raise NotHttp(f"a body that is not {encoding} as it says: {error}") from error
    if made.unconsumed_tail:
        raise TooLarge(f"an answer over {most} bytes")
    if not made.eof:
        raise NotHttp(f"a body in {encoding} that ends early")
    return text
