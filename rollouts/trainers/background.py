"""An event loop in a thread of its own, for programs that are not asynchronous: what it holds open ends with the program."""

import asyncio
import atexit
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

T = TypeVar("T")
CLOSE_S = 10.0  # for everything that is held to be let go

_Waiting = tuple[asyncio.Event, "asyncio.Task[None]"]


class Background:
    """Runs coroutines for another thread, and holds context managers open until `close`, or the program's end."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._held: list[_Waiting] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin a coroutine; cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine; interrupted, it is cancelled."""
        running = self.start(work)
        try:
            return running.result()
        except BaseException:
            running.cancel()
            raise

    def hold(self, manager: AbstractAsyncContextManager[T]) -> T:
        """Enter a context manager; it is left at `close`, the last one first, in the task that entered it."""
        return self.run(self._enter(manager))

    def close(self) -> None:
        """Leave what is held and end the thread. Again: nothing."""
        atexit.unregister(self.close)
        if not self._thread.is_alive():
            return
        try:
            self.start(self._leave()).result(CLOSE_S)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(CLOSE_S)
            if not self._thread.is_alive():
                self._loop.close()

    async def _enter(self, manager: AbstractAsyncContextManager[T]) -> T:
        entered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        leave = asyncio.Event()
        task = asyncio.create_task(_hold(manager, entered, leave))
        both: list[asyncio.Future[Any]] = [entered, task]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not entered.done():
            await task  # raises what entering raised
        self._held.append((leave, task))
        return entered.result()

    async def _leave(self) -> None:
        while self._held:
            leave, task = self._held.pop()
            leave.set()
            await asyncio.wait([task])
        running = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _hold(manager: AbstractAsyncContextManager[T], entered: "asyncio.Future[T]", leave: asyncio.Event) -> None:
    async with manager as value:
        entered.set_result(value)
        await leave.wait()
