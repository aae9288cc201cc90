"""Whether an agent server can be reached: while it is away nobody is sent to it, and when it stays away everything left fails at once."""

import asyncio
from collections.abc import Callable

from wire.client import Client, TimedOut, Unreachable
from wire.client import ConnectionLost as Lost
from wire.deadline import Deadline

ASK_EVERY_S = 0.2
ANSWER_WITHIN_S = 2.0  # of one question whether it is back
NEVER_SEEN_S = 5.0  # an agent server that never answered is not coming back: it was not started


class Gate:
    """One agent server's door.

    Args:
        client: Has its address.
        server: Its name there.
        patience_s: How long it may be away.
        note: Told once when it goes, and when it is back.
    """

    def __init__(self, client: Client, server: str, patience_s: float, note: Callable[[str], None]) -> None:
        self._client, self._server, self._patience_s, self._note = client, server, patience_s, note
        self._seen = False
        self._open = asyncio.Event()
        self._open.set()
        self._asking: asyncio.Task[None] | None = None
        self.dead: str | None = None
        """Why it is given up; None while it is not."""

    async def passed(self) -> bool:
        """Wait while the server is away; False when it is given up."""
        await self._open.wait()
        return self.dead is None

    def answered(self) -> None:
        """It gave an answer to somebody."""
        self._seen = True

    def refused(self, cause: str) -> None:
        """Somebody could not connect: find out whether it comes back."""
        if self._open.is_set() and self.dead is None:
            self._open.clear()
            self._asking = asyncio.create_task(self._until_back(cause))

    async def close(self) -> None:
        """Stop asking."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _until_back(self, cause: str) -> None:
        patience_s = self._patience_s if self._seen else min(self._patience_s, NEVER_SEEN_S)
        self._note(f"{cause}; waiting up to {patience_s:g} s for it")
        try:
            async with asyncio.timeout(patience_s):
                await self._ask()
            self._note(f"{self._server} is back")
        except TimeoutError:
            self.dead = f"{cause}; it did not come back within {patience_s:g} s"
            self._note(f"{self._server} is given up: everything that is left fails")
        self._open.set()

    async def _ask(self) -> None:
        while True:
            if await self._is_back():
                return
            await asyncio.sleep(ASK_EVERY_S)

    async def _is_back(self) -> bool:
        """Whether something accepts connections there; a server that is slow to answer is not away."""
        try:
            await self._client.get(self._server, "/health", deadline=Deadline(ANSWER_WITHIN_S))
        except (Unreachable, Lost):
            return False
        except TimedOut:
            return True
        return True
