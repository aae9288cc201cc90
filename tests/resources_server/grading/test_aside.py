"""A thing with a loop of its own: used from any loop, ended with its class, refused in words."""

import asyncio
import gc
import threading

import pytest

from resources_server.grading.aside import Aside
from resources_server.sandbox import SandboxUnavailable
from wire.errors import UsageError


class Thing:
    """Knows the loop that it was made in, and whether it was let go of."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.gone = threading.Event()

    async def here(self) -> bool:
        return asyncio.get_running_loop() is self.loop

    async def forever(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.gone.set()

    async def end(self) -> None:
        self.gone.set()


async def made() -> Thing:
    return Thing()


def test_it_is_used_in_its_own_loop_from_any_other() -> None:
    """One loop after the other, as offline verdicts are asked."""
    aside = Aside(made, Thing.end)
    assert [asyncio.run(aside.run(Thing.here)) for _ in range(3)] == [True] * 3


async def test_cancelling_reaches_what_is_done_there() -> None:
    """A verdict that is given up leaves nothing running."""
    things: list[Thing] = []

    async def kept() -> Thing:
        things.append(Thing())
        return things[0]

    aside = Aside(kept, Thing.end)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await aside.run(Thing.forever)
    assert await asyncio.to_thread(things[0].gone.wait, 10)


def test_it_is_let_go_of_with_its_last_user() -> None:
    """A class that is no more needs nobody to close what it shared."""
    things: list[Thing] = []

    async def kept() -> Thing:
        things.append(Thing())
        return things[0]

    aside = Aside(kept, Thing.end)
    del aside
    gc.collect()
    assert things[0].gone.wait(10)


def test_what_cannot_be_had_is_told_as_the_configs_fault() -> None:
    """So that a server says it in one line and does not start."""

    async def none() -> Thing:
        raise SandboxUnavailable("no walls")

    with pytest.raises(UsageError, match="no walls"):
        Aside(none, Thing.end)
