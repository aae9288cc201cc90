"""A lock per session: calls that change the world take turns, calls that only read may run together."""

import asyncio
from collections import deque


class Turns:
    """A fair reader/writer lock of one event loop; taking it costs nothing where nobody holds it."""

    __slots__ = ("_readers", "_waiting", "_writing")

    def __init__(self) -> None:
        self._readers = 0
        self._writing = False
        self._waiting: deque[tuple[asyncio.Future[None], bool]] = deque()

    @property
    def busy(self) -> bool:
        """Whether anyone holds it."""
        return self._writing or self._readers > 0

    def take_now(self, shared: bool) -> bool:
        """Take it without waiting, if it can be had and nobody waits."""
        if self._waiting or self._writing or (self._readers and not shared):
            return False
        self._enter(shared)
        return True

    async def take(self, shared: bool) -> None:
        """Wait for it, first come first served."""
        if self.take_now(shared):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, shared))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(shared)  # it was handed over just as the wait was given up
            else:
                self._hand_over()
            raise

    def release(self, shared: bool) -> None:
        """Give it back."""
        if shared:
            self._readers -= 1
        else:
            self._writing = False
        self._hand_over()

    def _enter(self, shared: bool) -> None:
        if shared:
            self._readers += 1
        else:
            self._writing = True

    def _hand_over(self) -> None:
        """Let in whoever is first in line, and the readers right behind a reader."""
        while self._waiting:
            turn, shared = self._waiting[0]
            if turn.done():  # given up
                self._waiting.popleft()
                continue
            if self._writing or (self._readers and not shared):
                return
            self._waiting.popleft()
            self._enter(shared)
            turn.set_result(None)
