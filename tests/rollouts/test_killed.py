"""The collector is killed (`kill -9`) again and again and started again: each key is there once, with the reward it has undisturbed."""

import asyncio
import json
import random
import sys
from pathlib import Path

import pytest

from tests.rollouts.runs import Runs, keys, lines, row, write
from tests.rollouts.scripted_agent import ScriptedAgent

ROOT = Path(__file__).parents[2]


class Killed:
    """A run that is killed at given moments.

    Args:
        runs: Where.
        agent: Tells how far the run is.
        repeats: Rollouts per task.
    """

    def __init__(self, runs: Runs, agent: ScriptedAgent, repeats: int) -> None:
        self._runs, self._agent, self._repeats = runs, agent, repeats

    async def start(self) -> asyncio.subprocess.Process:
        """Start the collector, or start it again."""
        arguments = [str(self._runs.dataset.parent), self._runs.url, str(self._repeats), "8"]
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.rollouts.collector_process", *arguments, cwd=ROOT
        )

    async def kill_after(self, rollouts: int, seconds: float = 0.0) -> bool:
        """Start it and kill it once it has started so many more, and after that time; whether it was still alive."""
        process = await self.start()
        reached = asyncio.create_task(self._agent.until_asked(len(self._agent.asked) + rollouts))
        ended = asyncio.create_task(process.wait())
        await asyncio.wait({reached, ended}, return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()
        await asyncio.wait({ended}, timeout=seconds)
        if process.returncode is None:
            process.kill()
        return await ended != 0


def rows_that_fail_at_times(count: int, seed: int) -> list[dict[str, object]]:
    """Rows of several sizes whose rewards are their own; a tenth of them fails once."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        does: object = ["model_error", "ok"] if chance.random() < 0.1 else "ok"
        made.append(row(number, pays=number / 8, does=does, pad="x" * chance.choice([10, 1000, 200_000])))
    return made


def assert_each_once(runs: Runs, tasks: int, repeats: int) -> None:
    """Every key in the rollouts file, once, with its own reward; no failure has one; every line is whole."""
    assert keys(runs.output) == [(task, repeat) for task in range(tasks) for repeat in range(repeats)]
    assert all(each["reward"] == each["number"] / 8 for each in lines(runs.output))
    assert all(each["reward"] is None for each in lines(runs.failures))
    attempts = [(each["task_index"], each["rollout_index"], each["attempt"]) for each in lines(runs.failures)]
    assert len(attempts) == len(set(attempts))
    assert all(json.loads(line) for line in runs.groups.read_text().splitlines())
    assert sorted(each["task_index"] for each in lines(runs.groups)) == list(range(tasks))


async def test_killed_at_any_moment_each_key_is_there_once(runs: Runs, agent: ScriptedAgent) -> None:
    """Three kills in a run of sixty, the last start ends it."""
    write(runs.dataset, rows_that_fail_at_times(30, seed=1))
    killed = Killed(runs, agent, repeats=2)
    for rollouts in (1, 9, 16):
        assert await killed.kill_after(rollouts)

    assert await (await killed.start()).wait() == 0
    assert_each_once(runs, 30, 2)


@pytest.mark.chaos
@pytest.mark.timeout(900)
async def test_killed_a_hundred_times(runs: Runs, agent: ScriptedAgent) -> None:
    """Five hundred rollouts, a hundred kills at random instants."""
    chance = random.Random(2)
    write(runs.dataset, rows_that_fail_at_times(250, seed=2))
    killed = Killed(runs, agent, repeats=2)
    for _ in range(100):
        await killed.kill_after(chance.randrange(1, 8), chance.uniform(0, 0.02))

    assert await (await killed.start()).wait() == 0
    assert_each_once(runs, 250, 2)
