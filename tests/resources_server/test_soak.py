"""Case C05 at its full size: thousands of sessions that nobody closes."""

import asyncio
import os
from pathlib import Path
from typing import ClassVar

import pytest

from resources_server import Environment, Response, Task, tool
from tests.resources_server.conftest import Serve, World


class Big(Environment[Task]):
    """100 KB of state per session."""

    blocking: ClassVar[bool] = False
    data: str = ""

    def seed(self) -> None:
        self.data = "x" * 100_000

    @tool
    def look(self) -> int:
        """Look."""
        return len(self.data)

    def verify(self, response: Response) -> float:
        return 0.0


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def seed_many(world: World, name: str, number: int) -> None:
    async def some(first: int) -> None:
        for each in range(first, number, 20):
            assert (await world.post("/seed_session", {}, f"{name}-{each}")).status == 200

    await asyncio.gather(*(some(first) for first in range(20)))


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_abandoned_sessions_do_not_pile_up(serve: Serve) -> None:
    """Two rounds of 5,000: memory after the second is that after the first; the one in use lives through both."""
    ended = asyncio.Event()

    async def keep_using(world: World) -> None:
        while not ended.is_set():
            assert (await world.post("/look", session="used")).status == 200
            await asyncio.sleep(1)

    async with serve(Big, sessions={"ttl_s": 4}) as world:
        await world.post("/seed_session", {}, "used")
        user = asyncio.create_task(keep_using(world))
        resident = []
        for name in ("first", "second"):
            await seed_many(world, name, 5000)
            async with asyncio.timeout(30):
                while world.app.metrics.value("sessions_open") > 1:  # noqa: ASYNC110  a reaper tells nobody
                    await asyncio.sleep(0.2)
            resident.append(resident_bytes())
            gone = await world.post("/look", session=f"{name}-0")
            assert gone.status == 410 and "expired" in gone.text
        ended.set()
        await user
    assert resident[1] <= resident[0] * 1.1
