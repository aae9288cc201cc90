"""One try of a call to a model server: the bytes there and back, and which fault it was where nothing whole came.

Whole answers go over `wire.http`; streams, and whatever stands behind a proxy, over aiohttp.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TypeGuard

import aiohttp
from yarl import URL

from model_interface import faults
from model_interface.endpoints import Endpoint
from model_interface.proxies import proxy_for
from wire import http
from wire.errors import Failed

CONNECT_S = 4.5  # a dead address is named within 5 s, whatever the budget
CONNECTIONS = 1 << 20  # the limiters bound them
KEEP_ALIVE_S = 4.0  # below uvicorn's 5 s, so that a call is rarely sent into a closing socket


class Fault(Exception):
    """One try failed: with what, and whether another may go better."""

    def __init__(self, failure: Failed, *, again: bool, retry_after: str | None = None, free: bool = False) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.again = again
        self.retry_after = retry_after
        self.free = free  # the connection had been closed: most likely the server never saw the call


class Exchange:
    """The connections to a model's servers.

    Args:
        headers: Of every request.
        max_body_bytes: Of an answer.
        counted: Told how each try that failed did so.
    """

    def __init__(
        self, headers: Mapping[str, str], max_body_bytes: int, counted: Callable[[Endpoint, str], None]
    ) -> None:
        self._headers, self._max_body_bytes, self._counted = headers, max_body_bytes, counted
        self._proxies: dict[str, str | None] = {}
        self._heads: dict[tuple[str, str, str], tuple[http.Origin, str]] = {}
        self._pool = http.Pool(
            connections=CONNECTIONS, connect_s=CONNECT_S, keep_alive_s=KEEP_ALIVE_S, max_bytes=max_body_bytes
        )
        self._http: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Make ready, inside the event loop that uses it."""
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S, ttl_dns_cache=60),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_S, sock_connect=CONNECT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            skip_auto_headers=("User-Agent",),
            headers=self._headers,
            read_bufsize=2**18,
        )

    async def stop(self) -> None:
        """End every connection."""
        await self._pool.close()
        if self._http is not None:
            await self._http.close()

    async def whole(
        self, method: str, endpoint: Endpoint, path: str, body: bytes | list[bytes], limit_s: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers (lower-case names) and body of one answer.

        Raises:
            Fault: none came.
        """
        if self._proxy(endpoint) is not None:
            whole = body if isinstance(body, bytes) else b"".join(body)
            return await self._through_proxy(method, endpoint, path, whole, limit_s)
        sent_at = time.monotonic()
        try:
            origin, head = self._heads.get((method, endpoint.url, path)) or self._head(method, endpoint, path)
            answer = await self._pool.call(origin, head, None if method == "GET" else body, limit_s)
        except http.NoConnection as error:
            raise self._unreachable(endpoint, str(error)) from error
        except TimeoutError as error:
            raise self._timed_out(endpoint, sent_at, limit_s) from error
        except http.NotHttp as error:
            raise self._not_http(endpoint, str(error)) from error
        except http.TooLarge as error:
            raise self._too_large(endpoint, str(error)) from error
        except http.Broken as error:
            if _refused(error.status):  # what came of the body is what there is to say
                return error.status, error.headers, error.body
            raise self._cut(endpoint, str(error), error.status, error.body, free=error.silent) from error
        return answer.status, answer.headers, answer.body

    async def opened(self, endpoint: Endpoint, path: str, body: bytes, limit_s: float) -> aiohttp.ClientResponse:
        """An answer of which only the head has come.

        Raises:
            Fault: none came.
        """
        sent_at = time.monotonic()
        try:
            async with asyncio.timeout(limit_s):
                return await self._requested("POST", endpoint, path, body)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise self._broken(endpoint, error, None, b"", sent_at, limit_s) from error

    async def chunks(self, endpoint: Endpoint, answer: aiohttp.ClientResponse, limit_s: float) -> AsyncIterator[bytes]:
        """Its body as it comes.

        Raises:
            Fault: it broke off.
        """
        sent_at = time.monotonic()
        try:
            async with asyncio.timeout(limit_s):
                async for chunk in answer.content.iter_any():
                    yield chunk
        except (aiohttp.ClientError, OSError) as error:
            raise self._broken(endpoint, error, answer, b"", sent_at, limit_s) from error

    def _proxy(self, endpoint: Endpoint) -> str | None:
        if endpoint.url not in self._proxies:
            self._proxies[endpoint.url] = proxy_for(endpoint.url)
        return self._proxies[endpoint.url]

    def _head(self, method: str, endpoint: Endpoint, path: str) -> tuple[http.Origin, str]:
        try:
            url = _url(endpoint, path)
        except ValueError as error:  # a port that is none
            raise http.NoConnection(str(error)) from error
        made = self._heads[method, endpoint.url, path] = http.Origin.of(url), http.head(method, url, self._headers)
        return made

    async def _through_proxy(
        self, method: str, endpoint: Endpoint, path: str, body: bytes, limit_s: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        sent_at = time.monotonic()
        chunks: list[bytes] = []
        answer: aiohttp.ClientResponse | None = None
        try:
            async with asyncio.timeout(limit_s):
                answer = await self._requested(method, endpoint, path, body)
                async with answer:
                    await self._collect(answer, chunks)
        except http.TooLarge as error:
            raise self._too_large(endpoint, str(error)) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if answer is None or not _refused(answer.status) or isinstance(error, TimeoutError):
                raise self._broken(endpoint, error, answer, b"".join(chunks), sent_at, limit_s) from error
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return answer.status, headers, b"".join(chunks)

    async def _requested(self, method: str, endpoint: Endpoint, path: str, body: bytes) -> aiohttp.ClientResponse:
        if self._http is None:
            raise AssertionError("Exchange.start() was not awaited")
        return await self._http.request(
            method, _url(endpoint, path), data=body, proxy=self._proxy(endpoint), allow_redirects=False
        )

    async def _collect(self, answer: aiohttp.ClientResponse, chunks: list[bytes]) -> None:
        size = 0
        async for chunk in answer.content.iter_any():
            chunks.append(chunk)
            size += len(chunk)
            if size > self._max_body_bytes:
                raise http.TooLarge(f"more than {self._max_body_bytes} bytes")

    def _broken(
        self,
        endpoint: Endpoint,
        error: Exception,
        answer: aiohttp.ClientResponse | None,
        body: bytes,
        sent_at: float,
        limit_s: float,
    ) -> Fault:
        """The fault of a try over aiohttp that ended without a whole answer."""
        cause = str(error) or type(error).__name__
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.InvalidURL):
            return self._unreachable(endpoint, cause)
        if isinstance(error, TimeoutError):
            return self._timed_out(endpoint, sent_at, limit_s)
        if isinstance(error, aiohttp.ClientResponseError):  # something came, and it was no HTTP that we can read
            return self._not_http(endpoint, cause)
        free = isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError)
        return self._cut(endpoint, cause, answer.status if answer is not None else None, body, free=free)

    def _unreachable(self, endpoint: Endpoint, cause: str) -> Fault:
        endpoint.down()
        self._counted(endpoint, "unreachable")
        return Fault(Failed("model_unreachable", f"{_named(endpoint)} cannot be reached: {cause}"), again=True)

    def _timed_out(self, endpoint: Endpoint, sent_at: float, limit_s: float) -> Fault:
        endpoint.limiter.shrink(sent_at)
        self._counted(endpoint, "timeout")
        failure = Failed("model_timeout", f"{_named(endpoint)} gave no answer within {limit_s:.1f} s")
        return Fault(failure, again=True)

    def _not_http(self, endpoint: Endpoint, cause: str) -> Fault:
        self._counted(endpoint, "not_http")
        failure = Failed("model_invalid_response", f"{_named(endpoint)} answered what is no HTTP: {cause}")
        return Fault(failure, again=True)

    def _too_large(self, endpoint: Endpoint, cause: str) -> Fault:
        self._counted(endpoint, "too_large")
        return Fault(Failed("model_invalid_response", f"{_named(endpoint)} answered with {cause}"), again=True)

    def _cut(self, endpoint: Endpoint, cause: str, status: int | None, body: bytes, *, free: bool) -> Fault:
        what = _named(endpoint)
        if status is None:
            self._counted(endpoint, "disconnected")
            failure = Failed("model_unreachable", f"{what} closed the connection without an answer: {cause}")
            return Fault(failure, again=True, free=free)
        self._counted(endpoint, "cut")
        why = f"a body that cannot be read to its end ({cause})"
        return Fault(faults.not_json(status, body, f"{what} answered", why), again=True)


def _url(endpoint: Endpoint, path: str) -> URL:
    # llama.cpp's and vLLM's own routes (/tokenize) lie beside /v1, marked here by two slashes
    base = endpoint.url.removesuffix("/v1") if path.startswith("//") else endpoint.url
    return URL(base + path.replace("//", "/", 1))


def _refused(status: int | None) -> TypeGuard[int]:
    """Whether a status says by itself what became of the call."""
    return status is not None and not 200 <= status < 300


def _named(endpoint: Endpoint) -> str:
    return f"model server {endpoint.url}"
