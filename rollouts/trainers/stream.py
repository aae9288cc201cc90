"""Groups of rollouts for a trainer that does not wait: handed out as they end, with the policy version that played them and its lag.

    async with streaming("workplace", "model_interface.base_url=http://127.0.0.1:8000/v1", max_lag=1) as stream:
        async for group in stream:
            ...                                   # train on group.lines
            await stream.pause()                  # nothing new begins, and nothing is in flight any more
            ...                                   # the server gets the new weights
            stream.resume(stream.version + 1)

The model is whatever the config says, a server whose weights the trainer changes. `trivium stream` offers the same over HTTP.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rollouts import lines as line_of
from rollouts import stack as stacks
from rollouts.lines import Line
from rollouts.settings import RolloutsSettings
from rollouts.trainers.stage import Part, Stage, staged, with_output
from rollouts.trainers.tasks import Tasks
from wire.errors import TriviumError

Stale = Literal["drop", "mark"]
HOPELESS = 16  # incomplete groups in a row after which the stream gives up


@dataclass(frozen=True)
class Group:
    """The rollouts of one task by one policy version, all ended."""

    task: int
    lines: list[Line]
    """Those with a verdict; all of them, or under `groups.policy: partial` at least `groups.min_valid`."""
    version: int
    """Of the weights when the group began."""
    lag: int
    """Versions that the weights have gone on since."""
    stale: bool = False
    """More than allowed; only where stale groups are marked rather than dropped."""


class Stream:
    """An endless iterator over groups; rows are shuffled anew in each epoch.

    No more than `concurrency` rollouts are in flight or waiting to be taken, so that a slow trainer gets fresh groups and not many old
    ones.

    Args:
        stage: Plays.
        tasks: What is played.
        settings: `repeats` is the size of a group; `concurrency` and `groups` count too.
        max_lag: Versions behind which a group is stale.
        stale: What becomes of such a group; it is counted either way.
        seed: Of the order.
        version: Of the weights at the beginning.
    """

    def __init__(
        self,
        stage: Stage,
        tasks: Tasks,
        settings: RolloutsSettings,
        *,
        max_lag: int = 1,
        stale: Stale = "drop",
        seed: int = 0,
        version: int = 0,
    ) -> None:
        self._stage, self._tasks, self._settings = stage, tasks, settings
        self._max_lag, self._stale = max_lag, stale
        self._order = _shuffled(tasks, seed)
        self._room = asyncio.Semaphore(max(1, settings.concurrency // settings.repeats))
        self._open = asyncio.Event()
        self._open.set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._playing: set[asyncio.Task[None]] = set()
        self._ready: asyncio.Queue[Group | BaseException] = asyncio.Queue()
        self._incomplete = 0  # in a row
        self.version = version
        self.counts: Counter[str] = Counter()
        """Groups by what became of them: `handed_out`, `stale`, `incomplete` (too many members failed)."""

    @property
    def status(self) -> dict[str, int | bool | dict[str, int]]:
        """For people and for a trainer elsewhere."""
        return {
            "policy_version": self.version,
            "paused": not self._open.is_set(),
            "in_flight": len(self._playing),
            "ready": self._ready.qsize(),
            "groups": dict(self.counts),
        }

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> Group:
        """The next group that is fresh enough.

        Raises:
            TriviumError: too many groups in a row were incomplete, or the lines cannot be written; there will be no more.
        """
        while True:
            group = await self._ready.get()
            if isinstance(group, BaseException):
                self._ready.put_nowait(group)
                raise group
            self._room.release()
            lag = self.version - group.version
            if lag > self._max_lag:
                self.counts["stale"] += 1
                if self._stale == "drop":
                    continue
            self.counts["handed_out"] += 1
            return Group(group.task, group.lines, group.version, lag, lag > self._max_lag)

    async def pause(self, *, wait: bool = True) -> None:
        """Begin no more groups; with `wait`, return when those in flight have ended, so that no rollout sees two policies."""
        self._open.clear()
        if wait:
            await self._idle.wait()

    def resume(self, version: int | None = None) -> None:
        """Go on, with new weights where `version` says so."""
        self.version = self.version if version is None else version
        self._open.set()

    async def run(self) -> None:
        """Begin groups while there is room; until cancelled, which cancels those in flight and closes their sessions."""
        try:
            for epoch, task in self._order:
                await self._room.acquire()
                await self._open.wait()
                playing = asyncio.create_task(self._group(epoch, task))
                self._playing.add(playing)
                self._idle.clear()
                playing.add_done_callback(self._ended)
        finally:
            for each in self._playing:
                each.cancel()
            await asyncio.gather(*self._playing, return_exceptions=True)

    async def _group(self, epoch: int, task: int) -> None:
        version, size = self.version, self._settings.repeats
        parts = [Part(task, sample, size) for sample in range(size)]
        made = await self._stage.play(self._tasks, parts, str(version), f"{epoch}-")
        valid = [each for each in made if not line_of.failed(each)]
        if len(valid) >= self._needed(size):
            self._incomplete = 0
            self._ready.put_nowait(Group(task, valid, version, 0))
            return
        self.counts["incomplete"] += 1
        self._incomplete += 1
        if self._incomplete >= HOPELESS:
            reason = next(each["failure"]["message"] for each in made if line_of.failed(each))
            raise TriviumError(f"{self._incomplete} groups in a row had too few verdicts; the last one: {reason}")
        self._room.release()

    def _needed(self, size: int) -> int:
        groups = self._settings.groups
        return min(size, groups.min_valid) if groups.policy == "partial" else size

    def _ended(self, playing: "asyncio.Task[None]") -> None:
        self._playing.discard(playing)
        if not playing.cancelled() and (error := playing.exception()) is not None:
            self._ready.put_nowait(error)
        if not self._playing:
            self._idle.set()


@asynccontextmanager
async def streaming(
    config: str,
    *overrides: str,
    output: Path | str | None = None,
    max_lag: int = 1,
    stale: Stale = "drop",
    seed: int = 0,
    version: int = 0,
) -> AsyncIterator[Stream]:
    """A stream whose servers run until the block ends; every rollout is written as a line.

    Args:
        config: A config file or the name of a bundled one; `rollouts.repeats` is the size of a group.
        overrides: `key=value`.
        output: The rollouts file.
        max_lag, stale, seed, version: As `Stream` takes them.

    Raises:
        UsageError: the config, a row or the output is wrong.
    """
    stack = stacks.read([config], overrides)
    settings = stack.config.section("rollouts", RolloutsSettings)
    tasks = Tasks(stack)
    path = with_output(stack, None if output is None else Path(output))
    try:
        async with staged(stack, None, path) as stage:
            stream = Stream(stage, tasks, settings, max_lag=max_lag, stale=stale, seed=seed, version=version)
            running = asyncio.create_task(stream.run())
            try:
                yield stream
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
    finally:
        tasks.close()


def _shuffled(tasks: Tasks, seed: int) -> Iterator[tuple[int, int]]:
    """(epoch, task) without an end."""
    dice, order, epoch = random.Random(seed), list(tasks.rows), 0
    while True:
        dice.shuffle(order)
        yield from ((epoch, task) for task in order)
        epoch += 1
