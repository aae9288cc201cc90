"""Threads for author code that may block: as cheap as a thread hop gets, bounded, and with time-outs that give the caller back.

A thread cannot be stopped. A call that outlives its time-out keeps its thread, which is then counted as stuck and replaced; when too
many are stuck, nothing more is started.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from wire.errors import Overloaded


@dataclass(slots=True)
class _Job:
    call: Callable[[], Any]
    answer: asyncio.Future[Any]
    given_up: bool = False


class TookTooLong(Exception):
    """Our time-out has run out; a TimeoutError would be the author's own."""


class Threads:
    """A pool for one event loop.

    Args:
        size: Threads that work at once; as many more may be stuck.

    The standard executor wakes the loop once for each result; this one once for all that are ready together.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._done: deque[tuple[_Job, Any, BaseException | None]] = deque()
        self._woken = False
        self._lock = threading.Lock()
        self._started = 0
        self._unfinished = 0  # jobs given in and not yet answered, on the loop's side
        self.stuck = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, call: Callable[[], Any], timeout_s: float) -> Any:
        """What `call()` returns, from a thread.

        Raises:
            TookTooLong: It took longer; it still runs, and may still change what it was given.
            Overloaded: Too many calls are stuck.
        """
        loop = self._loop = asyncio.get_running_loop()
        if self.stuck >= self._size:
            raise Overloaded(f"{self.stuck} calls are stuck past their time-out; restart the server")
        job = _Job(call, loop.create_future())
        self._unfinished += 1
        self._jobs.put(job)
        if self._started < min(self._unfinished, self._size + self.stuck):
            self._start_thread()
        timer = loop.call_later(timeout_s, self._give_up, job)
        try:
            return await job.answer
        finally:
            timer.cancel()

    def stop(self) -> None:
        """Let idle threads end; stuck ones die with the process."""
        for _ in range(self._started):
            self._jobs.put(None)

    def _start_thread(self) -> None:
        self._started += 1
        threading.Thread(target=self._work, name=f"world-{self._started}", daemon=True).start()

    def _give_up(self, job: _Job) -> None:
        if not job.answer.done():
            job.given_up = True
            self.stuck += 1
            job.answer.set_exception(TookTooLong())

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if job.given_up:  # before it began
                self._hand_back(job, None, None)
                continue
            try:
                result, error = job.call(), None
            except BaseException as raised:  # noqa: BLE001  an author's code may raise anything; it belongs to the caller
                result, error = None, raised
            self._hand_back(job, result, error)
            del job, result, error

    def _hand_back(self, job: _Job, result: Any, error: BaseException | None) -> None:
        self._done.append((job, result, error))
        with self._lock:
            if self._woken:
                return
            self._woken = True
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        with self._lock:
            self._woken = False
        while self._done:
            job, result, error = self._done.popleft()
            self._unfinished -= 1
            self.stuck -= job.given_up
            if job.answer.done():  # timed out, or the caller is gone
                continue
            if error is None:
                job.answer.set_result(result)
            else:
                job.answer.set_exception(portable(error))


def portable(error: BaseException) -> Exception:
    """The author's error as one that a future can hold and that ends a rollout, not the server.

    `sys.exit()` in a tool, a KeyboardInterrupt or CancelledError that its code raises, and StopIteration become a RuntimeError that
    names them.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    told = RuntimeError(f"{type(error).__name__}: {error}")
    told.__cause__ = error
    return told
