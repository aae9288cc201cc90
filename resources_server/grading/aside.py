"""What all worlds of a process share and what needs an event loop: a sandbox, a solver's process, a client.

`Environment.load` is called before there is a loop, and verdicts are asked in different ones (a server's, one for each line when
verdicts are given again). So such a thing has a loop of its own, in a thread, and is used from anywhere.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from wire.errors import TriviumError, UsageError

TIDY_S = 5.0  # for what a failed start has begun to come to its end

T = TypeVar("T")
R = TypeVar("R")


class Aside(Generic[T]):
    """One thing and the thread in which its event loop runs; both end with this object.

    Args:
        make: Makes the thing, in its loop.
        end: Lets go of it.

    Raises:
        UsageError: It cannot be had on this machine: a server whose world needs it does not start.
    """

    def __init__(self, make: Callable[[], Awaitable[T]], end: Callable[[T], Awaitable[None]]) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=_run, args=(self._loop,), name="aside", daemon=True).start()

        async def made() -> T:
            return await make()

        try:
            self._thing = asyncio.run_coroutine_threadsafe(made(), self._loop).result()
        except BaseException as error:
            self._loop.call_soon_threadsafe(self._loop.call_later, TIDY_S, self._loop.stop)
            if isinstance(error, TriviumError) and not isinstance(error, UsageError):
                raise UsageError(str(error)) from error
            raise
        weakref.finalize(
            self, _end, self._loop, self._thing, end
        ).atexit = False  # what is made ends with its maker's process

    async def run(self, use: Callable[[T], Coroutine[Any, Any, R]]) -> R:
        """What `use` makes of the thing, in the thing's loop; cancelling this cancels it there."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(use(self._thing), self._loop))

    def later(self, use: Callable[[T], Coroutine[Any, Any, None]]) -> None:
        """Have it done, without waiting; for what is let go of."""
        if self._loop.is_running():
            asyncio.run_coroutine_threadsafe(use(self._thing), self._loop)


def _end(loop: asyncio.AbstractEventLoop, thing: T, end: Callable[[T], Awaitable[None]]) -> None:
    async def last() -> None:
        try:
            await end(thing)
        finally:
            loop.stop()

    asyncio.run_coroutine_threadsafe(last(), loop)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
