"""HTTP/1.1 for whole answers: a request is written in one piece, its answer is read to the end, connections are kept and used again.

On the path of a step aiohttp's client is the largest single cost (90 to 115 us a call on two cores, where this takes 20): this one knows
no redirects, no proxies, no cookies of its own and no streams, so what needs them asks elsewhere. The parser is httptools' (llhttp), which
parses for uvicorn too.
"""

import asyncio
import ipaddress
import socket
import ssl
import zlib
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import aiohappyeyeballs
import httptools
from yarl import URL

LARGE_BYTES = 1 << 16  # a body from here on is handed over beside its head, which uvloop does not copy
MAX_BYTES = 256 << 20  # of an answer, all that comes counted; as our servers bound a request
MAX_LINE_BYTES = 1 << 16  # of a header, a trailer or a chunk's size, about
QUOTED_BYTES = 200  # of what came, in a message
PIECES = 256  # of a body, before they are joined
NAMES_S = 60.0  # for which a host's addresses are kept
NEXT_ADDRESS_S = 0.25  # before a host's next address is tried beside the one before (RFC 8305)
INTERIM = range(100, 200)  # statuses that another answer follows
CODINGS = ("gzip", "x-gzip", "deflate", "br", "zstd", "compress")  # of bodies, that mean anything
GZIP_OR_ZLIB, RAW_DEFLATE = 47, -15  # zlib's window bits

Addresses = list[tuple[Any, Any, int, str, Any]]  # as getaddrinfo gives them


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
    """The first lines of a request, which more of `lines` may follow; a header that is given stands in place of ours.

    Raises:
        ValueError: a header holds a line break.
        NoConnection: what is no http(s) URL.
    """
    origin = Origin.of(url)
    own = {"Host": origin.authority, "Accept-Encoding": "identity"}
    if origin.credentials is not None:
        own["Authorization"] = origin.credentials
    return f"{method} {url.raw_path_qs} HTTP/1.1\r\n" + lines(merged(own, headers))


def lines(headers: Mapping[str, str]) -> str:
    """Header lines. Raises `ValueError` where one holds a line break or a NUL."""
    made = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if made.count("\r") != len(headers) or made.count("\n") != len(headers) or "\0" in made:
        raise ValueError("a header holds a line break or a NUL")
    return made


def merged(headers: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Both; of one name, whatever its case, that of `others`."""
    named = set(map(str.lower, others))
    return {**{name: value for name, value in headers.items() if name.lower() not in named}, **others}


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
        connections: Calls at once, at most; further ones wait.
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
        self._names = _Names()
        self._tls: ssl.SSLContext | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

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
            ValueError: the head holds what is no text.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + limit_s
        first = (f"{head}\r\n" if body is None else f"{head}Content-Length: {len(body)}\r\n\r\n").encode()
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

    def _kept(self, origin: Origin, now: float) -> "_Connection | None":
        if self._closed:
            raise NoConnection("the client is closed")
        idle = self._idle.get(origin)
        while idle:
            connection, since = idle.popitem()
            if connection.usable and now - since < self._keep_alive_s:
                return connection
            connection.abort()
        return None

    async def _connected(self, loop: asyncio.AbstractEventLoop, origin: Origin, until: float) -> "_Connection":
        limit_s = min(self._connect_s, until - loop.time())
        try:
            async with asyncio.timeout(limit_s):
                place = await self._place(loop, origin)
                _, connection = await loop.create_connection(
                    lambda: _Connection(self, origin, loop), **place, **self._secure(origin)
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
        addresses = await self._names.of(loop, origin)
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

    def keep(self, connection: "_Connection", now: float) -> None:
        """It has nothing to do."""
        self._idle.setdefault(connection.origin, OrderedDict())[connection] = now
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(self._keep_alive_s, self._sweep)

    def gone(self, connection: "_Connection") -> None:
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


class _Names:
    """The addresses of hosts, looked up once for all who ask at a time, and kept for a while."""

    def __init__(self) -> None:
        self._look_up: Callable[..., Awaitable[Addresses]] | None = None  # for tests; else the loop's own
        self._known: dict[tuple[str, int], tuple[float, asyncio.Future[Addresses]]] = {}

    async def of(self, loop: asyncio.AbstractEventLoop, origin: Origin) -> Addresses:
        """Raises OSError where there are none."""
        key, now = (origin.host, origin.port), loop.time()
        if (literal := _literal(*key)) is not None:
            return literal
        until, asked = self._known.get(key, (0.0, None))
        if asked is None or now >= until or (asked.done() and (asked.cancelled() or asked.exception() is not None)):
            look_up = self._look_up or loop.getaddrinfo
            asked = asyncio.ensure_future(look_up(*key, type=socket.SOCK_STREAM))
            asked.add_done_callback(_seen)
            self._known = {name: kept for name, kept in self._known.items() if now < kept[0]}
            self._known[key] = now + NAMES_S, asked
        return await asyncio.shield(asked)


def _seen(asked: "asyncio.Future[Addresses]") -> None:
    """Its failure is told to those who wait; there may be none left."""
    if not asked.cancelled():
        asked.exception()


def _literal(host: str, port: int) -> Addresses | None:
    """The address that a host is, where it is one."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if address.version == 4:
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port))]
    return [(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port, 0, 0))]


