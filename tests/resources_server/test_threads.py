"""Threads for author code: results, errors, time-outs, bounds."""

import asyncio
import functools
import threading
import time

import pytest

from resources_server.threads import Threads, TookTooLong
from wire.errors import Overloaded


def fail() -> None:
    raise ValueError("no")


def stop() -> None:
    raise StopIteration("odd")


async def test_results_and_errors_come_back() -> None:
    """Each to its caller, a StopIteration too, which a future cannot hold."""
    threads = Threads(4)
    assert await asyncio.gather(*(threads.run(functools.partial(pow, n, 2), 5) for n in range(100))) == [
        n * n for n in range(100)
    ]
    with pytest.raises(ValueError, match="no"):
        await threads.run(fail, 5)
    with pytest.raises(RuntimeError, match="StopIteration: odd"):
        await threads.run(stop, 5)
    threads.stop()


async def test_no_more_threads_than_allowed() -> None:
    """What does not fit waits its turn; few calls start few threads."""
    threads = Threads(3)
    names: set[str] = set()

    def work() -> None:
        names.add(threading.current_thread().name)
        time.sleep(0.01)

    await asyncio.gather(*(threads.run(work, 5) for _ in range(30)))
    assert len(names) == 3
    threads.stop()


async def test_a_stuck_thread_is_replaced_and_comes_back() -> None:
    """A call past its time-out gives its caller back; others go on; too many are refused."""
    threads, release = Threads(2), threading.Event()
    for _ in range(2):
        with pytest.raises(TookTooLong):
            await threads.run(release.wait, 0.05)
    assert threads.stuck == 2
    with pytest.raises(Overloaded, match="2 calls are stuck"):
        await threads.run(lambda: 1, 5)
    release.set()
    async with asyncio.timeout(5):
        while threads.stuck:  # noqa: ASYNC110  the threads say when they are free by this number
            await asyncio.sleep(0.01)
    assert await threads.run(lambda: 1, 5) == 1
    threads.stop()


async def test_a_cancelled_caller_leaves_nothing_behind() -> None:
    """Its result is dropped."""
    threads, release = Threads(1), threading.Event()
    caller = asyncio.create_task(threads.run(release.wait, 5))
    await asyncio.sleep(0.02)
    caller.cancel()
    release.set()
    assert await threads.run(lambda: 2, 5) == 2
    threads.stop()
