"""The event loop, watched: code that holds it for long is named, since everybody else waits meanwhile."""

import logging
import time
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")
BLOCKED_S = 1.0  # a stretch without letting others run, from which on it is worth a line

log = logging.getLogger(__name__)


class Watch:
    """Tells on code that blocks the loop.

    Args:
        on_block: Called with the name of the code, for a counter.
    """

    def __init__(self, on_block: Callable[[str], None]) -> None:
        self._on_block = on_block

    def took(self, name: str, seconds: float) -> None:
        """Say so, if the loop was held for so long."""
        if seconds > BLOCKED_S:
            self._on_block(name)
            log.warning(
                "%s held the event loop for %.1f s and every session waited: await what takes long, make it a plain def "
                "(it then runs in a thread), or do not declare the environment blocking = False",
                name,
                seconds,
            )

    async def through(self, name: str, coroutine: Coroutine[Any, Any, T]) -> T:
        """What the coroutine returns; each of its stretches between two awaits is timed."""
        return await self._timed(name, coroutine)

    @types.coroutine
    def _timed(self, name: str, coroutine: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        step: Callable[[], Any] = lambda: coroutine.send(None)  # noqa: E731
        while True:
            began = time.perf_counter()
            try:
                awaited = step()
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            finally:
                self.took(name, time.perf_counter() - began)
            try:
                given = yield awaited
                step = lambda given=given: coroutine.send(given)  # type: ignore[misc]  # noqa: E731
            except BaseException as error:  # noqa: BLE001  a cancellation or a result's error: the coroutine's to handle
                step = lambda error=error: coroutine.throw(error)  # type: ignore[misc]  # noqa: E731
