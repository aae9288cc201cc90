"""Calls to a model server: one deadline, retries only where they help and fit, replicas, adaptive concurrency, typed failures.

What a status or a body means is decided in `faults`, how long to wait in `retry`, where to go in `endpoints`; this module does the I/O.
Every message names the server's URL and keeps its own sentence; no key of ours is ever in one.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from model_interface import faults
from model_interface.endpoints import Endpoint, Endpoints
from model_interface.proxies import proxy_for
from model_interface.retry import RETRIED_STATUSES, wait_s
from model_interface.settings import ModelInterfaceSettings
from model_interface.translate import UpstreamError
from wire import strict_json
from wire.deadline import Deadline
from wire.errors import Failed, UsageError
from wire.metrics import Metrics

CONNECT_S = 4.5  # a dead address is named within 5 s, whatever the budget
KEEP_ALIVE_S = 4.0  # below uvicorn's 5 s, so that a call is rarely sent into a closing socket
PUSHED_BACK = frozenset({429, 503, 529})  # statuses that ask for fewer calls at once

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Answer:
    """What a model server said to one call, after the retries."""

    value: Any  # the body as `parse` and `make` made it
    raw: bytes
    attempts: int  # tries it took, the last included
    model_s: float  # seconds of the last try, from sending to the whole body
    endpoint: str


class _Fault(Exception):
    """One try failed: with what, and whether another may go better."""

    def __init__(self, failure: Failed, *, again: bool, retry_after: str | None = None, free: bool = False) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.again = again
        self.retry_after = retry_after
        self.free = free  # a kept-alive connection had been closed: the server never saw the call


class Upstream:
    """A model server with its replicas; start it inside the event loop that uses it.

    Args:
        settings: Where it is, how often and how long it is asked.
        metrics: Counts calls, retries and limits.
    """

    def __init__(self, settings: ModelInterfaceSettings, metrics: Metrics) -> None:
        if not settings.endpoints:
            raise UsageError(
                f"model_interface.base_url is not set; backend {settings.backend!r} needs the address of a model server, "
                "such as http://127.0.0.1:8000/v1"
            )
        self.endpoints = Endpoints(settings.endpoints, settings.concurrency)
        self.metrics = metrics
        self._settings = settings
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self._headers |= {name: value.get_secret_value() for name, value in settings.headers.items()}
        key = settings.api_key.get_secret_value() if settings.api_key else ""
        if key:
            self._headers.setdefault("Authorization", f"Bearer {key}")
        self._secrets = tuple(
            each for each in (key, *(v.get_secret_value() for v in settings.headers.values())) if each
        )
        self._proxies = {endpoint.url: proxy_for(endpoint.url) for endpoint in self.endpoints.all}
        self._urls: dict[tuple[str, str], URL] = {}
        self._http: aiohttp.ClientSession | None = None
        self.endpoints.register(metrics)

    async def start(self) -> None:
        """Open the connection pool; as wide as the concurrency, which the limiters bound."""
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
        """Close the pool."""
        if self._http is not None:
            await self._http.close()

    async def ask(
        self,
        path: str,
        body: bytes,
        *,
        deadline: Deadline,
        pin: str | None = None,
        parse: Callable[[bytes], Any] = strict_json.loads,
        make: Callable[[Any], Any] | None = None,
        method: str = "POST",
    ) -> Answer:
        """The server's answer to one call.

        Args:
            path: Below the base URL, such as `/chat/completions`.
            body: JSON text, sent as it is.
            deadline: When the caller stops waiting; no try and no pause reaches past it.
            pin: The rollout, for replica affinity.
            parse: The JSON value of the body; raises JSONError where it is none.
            make: What the caller wants of that value; a `Failed` it raises is tried again like an unreadable body.
            method: `GET` for the few routes that are asked that way.

        Raises:
            ContextOverflow: the prompt is too long for the model.
            Failed: no usable answer within the tries and the deadline.
        """
        failed_at: set[Endpoint] = set()
        tries, free = 1, True
        while True:
            endpoint = self.endpoints.pick(pin, failed_at)
            try:
                value, raw, seconds = await self._once(method, endpoint, path, body, deadline, parse, make)
                return Answer(value, raw, tries, seconds, endpoint.url)
            except _Fault as fault:
                if fault.free and free:
                    free = False
                    continue
                failed_at.add(endpoint)
                await self._pause(fault, tries, deadline)
                tries += 1

    @asynccontextmanager
    async def stream(
        self, path: str, body: bytes, *, deadline: Deadline, pin: str | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The chunks of an answer that comes bit by bit; tried again only while nothing has come.

        Raises:
            ContextOverflow, Failed: as `ask`; a break in the middle is a `Failed` from the iteration.
        """
        failed_at: set[Endpoint] = set()
        tries = 1
        while True:
            endpoint = self.endpoints.pick(pin, failed_at)
            await self._place(endpoint, deadline)
            try:
                try:
                    answer = await self._open(endpoint, path, body, deadline)
                except _Fault as fault:
                    failed_at.add(endpoint)
                    await self._pause(fault, tries, deadline)
                    tries += 1
                    continue
                async with answer:
                    yield self._chunks(endpoint, answer, deadline)
                return
            finally:
                endpoint.limiter.release()

    async def _once(
        self,
        method: str,
        endpoint: Endpoint,
        path: str,
        body: bytes,
        deadline: Deadline,
        parse: Callable[[bytes], Any],
        make: Callable[[Any], Any] | None,
    ) -> tuple[Any, bytes, float]:
        await self._place(endpoint, deadline)
        sent_at = time.monotonic()
        limit_s = min(self._settings.timeout_s, deadline.left())
        chunks: list[bytes] = []
        answer: aiohttp.ClientResponse | None = None
        try:
            async with asyncio.timeout(limit_s):
                answer = await self._session.request(
                    method,
                    self._url(endpoint, path),
                    data=body,
                    proxy=self._proxies[endpoint.url],
                    allow_redirects=False,
                )
                async with answer:
                    await self._collect(answer, chunks)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise self._broken(endpoint, error, answer, chunks, sent_at, limit_s) from error
        finally:
            endpoint.limiter.release()
        raw = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if answer.status != 200:
            raise self._bad_status(endpoint, answer.status, answer.headers, raw, sent_at)
        return self._value(endpoint, raw, parse, make), raw, time.monotonic() - sent_at

    async def _open(self, endpoint: Endpoint, path: str, body: bytes, deadline: Deadline) -> aiohttp.ClientResponse:
        sent_at = time.monotonic()
        limit_s = min(self._settings.timeout_s, deadline.left())
        try:
            async with asyncio.timeout(limit_s):
                answer = await self._session.post(
                    self._url(endpoint, path), data=body, proxy=self._proxies[endpoint.url], allow_redirects=False
                )
                if answer.status == 200:
                    self._counted(endpoint, "200")
                    endpoint.up()
                    return answer
                async with answer:
                    raw = await answer.read()
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise self._broken(endpoint, error, None, [], sent_at, limit_s) from error
        raise self._bad_status(endpoint, answer.status, answer.headers, raw, sent_at)

    async def _chunks(
        self, endpoint: Endpoint, answer: aiohttp.ClientResponse, deadline: Deadline
    ) -> AsyncIterator[bytes]:
        sent_at = time.monotonic()
        limit_s = min(self._settings.timeout_s, deadline.left())
        try:
            async with asyncio.timeout(limit_s):
                async for chunk in answer.content.iter_any():
                    yield chunk
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._clean(self._broken(endpoint, error, answer, [], sent_at, limit_s).failure) from error
        endpoint.limiter.grow()

    async def _collect(self, answer: aiohttp.ClientResponse, chunks: list[bytes]) -> None:
        size = 0
        async for chunk in answer.content.iter_any():
            chunks.append(chunk)
            size += len(chunk)
            if size > self._settings.max_body_bytes:
                raise ValueError(f"an answer over {self._settings.max_body_bytes} bytes")

    async def _place(self, endpoint: Endpoint, deadline: Deadline) -> None:
        if endpoint.limiter.take():
            return
        try:
            async with asyncio.timeout(deadline.left()):
                await endpoint.limiter.acquire()
        except TimeoutError:
            limiter = endpoint.limiter
            raise Failed(
                "model_timeout",
                f"model server {endpoint.url}: no place became free before the rollout's time was up "
                f"({limiter.in_flight} in flight, {limiter.waiting} waiting, limit {int(limiter.limit)})",
            ) from None

    async def _pause(self, fault: _Fault, tries: int, deadline: Deadline) -> None:
        """Wait before the next try, or raise the fault's failure where there is none."""
        wait = wait_s(tries, fault.retry_after)
        after = f" (after {tries} tries)" if tries > 1 else ""
        if not fault.again or tries >= self._settings.attempts:
            raise self._clean(fault.failure, after)
        if deadline.left() <= wait:
            raise self._clean(fault.failure, f"{after}; no time is left to try again in {wait:.1f} s")
        failure = self._clean(fault.failure)
        log.warning("try %d of %d failed, the next in %.1f s: %s", tries, self._settings.attempts, wait, failure)
        self.metrics.count("upstream_retries", kind=failure.kind)
        await asyncio.sleep(wait)

    def _value(
        self, endpoint: Endpoint, raw: bytes, parse: Callable[[bytes], Any], make: Callable[[Any], Any] | None
    ) -> Any:
        what = f"model server {endpoint.url} answered"
        try:
            value = parse(raw)
        except strict_json.JSONError as error:
            self._counted(endpoint, "not_json")
            raise _Fault(faults.not_json(200, raw, what, f"a body that is no JSON ({error})"), again=True) from error
        failure = faults.error_inside(value, what)
        if isinstance(failure, faults.ContextOverflow):
            raise failure
        if failure is not None:
            self._counted(endpoint, "error_inside")
            raise _Fault(failure, again=True)
        if make is not None:
            try:
                value = make(value)
            except Failed as failed:
                self._counted(endpoint, "unreadable")
                raise _Fault(Failed(failed.kind, f"{what} 200: {failed}"), again=True) from failed
        endpoint.up()
        endpoint.limiter.grow()
        self._counted(endpoint, "200")
        return value

    def _bad_status(
        self, endpoint: Endpoint, status: int, headers: Mapping[str, str], raw: bytes, sent_at: float
    ) -> Exception:
        self._counted(endpoint, str(status))
        endpoint.up()
        if status in PUSHED_BACK:
            endpoint.limiter.shrink(sent_at)
        failure = faults.refusal(status, raw, f"model server {endpoint.url} answered")
        if isinstance(failure, faults.ContextOverflow):
            return failure
        return _Fault(failure, again=status in RETRIED_STATUSES, retry_after=headers.get("Retry-After"))

    def _broken(
        self,
        endpoint: Endpoint,
        error: Exception,
        answer: aiohttp.ClientResponse | None,
        chunks: list[bytes],
        sent_at: float,
        limit_s: float,
    ) -> _Fault:
        """The fault of a try that ended without a whole answer."""
        what = f"model server {endpoint.url}"
        cause = str(error) or type(error).__name__
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.InvalidURL):
            endpoint.down()
            self._counted(endpoint, "unreachable")
            return _Fault(Failed("model_unreachable", f"{what} cannot be reached: {cause}"), again=True)
        if isinstance(error, TimeoutError):
            endpoint.limiter.shrink(sent_at)
            self._counted(endpoint, "timeout")
            return _Fault(Failed("model_timeout", f"{what} gave no answer within {limit_s:.1f} s"), again=True)
        if isinstance(error, aiohttp.ClientResponseError):  # something came, and it was no HTTP that we can read
            self._counted(endpoint, "not_http")
            return _Fault(Failed("model_invalid_response", f"{what} answered what is no HTTP: {cause}"), again=True)
        if answer is None:
            self._counted(endpoint, "disconnected")
            free = isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError)
            failure = Failed("model_unreachable", f"{what} closed the connection without an answer: {cause}")
            return _Fault(failure, again=True, free=free)
        self._counted(endpoint, "cut")
        why = f"a body that broke off ({cause})"
        return _Fault(faults.not_json(answer.status, b"".join(chunks), f"{what} answered", why), again=True)

    def _clean(self, failure: Failed, more: str = "") -> UpstreamError:
        code = failure.upstream_code if isinstance(failure, UpstreamError) else None
        return UpstreamError(failure.kind, faults.mask(str(failure), self._secrets) + more, upstream_code=code)

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            raise AssertionError("Upstream.start() was not awaited")
        return self._http

    def _url(self, endpoint: Endpoint, path: str) -> URL:
        key = (endpoint.url, path)
        url = self._urls.get(key)
        if url is None:
            # llama.cpp's and vLLM's own routes (/tokenize) lie beside /v1, marked here by two slashes
            base = endpoint.url.removesuffix("/v1") if path.startswith("//") else endpoint.url
            url = self._urls[key] = URL(base + path.replace("//", "/", 1))
        return url

    def _counted(self, endpoint: Endpoint, status: str) -> None:
        self.metrics.count("upstream_calls", endpoint=endpoint.url, status=status)
