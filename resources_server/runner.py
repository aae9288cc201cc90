"""Runs author code where it can do no harm: in a thread, on the loop if it is async, or in place where it promises not to block."""

import asyncio
import functools
import inspect
import time
from collections.abc import Callable
from typing import Any

from resources_server.threads import Threads, TookTooLong, portable
from resources_server.watch import BLOCKED_S, Watch


class Runner:
    """Runs the methods of one environment class.

    Args:
        blocking: Sync methods may take long and go to a thread; False: they run in place.
        threads: Where to.
        watch: Is told how long the loop was held.
    """

    def __init__(self, blocking: bool, threads: Threads, watch: Watch) -> None:
        self._blocking = blocking
        self._threads = threads
        self._watch = watch

    async def run(self, name: str, timeout_s: float, method: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """What the method returns, async or not.

        Args:
            name: For the warning, if it holds the loop.
            timeout_s: Seconds; not enforced on what runs in place.

        Raises:
            TookTooLong: It took longer. An async method was cancelled; a thread still runs.
        """
        if inspect.iscoroutinefunction(method):
            return await self._awaited(name, timeout_s, method(*args, **kwargs))
        if not self._blocking:
            result = self.in_place(name, functools.partial(method, *args), kwargs)
            return await self._settled(name, timeout_s, result)
        result = await self._threads.run(functools.partial(method, *args, **kwargs), timeout_s)
        return await self._settled(name, timeout_s, result)

    def in_place(self, name: str, method: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Call it here and now."""
        began = time.perf_counter()
        try:
            return method(**arguments)
        except BaseException as error:  # noqa: BLE001  an author's code may raise anything
            raise portable(error) from None
        finally:
            if time.perf_counter() - began > BLOCKED_S:
                self._watch.took(name, time.perf_counter() - began)

    async def _settled(self, name: str, timeout_s: float, result: Any) -> Any:
        """A wrapper may hide that a method is async; then its result has still to be awaited."""
        return await self._awaited(name, timeout_s, result) if inspect.iscoroutine(result) else result

    async def _awaited(self, name: str, timeout_s: float, coroutine: Any) -> Any:
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                return await self._own(name, coroutine)
        except TimeoutError:
            if limit.expired():
                raise TookTooLong from None
            raise  # the author's own

    async def _own(self, name: str, coroutine: Any) -> Any:
        """What the coroutine returns; what it raises ends a rollout at most, a cancellation of its own included."""
        try:
            return await self._watch.through(name, coroutine)
        except Exception:
            raise
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # ours: the caller left, or the time is up
            raise portable(error) from None
