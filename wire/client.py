"""How one process calls another: named servers, pooled connections, deadlines, and which failures may be tried again.

Who retries what is fixed: a call is repeated when no connection was made, so that it cannot have been received; a call that the other
side answers alike however often it comes (`Retry.REPLAY`) is repeated after a lost reply too. Nothing is repeated after a time-out.
"""

import asyncio
import enum
import random
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from yarl import URL

from wire import http, strict_json
from wire.deadline import HEADER, Deadline
from wire.errors import TriviumError

ATTEMPTS = 5  # per call, where it may be repeated at all
LOST_REPLIES = 2  # after which a call is not replayed: what it asks for may be what kills the server
FIRST_WAIT_S = 0.1  # before the second try; doubles each time, with jitter
LONGEST_WAIT_S = 2.0
CONNECT_S = 10.0  # a connection on a cluster takes milliseconds; past this the host is not there
KEEP_ALIVE_S = 4.0  # below every server's own (uvicorn: 5 s), so that a call is never sent into a closing socket
QUOTED_CHARACTERS = 200  # of an answer, in a message
CACHED_HEADS = 4096


class Retry(enum.Enum):
    """Which failures of a call may be tried again."""

    NEVER = 0
    CONNECT = 1
    """Only when no connection was made."""
    REPLAY = 2
    """Also when the reply was lost: the other side answers a repeat from memory."""


class CallError(TriviumError):
    """A call got no answer."""

    def __init__(self, message: str, server: str) -> None:
        super().__init__(message)
        self.server = server


class Unreachable(CallError):
    """No connection could be made; the call was not received."""

    status, code = 502, "unreachable"


class ConnectionLost(CallError):
    """The connection broke after the call was sent; it may have been received."""

    status, code = 502, "connection_lost"


class TimedOut(CallError):
    """No answer within the deadline; the call may have been received."""

    status, code = 504, "timed_out"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, whatever its status."""

    server: str
    path: str
    status: int
    body: bytes
    headers: Mapping[str, str]
    """Lower-case names; `Set-Cookie` lines are in `cookies`."""
    cookies: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Whether the status is below 400."""
        return self.status < 400

    def quote(self) -> str:
        """`server answered 503 to /path: …`, with the server's own message where it gave one."""
        return f"{self.server} answered {self.status} to {self.path}: {self.message() or 'no body'}"

    def message(self) -> str:
        """The sentence in the body: `error.message`, `error`, `detail`, or the first characters of it."""
        error = self._error()
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            return str(error["message"])[: QUOTED_CHARACTERS * 5]
        if isinstance(error, str):
            return error[: QUOTED_CHARACTERS * 5]
        return self.body[: QUOTED_CHARACTERS * 4].decode(errors="replace")[:QUOTED_CHARACTERS]

    def code(self) -> str | None:
        """`error.code` of the body, where there is one."""
        error = self._error()
        code = error.get("code") if isinstance(error, dict) else None
        return code if isinstance(code, str) else None

    def _error(self) -> object:
        try:
            body = strict_json.loads(self.body)
        except strict_json.JSONError:
            return None
        return body.get("error", body.get("detail")) if isinstance(body, dict) else None


class Client:
    """Posts to servers by their config name (`resources_server`), not by address.

    Use as an async context manager. Cookies are the caller's to pass on: rollouts share the connection pool and must not share a
    session. Proxies of the process's environment are never used.

    Args:
        addresses: Server name to base URL; may be changed while in use.
        token: The stack's bearer token, sent with every call.
        connections: At most so many at once; further calls wait for a free one.
    """

    def __init__(self, addresses: Mapping[str, str], *, token: str | None = None, connections: int = 4096) -> None:
        self.addresses = dict(addresses)
        self.token = token
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._named = frozenset(map(str.lower, {HEADER, "Host", "Accept-Encoding", "Authorization", *self._headers}))
        self._pool = http.Pool(connections=connections, connect_s=CONNECT_S, keep_alive_s=KEEP_ALIVE_S)
        self._heads: dict[tuple[str, str], tuple[http.Origin, str]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._pool.close()

    async def post(
        self,
        server: str,
        path: str,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        deadline: Deadline,
        retry: Retry = Retry.CONNECT,
    ) -> Reply:
        """POST JSON text and read the whole answer.

        `X-Budget-S` is set from the deadline, unless `headers` has one. An HTTP error status is an answer, not an exception.

        Raises:
            Unreachable: no connection within the tries and the deadline.
            ConnectionLost: the connection broke after the call was sent (with `REPLAY`: at every try).
            TimedOut: the deadline passed.
        """
        return await self._call("POST", server, path, body, headers, deadline, retry)

    async def get(
        self, server: str, path: str, *, deadline: Deadline, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """GET, which may always be repeated. Raises as `post`."""
        return await self._call("GET", server, path, None, headers, deadline, Retry.REPLAY)

    async def _call(
        self,
        method: str,
        server: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        deadline: Deadline,
        retry: Retry,
    ) -> Reply:
        lost = 0
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._once(method, server, path, body, headers, deadline)
            except (Unreachable, ConnectionLost) as error:
                lost += isinstance(error, ConnectionLost)
                again = lost < LOST_REPLIES and (
                    retry is Retry.REPLAY or (retry is Retry.CONNECT and isinstance(error, Unreachable))
                )
                wait = _wait_s(attempt)
                if not again or attempt == ATTEMPTS or deadline.left() <= wait:
                    raise
                await asyncio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    async def _once(
        self,
        method: str,
        server: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        deadline: Deadline,
    ) -> Reply:
        left, url = deadline.left(), self.addresses[server].rstrip("/") + path
        if left <= 0:
            raise TimedOut(f"{server} was not asked for {path}: no time is left", server)
        own = {HEADER: f"{left:.3f}"}
        try:
            origin, head = self._heads.get((method, url)) or self._head(method, url)
            if headers and not self._named.isdisjoint(map(str.lower, headers)):  # the caller's own count
                head = http.head(method, URL(url), http.merged({**self._headers, **own}, headers))
            else:
                head += http.lines({**own, **headers} if headers else own)
            answer = await self._pool.call(origin, head, body, left)
        except http.NoConnection as error:
            raise Unreachable(f"{server} at {url}: no connection ({error})", server) from error
        except TimeoutError as error:
            raise TimedOut(f"{server} at {url}: no answer within {left:.1f} s", server) from error
        except (http.Broken, http.NotHttp, http.TooLarge) as error:
            raise ConnectionLost(f"{server} at {url}: the connection broke ({error})", server) from error
        cookies = _cookies(answer.cookies) if answer.cookies else {}
        return Reply(server, path, answer.status, answer.body, answer.headers, cookies)

    def _head(self, method: str, url: str) -> tuple[http.Origin, str]:
        if len(self._heads) >= CACHED_HEADS:
            self._heads.clear()
        try:
            parsed = URL(url)
        except ValueError as error:
            raise http.NoConnection(str(error)) from error
        made = self._heads[method, url] = (http.Origin.of(parsed), http.head(method, parsed, self._headers))
        return made


def _wait_s(attempt: int) -> float:
    longest = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (attempt - 1))
    return random.uniform(FIRST_WAIT_S / 2, longest)


def _cookies(lines: list[str]) -> dict[str, str]:
    """Names and values of `Set-Cookie` lines, as RFC 6265 (5.2) reads them; the attributes are for browsers."""
    found = {}
    for line in lines:
        name, equals, value = line.partition(";")[0].partition("=")
        if equals and name.strip():
            found[name.strip()] = value.strip()
    return found
