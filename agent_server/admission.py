"""How many rollouts are in flight, and that each is played once: a repeat of a request joins the one that is under way."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from wire.app import HotRequest
from wire.errors import Conflict, Overloaded, TriviumError
from wire.metrics import Metrics

T = TypeVar("T")


class CallerGoneError(TriviumError):
    """The caller of a rollout left before its end; nobody reads this."""

    status, code = 499, "caller_gone"


@dataclass
class UnderWay(Generic[T]):
    """One rollout in flight, and who waits for it."""

    body: int
    """Digest of the request that started it, to tell a repeat from another one; of this process only."""
    task: "asyncio.Task[T]"
    waiting: int = 0


class Admission:
    """The rollouts of one process.

    Args:
        most: As many as may be in flight.
        metrics: For their number and for those that were refused.
    """

    def __init__(self, most: int, metrics: Metrics) -> None:
        self._most = most
        self._metrics = metrics
        self._in_flight = 0
        self._named: dict[str, UnderWay[Any]] = {}
        metrics.gauge("rollouts_in_flight", lambda: self._in_flight)

    async def do(
        self, request: HotRequest, work: Callable[[], Coroutine[Any, Any, T]], session_id: str | None = None
    ) -> T:
        """Do the work, until it is done or nobody waits for it any more.

        Args:
            request: Whose caller waits.
            work: Called once; what it gives is awaited.
            session_id: The caller's name for it: the same request under the same name joins what is under way.

        Raises:
            Overloaded: too much is in flight.
            Conflict: another request is under way under this name.
        """
        under_way: UnderWay[T] | None = self._named.get(session_id) if session_id is not None else None
        if under_way is None:
            under_way = self._start(request, work, session_id)
        elif under_way.body != hash(request.body):
            raise Conflict(f"session {session_id!r} is in use by another rollout that is under way")
        return await self._wait(request, under_way, session_id)

    def _start(
        self, request: HotRequest, work: Callable[[], Coroutine[Any, Any, T]], session_id: str | None
    ) -> UnderWay[T]:
        if self._in_flight >= self._most:
            self._metrics.count("rollouts_refused")
            raise Overloaded(
                f"{self._most} rollouts are in flight, as many as agent_server.max_rollouts allows; ask again later"
            )
        under_way = UnderWay(hash(request.body), asyncio.ensure_future(work()))
        self._in_flight += 1
        if session_id is not None:
            self._named[session_id] = under_way

        def ended(_: "asyncio.Task[T]") -> None:
            self._in_flight -= 1
            self._forget(session_id, under_way)

        under_way.task.add_done_callback(ended)
        return under_way

    async def _wait(self, request: HotRequest, under_way: UnderWay[T], session_id: str | None) -> T:
        task = under_way.task
        gone = asyncio.ensure_future(request.disconnected())
        under_way.waiting += 1
        try:
            await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            under_way.waiting -= 1
            if not task.done() and not under_way.waiting:
                self._forget(session_id, under_way)  # it is being ended: whoever asks again starts anew
                task.cancel()
                await asyncio.wait([task])
        if not task.done() or task.cancelled():
            raise CallerGoneError("the caller has gone")
        return task.result()

    def _forget(self, session_id: str | None, under_way: UnderWay[Any]) -> None:
        if session_id is not None and self._named.get(session_id) is under_way:
            del self._named[session_id]