class _Connection(asyncio.Protocol):
    """One connection: one request in flight at most. What has no docstring is asyncio's or the parser's to call."""

    def __init__(self, pool: Pool, origin: Origin, loop: asyncio.AbstractEventLoop) -> None:
        self.origin = origin
        self.lost = False
        self._pool, self._loop = pool, loop
        self._parser = httptools.HttpResponseParser(self)
        # as aiohttp reads answers: one request at a time, so that nothing can hide behind a line that is read kindly
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._transport: asyncio.Transport
        self._answered: asyncio.Future[Answer] | None = None
        self._used = False  # an answer has come on it before
        self._begin()

    def _begin(self) -> None:
        self._status: int | None = None
        self._headers: dict[str, str] = {}
        self._cookies: list[str] = []
        self._chunks: list[bytes | bytearray] = []

    @property
    def usable(self) -> bool:
        """Whether a request may be sent."""
        return self._answered is None and not self._transport.is_closing()

    def send(self, first: bytes, body: bytes | None) -> "asyncio.Future[Answer]":
        """Write a request; its answer comes."""
        self._answered = answered = self._loop.create_future()
        self._came = self._unread = 0
        if self.lost or self._transport.is_closing():
            self.give_up(answered, Broken("the server closed it", status=None, body=b"", silent=True))
        elif body is None:
            self._transport.write(first)
        elif len(body) < LARGE_BYTES:
            self._transport.write(first + body)
        else:
            self._transport.writelines((first, body))
        return answered

    def give_up(self, answered: "asyncio.Future[Answer]", error: Exception | None = None) -> None:
        """End the connection if it is still this answer that it waits for: by then it may be somebody else's."""
        if self._answered is not answered:
            return
        self._answered = None
        if error is not None and not answered.done():
            answered.set_exception(error)
        self.abort()

    def abort(self) -> None:
        """End it at once."""
        self._transport.abort()

    def _fail(self, error: Exception) -> None:
        if self._answered is not None:
            self.give_up(self._answered, error)
        else:
            self.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own is none by its class

    def data_received(self, data: bytes) -> None:
        if self._answered is None:
            self.abort()  # nothing was asked
            return
        self._came += len(data)
        self._unread += len(data)
        if self._came > self._pool.max_bytes:
            self._fail(TooLarge(f"more than {self._pool.max_bytes} bytes"))
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(NotHttp("a switch of protocols"))
        except httptools.HttpParserError as error:
            self._fail(NotHttp(f"{error}: {data[:QUOTED_BYTES]!r}"))
        if self._unread > MAX_LINE_BYTES:  # the parser keeps what is of a line that does not end
            self._fail(TooLarge(f"a line of more than {MAX_LINE_BYTES} bytes"))

    def eof_received(self) -> None:
        framed = "content-length" in self._headers or "chunked" in self._headers.get("transfer-encoding", "").lower()
        if self._status is not None and self._status not in INTERIM and not framed:
            self._finish(keep=False)  # an answer without a length ends with its connection

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._pool.gone(self)
        silent = not self._answered or (not self._came and (exc is None or self._used))
        body = b"".join(self._chunks)
        self._fail(Broken(str(exc or "") or "the server closed it", status=self._status, body=body, silent=silent))
        del self._parser  # it holds on to us

    def on_message_begin(self) -> None:
        if self._answered is None:
            raise NotHttp

    def on_header(self, name: bytes, value: bytes) -> None:
        self._unread = 0
        if self._status is not None:
            return  # behind the body: nobody asked for it
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        if key == "set-cookie":
            self._cookies.append(text)
        else:
            self._headers[key] = text

    def on_headers_complete(self) -> None:
        self._unread = 0
        self._status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        self._chunks.append(body)
        if len(self._chunks) > PIECES:
            whole, *rest = self._chunks
            whole = whole if isinstance(whole, bytearray) else bytearray(whole)
            whole += b"".join(rest)
            self._chunks = [whole]

    def on_message_complete(self) -> None:
        self._unread = 0
        if self._status in INTERIM:
            self._begin()
        else:
            self._finish(keep=self._parser.should_keep_alive())

    def _finish(self, *, keep: bool) -> None:
        answered, self._answered = self._answered, None
        status, headers, cookies, chunks = self._status, self._headers, self._cookies, self._chunks
        self._begin()
        if keep and not self._transport.is_closing() and not self._transport.get_write_buffer_size():
            self._used = True
            self._pool.keep(self, self._loop.time())
        else:
            self.abort()
        if answered is None or answered.done() or status is None:
            return
        try:
            body = chunks[0] if len(chunks) == 1 and isinstance(chunks[0], bytes) else b"".join(chunks)
            if "content-encoding" in headers:
                body = _decoded(headers["content-encoding"].strip().lower(), body, self._pool.max_bytes)
            answered.set_result(Answer(status, body, headers, cookies))
        except (NotHttp, TooLarge) as error:
            answered.set_exception(error)


def _decoded(coding: str, body: bytes, most: int) -> bytes:
    """Plain bodies are asked for; some servers send these all the same. A coding that means nothing is passed over."""
    if coding not in CODINGS or not body:
        return body
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise NotHttp(f"a body in content-encoding {coding!r}, which was not asked for")
    try:
        return _inflated(body, most, GZIP_OR_ZLIB)
    except zlib.error as error:
        if coding == "deflate":
            try:
                return _inflated(body, most, RAW_DEFLATE)
            except zlib.error:
                pass  # the first reason says more
        raise NotHttp(f"a body that is not {coding} as it says: {error}") from error


def _inflated(body: bytes, most: int, bits: int) -> bytes:
    texts, size = [], 0
    while body:  # gzip: one member after the other
        made = zlib.decompressobj(bits)
        texts.append(made.decompress(body, max(1, most - size)))
        size += len(texts[-1])
        if made.unconsumed_tail or size > most:
            raise TooLarge(f"more than {most} bytes")
        if not made.eof:
            raise NotHttp("a compressed body that ends early")
        body = made.unused_data
    return b"".join(texts)
