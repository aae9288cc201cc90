"""A fair reader/writer lock."""

import asyncio

import pytest

from resources_server.turns import Turns


async def entered(turns: Turns, shared: bool, log: list[str], name: str) -> None:
    await turns.take(shared)
    log.append(f"+{name}")
    await asyncio.sleep(0)
    log.append(f"-{name}")
    turns.release(shared)


async def test_first_come_first_served() -> None:
    """Readers run together, a writer alone, and nobody overtakes a writer that waits."""
    turns, log = Turns(), list[str]()
    names = [("r1", True), ("r2", True), ("w1", False), ("r3", True), ("w2", False)]
    await asyncio.gather(*(entered(turns, shared, log, name) for name, shared in names))
    assert log == ["+r1", "+r2", "-r1", "-r2", "+w1", "-w1", "+r3", "-r3", "+w2", "-w2"]
    assert not turns.busy


async def test_one_who_gives_up_keeps_nobody_waiting() -> None:
    """Whether it was its turn just then or not."""
    turns = Turns()
    await turns.take(False)
    waiting = [asyncio.create_task(turns.take(shared)) for shared in (False, True, True)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    turns.release(False)
    waiting[1].cancel()  # it has just been let in
    with pytest.raises(asyncio.CancelledError):
        await waiting[1]
    await waiting[2]
    turns.release(True)
    assert not turns.busy and turns.take_now(False)
