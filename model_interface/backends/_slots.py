"""Which of llama.cpp's slots (places with a key-value cache of their own) a conversation computes in."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, eq=False)
class Slot:
    """One place; what its cache holds is known by who used it last."""

    number: int
    owner: Any = None  # the conversation's memory that used it last
    prefix: bytes = b""  # which common beginning its cache starts with
    busy: bool = False
    used: int = 0  # when, in calls


class Slots:
    """Hands out slots: the one a conversation used before if it is free and still its own, else the one unused longest."""

    def __init__(self, count: int) -> None:
        self.all = [Slot(number) for number in range(count)]
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._calls = 0

    @contextlib.asynccontextmanager
    async def hold(self, owner: Any) -> AsyncIterator[tuple[Slot, bool]]:
        """(slot, whether its cache is still this owner's), for the length of the block."""
        while (slot := self._choose(owner)) is None:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake()
                else:
                    self._waiting.remove(turn)
                raise
        kept = slot.owner is owner
        self._calls += 1
        slot.owner, slot.busy, slot.used = owner, True, self._calls
        try:
            yield slot, kept
        finally:
            slot.busy = False
            self._wake()

    def _choose(self, owner: Any) -> Slot | None:
        free = [slot for slot in self.all if not slot.busy]
        own = [slot for slot in free if slot.owner is owner]
        return own[0] if own else min(free, key=lambda slot: slot.used, default=None)

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
