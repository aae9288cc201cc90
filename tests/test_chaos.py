"""Whatever breaks, no rollout is lost, none is counted twice, none that failed is passed off as a reward.

One hop in twenty is lost, delayed, cut, doubled or spoilt, servers and collector are killed (`kill -9`) at random; in the end every
key is there once, with the reward that it has when nothing breaks.
"""

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rollouts import stack as stacks
from rollouts.launcher import Running, launched
from tests.faulty_proxy import FaultyProxy
from tests.rollouts.runs import keys, lines, write
from wire.testing import free_port, one_server

ROOT = Path(__file__).parent.parent
ROOMS = ("model_interface", "resources_server", "agent_server")
TASKS, REPEATS = 250, 2
SHARE = 0.05  # of the hops meet with a fault
KILLS = 100  # of the collector
SERVER_KILLS = 4  # of each server: below what a launcher gives up at
OVERRIDES = ("auth=none", "model_interface.backend=reference", "agent_server.max_steps=4")


def rows() -> list[dict[str, object]]:
    """Tasks whose rewards differ: the reference's own calls bring some counters to where they should be, no call brings the others."""
    return [
        {
            "task_id": f"t{number}",
            "responses_create_params": {"input": f"Bring the counter from {number} to {number + number % 7}."},
            "initial_count": number,
            "expected_count": number + number % 7,
        }
        for number in range(TASKS)
    ]


class Chaos:
    """Servers behind proxies, and what is done to them."""

    def __init__(self, running: Running, proxies: dict[str, FaultyProxy], agent_url: str, folder: Path) -> None:
        self.running, self.proxies, self.agent_url, self.folder = running, proxies, agent_url, folder
        self.chance = random.Random(3)

    async def collector(self, output: str, *more: str) -> asyncio.subprocess.Process:
        """Start the command, or start it again."""
        command = [sys.executable, "-m", "rollouts.cli", "collect", "configs/counter.yaml", *OVERRIDES]
        command += [
            "--agent-url",
            self.agent_url,
            "--input",
            str(self.folder / "rows.jsonl"),
            "--repeats",
            str(REPEATS),
        ]
        command += ["--output", str(self.folder / output), "--attempts", "50", "rollouts.retry_permanent=true"]
        command += ["rollouts.timeout_s=20", "rollouts.retry_wait_s=0.1", *more]
        return await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.DEVNULL)

    async def kill_collector(self, output: str) -> bool:
        """Start it, and kill it a random while after its first rollout; False when it had ended by itself."""
        process = await self.collector(output, "--concurrency", "4")
        agent = self.proxies["agent_server"]
        begun = asyncio.create_task(agent.until("/run", agent.came["/run"] + 1))
        ended = asyncio.create_task(process.wait())
        await asyncio.wait({begun, ended}, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        await asyncio.wait({ended}, timeout=self.chance.uniform(0, 0.15))
        if process.returncode is None:
            process.kill()
        return await ended != 0

    async def kill_servers(self) -> None:
        """Again and again one of the two that hold what is in flight."""
        for name in ("resources_server", "agent_server") * SERVER_KILLS:
            await asyncio.sleep(self.chance.uniform(2, 12))
            for pid in self.running.pids[name]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@pytest.fixture
async def chaos(tmp_path: Path) -> AsyncIterator[Chaos]:
    """The stack of `configs/counter.yaml` with a proxy in front of every server."""
    ports = {name: free_port() for name in ROOMS}
    proxies = {
        name: FaultyProxy(f"http://127.0.0.1:{port}", SHARE, seed) for seed, (name, port) in enumerate(ports.items())
    }
    async with contextlib.AsyncExitStack() as held:
        urls = {name: await held.enter_async_context(one_server(proxy)) for name, proxy in proxies.items()}
        places = [
            f"{name}.{key}={value}" for name in ROOMS for key, value in (("port", ports[name]), ("url", urls[name]))
        ]
        stack = stacks.read([str(ROOT / "configs/counter.yaml")], [*OVERRIDES, *places])
        running = await held.enter_async_context(launched(stack.servers(), token=None))
        write(tmp_path / "rows.jsonl", rows())
        yield Chaos(running, proxies, urls["agent_server"], tmp_path)
        for proxy in proxies.values():
            await proxy.close()


@pytest.mark.chaos
@pytest.mark.timeout(1200)
async def test_nothing_is_lost_counted_twice_or_made_up(chaos: Chaos) -> None:
    """500 rollouts, 5% of the hops faulty, both servers and the collector killed at random."""
    for proxy in chaos.proxies.values():
        proxy.share = 0.0
    assert await (await chaos.collector("calm.jsonl", "--concurrency", "16")).wait() == 0
    for proxy in chaos.proxies.values():
        proxy.share = SHARE

    killer = asyncio.create_task(chaos.kill_servers())
    kills = 0
    while kills < KILLS and await chaos.kill_collector("out.jsonl"):
        kills += 1
    killer.cancel()
    for _ in range(5):  # a cause that is permanent by its kind is tried again by the next run only
        status = await (await chaos.collector("out.jsonl", "--concurrency", "16")).wait()
    assert status == 0

    out, failures = lines(chaos.folder / "out.jsonl"), lines(chaos.folder / "out_failures.jsonl")
    assert keys(chaos.folder / "out.jsonl") == [(task, repeat) for task in range(TASKS) for repeat in range(REPEATS)]
    calm = {(each["task_index"], each["rollout_index"]): each["reward"] for each in lines(chaos.folder / "calm.jsonl")}
    assert {(each["task_index"], each["rollout_index"]): each["reward"] for each in out} == calm
    assert all(each["reward"] is None and each["failure"]["kind"] for each in failures)
    assert kills == KILLS and sum(proxy.met["none"] for proxy in chaos.proxies.values()) > 1000
