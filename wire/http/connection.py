"""One connection: a request written in one piece, and its answer read to the end."""

import asyncio
from dataclasses import dataclass
from typing import Protocol, cast

import httptools

from wire.http.coding import decoded
from wire.http.errors import Broken, NotHttp, TooLarge, Undecodable
from wire.http.request import Origin

LARGE_BYTES = 1 << 16  # a body from here on is handed over beside its head, which uvloop does not copy
MAX_LINE_BYTES = 1 << 16  # of a header, a trailer or a chunk's size, about
QUOTED_BYTES = 200  # of what came, in a message
PIECES = 256  # of a body, before they are joined
INTERIM = range(100, 200)  # statuses that another answer follows


@dataclass(slots=True)
class Answer:
    """A whole answer."""

    status: int
    body: bytes
    headers: dict[str, str]
    """Lower-case names; of several lines with one name the last, but for `set-cookie`."""
    cookies: list[str]
    """The `set-cookie` lines."""


class Keeper(Protocol):
    """Who has the connections."""

    max_bytes: int

    def keep(self, connection: "Connection", now: float) -> None:
        """It has nothing to do."""

    def gone(self, connection: "Connection") -> None:
        """It has ended."""


class Connection(asyncio.Protocol):
    """One connection: one request in flight at most. What has no docstring is asyncio's or the parser's to call."""

    def __init__(self, keeper: Keeper, origin: Origin, loop: asyncio.AbstractEventLoop) -> None:
        self.origin = origin
        self.lost = False
        self._keeper, self._loop = keeper, loop
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

    def send(self, first: bytes, body: bytes | list[bytes] | None) -> "asyncio.Future[Answer]":
        """Write a request; its answer comes."""
        self._answered = answered = self._loop.create_future()
        self._came = self._unread = 0
        if self.lost or self._transport.is_closing():
            self.give_up(answered, Broken("the server closed it", status=None, headers={}, body=b"", silent=True))
        elif body is None:
            self._transport.write(first)
        elif isinstance(body, list):
            self._transport.writelines((first, *body))
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
        if self._came > self._keeper.max_bytes:
            self._fail(TooLarge(f"more than {self._keeper.max_bytes} bytes"))
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
        self._keeper.gone(self)
        silent = not self._answered or (not self._came and (exc is None or self._used))
        message, body = str(exc or "") or "the server closed it", b"".join(self._chunks)
        self._fail(Broken(message, status=self._status, headers=self._headers, body=body, silent=silent))
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
            self._keeper.keep(self, self._loop.time())
        else:
            self.abort()
        if answered is None or answered.done() or status is None:
            return
        try:
            body = chunks[0] if len(chunks) == 1 and isinstance(chunks[0], bytes) else b"".join(chunks)
            if "content-encoding" in headers:
                body = decoded(headers["content-encoding"].strip().lower(), body, self._keeper.max_bytes)
            answered.set_result(Answer(status, body, headers, cookies))
        except Undecodable as error:
            answered.set_exception(Broken(str(error), status=status, headers=headers, body=error.body, silent=False))
        except TooLarge as error:
            answered.set_exception(error)
