"""Calls to a model server: one deadline, retries only where they help and fit, replicas, adaptive concurrency, typed failures.

One try is an `Exchange`; what a status or a body means is decided in `faults`, how long to wait in `retry`, where to go in `endpoints`.
Every message names the server's URL and keeps its own sentence; no key of ours is ever in one.
"""

import asyncio
import functools
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import aiohttp

from model_interface import faults
from model_interface.endpoints import Endpoint, Endpoints
from model_interface.exchange import Exchange, Fault
from model_interface.retry import RETRIED_STATUSES, wait_s
from model_interface.settings import ModelInterfaceSettings
from model_interface.streaming import without_preface
from model_interface.translate import UpstreamError, calls_as_text
from wire import http, strict_json
from wire.deadline import Deadline
from wire.errors import Failed, UsageError
from wire.metrics import Metrics

FRAMING = frozenset({"connection", "content-length", "transfer-encoding"})  # headers that say where a request ends
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
        headers, key = _headers(settings)
        self._secrets = tuple(
            each for each in (key, *(v.get_secret_value() for v in settings.headers.values())) if each
        )
        self._exchange = Exchange(headers, settings.max_body_bytes, self._counted)
        self.endpoints.register(metrics)
        self._answered = functools.cache(
            lambda url, status: metrics.counter("upstream_calls", endpoint=url, status=str(status))
        )

    async def start(self) -> None:
        """Make the connections ready."""
        await self._exchange.start()

    async def stop(self) -> None:
        """End them."""
        await self._exchange.stop()

    async def ask(
        self,
        path: str,
        body: bytes | list[bytes],
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
            body: JSON text, whole or in pieces, sent as it is.
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
            except Fault as fault:
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
                except Fault as fault:
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
        body: bytes | list[bytes],
        deadline: Deadline,
        parse: Callable[[bytes], Any],
        make: Callable[[Any], Any] | None,
    ) -> tuple[Any, bytes, float]:
        await self._place(endpoint, deadline)
        sent_at = time.monotonic()
        limit_s = min(self._settings.timeout_s, deadline.left())
        try:
            status, headers, raw = await self._exchange.whole(method, endpoint, path, body, limit_s)
        finally:
            endpoint.limiter.release()
        if not 200 <= status < 300:
            raise self._bad_status(endpoint, status, headers.get("retry-after"), raw, sent_at)
        return self._value(endpoint, status, raw, parse, make), raw, time.monotonic() - sent_at

    async def _open(self, endpoint: Endpoint, path: str, body: bytes, deadline: Deadline) -> aiohttp.ClientResponse:
        sent_at = time.monotonic()
        limit_s = min(self._settings.timeout_s, deadline.left())
        answer = await self._exchange.opened(endpoint, path, body, limit_s)
        if 200 <= answer.status < 300:
            self._counted(endpoint, str(answer.status))
            endpoint.up()
            return answer
        raw = b""
        async with answer:
            left_s = max(0.0, limit_s - (time.monotonic() - sent_at))
            with suppress(Fault):  # the status says enough, whatever comes of the body
                async for chunk in self._exchange.chunks(endpoint, answer, left_s):
                    raw += chunk
        raise self._bad_status(endpoint, answer.status, answer.headers.get("Retry-After"), raw, sent_at)

    async def _chunks(
        self, endpoint: Endpoint, answer: aiohttp.ClientResponse, deadline: Deadline
    ) -> AsyncIterator[bytes]:
        limit_s = min(self._settings.timeout_s, deadline.left())
        try:
            async for chunk in self._exchange.chunks(endpoint, answer, limit_s):
                yield chunk
        except Fault as fault:
            raise self._clean(fault.failure) from fault
        endpoint.limiter.grow()

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

    async def _pause(self, fault: Fault, tries: int, deadline: Deadline) -> None:
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
        self,
        endpoint: Endpoint,
        status: int,
        raw: bytes,
        parse: Callable[[bytes], Any],
        make: Callable[[Any], Any] | None,
    ) -> Any:
        what = f"model server {endpoint.url} answered"
        try:
            value = _parsed(raw, parse)
        except strict_json.JSONError as error:
            self._counted(endpoint, "not_json")
            raise Fault(faults.not_json(status, raw, what, f"a body that is no JSON ({error})"), again=True) from error
        failure = faults.error_inside(value, what, status)
        if isinstance(failure, faults.ContextOverflow):
            raise failure
        if failure is not None:
            self._counted(endpoint, "error_inside")
            raise Fault(failure, again=True)
        if make is not None:
            try:
                value = make(value)
            except Failed as failed:
                self._counted(endpoint, "unreadable")
                raise Fault(Failed(failed.kind, f"{what} {status}: {failed}"), again=True) from failed
        endpoint.up()
        endpoint.limiter.grow()
        self._answered(endpoint.url, status).add()
        return value

    def _bad_status(
        self, endpoint: Endpoint, status: int, retry_after: str | None, raw: bytes, sent_at: float
    ) -> Exception:
        self._counted(endpoint, str(status))
        endpoint.up()
        if status in PUSHED_BACK:
            endpoint.limiter.shrink(sent_at)
        failure = faults.refusal(status, raw, f"model server {endpoint.url} answered")
        if isinstance(failure, faults.ContextOverflow):
            return failure
        return Fault(failure, again=status in RETRIED_STATUSES, retry_after=retry_after)

    def _clean(self, failure: Failed, more: str = "") -> UpstreamError:
        code = failure.upstream_code if isinstance(failure, UpstreamError) else None
        return UpstreamError(failure.kind, faults.mask(str(failure), self._secrets) + more, upstream_code=code)

    def _counted(self, endpoint: Endpoint, status: str) -> None:
        self.metrics.count("upstream_calls", endpoint=endpoint.url, status=status)


def _parsed(raw: bytes, parse: Callable[[bytes], Any]) -> Any:
    """The JSON value of a body, which comments may stand before, and in whose tool calls anything may stand."""
    try:
        return parse(raw)
    except strict_json.JSONError:
        text = calls_as_text(without_preface(raw))
        if text == raw:
            raise
        return parse(text)


def _headers(settings: ModelInterfaceSettings) -> tuple[dict[str, str], str]:
    """Those of every request, and the key among them."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    key = settings.api_key.get_secret_value() if settings.api_key else ""
    if key:
        headers["Authorization"] = f"Bearer {key}"
    headers = http.merged(headers, {name: value.get_secret_value() for name, value in settings.headers.items()})
    if not FRAMING.isdisjoint(map(str.lower, headers)):
        raise UsageError(f"model_interface.headers: {', '.join(sorted(FRAMING))} are not for a config to set")
    try:
        http.lines(headers)
    except ValueError:
        raise UsageError(
            "model_interface.api_key or one of model_interface.headers holds a line break; a key is one line"
        ) from None
    return headers, key
