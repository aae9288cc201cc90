"""Twenty thousand rollouts: no server and no collector grows, no session stays open, and the last are as fast as the first."""

import asyncio
import os
import re
import sys
from pathlib import Path

import aiohttp
import pytest

from rollouts import stack as stacks
from rollouts.collect import collect
from rollouts.launcher import Running, launched
from rollouts.plan import Plan, Source
from rollouts.progress import Quiet
from rollouts.settings import RolloutsSettings
from rollouts.summary import Tick
from tests.rollouts.runs import write
from wire import strict_json
from wire.client import Client
from wire.testing import serving
from wire.testing.answers import MSG, TC
from wire.testing.upstream import Upstream

ROOT = Path(__file__).parent.parent
ROLLOUTS, WARM = 20_000, 2_000
GROWTH = 1.10
LEAVES_EVERY, LEAVES_AFTER_S = 20, 0.02  # one caller in so many goes away in the middle of its rollout
TASK = {"responses_create_params": {"input": "Add one to the counter."}, "initial_count": 1, "expected_count": 2}
OVERRIDES = ["auth=none", "model_interface.backend=chat", "model_interface.model=m"]


class Sampler(Quiet):
    """Resident memory of every process and the pace as the run goes; starts rollouts whose callers leave."""

    def __init__(self, running: Running, upstream: Upstream, http: aiohttp.ClientSession) -> None:
        self._running, self._upstream, self._http = running, upstream, http
        self.memory: dict[int, dict[str, int]] = {}
        self.cpu: dict[int, float] = {}
        self.leaving: set[asyncio.Task[None]] = set()
        self.left = 0

    def ticked(self, tick: Tick) -> None:
        if tick.done % WARM == 0:
            self._upstream.received.clear()  # the fake model keeps what it was asked
            self.cpu[tick.done], self.memory[tick.done] = self.processor_s(), self.resident()
            said = f"{tick.done} rollouts, {tick.seconds:.0f} s, {self.cpu[tick.done]:.0f} s of processor"
            sys.stdout.write(f"\n{said}: {self.memory[tick.done]} KiB")
        if tick.done % LEAVES_EVERY == 0:
            task = asyncio.create_task(self._leave())
            self.leaving.add(task)
            task.add_done_callback(self.leaving.discard)

    async def _leave(self) -> None:
        timeout = aiohttp.ClientTimeout(total=LEAVES_AFTER_S)
        try:
            async with self._http.post(
                self._running.urls["agent_server"] + "/run", data=strict_json.dumps(TASK), timeout=timeout
            ):
                pass
        except TimeoutError:
            self.left += 1

    def processor_s(self) -> float:
        """Seconds that all processes have used, the fake model's included: unlike the clock, no neighbour of ours makes them longer."""
        ticks = 0
        for pid in self._pids().values():
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def resident(self) -> dict[str, int]:
        """Name to KiB."""
        return {
            name: int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[0])
            for name, pid in self._pids().items()
        }

    def _pids(self) -> dict[str, int]:
        return {**{name: each[0] for name, each in self._running.pids.items()}, "collector": os.getpid()}


async def metric(http: aiohttp.ClientSession, url: str, name: str) -> float:
    """A server's gauge now."""
    async with http.get(f"{url}/metrics") as answer:
        found = re.findall(rf"^trivium_{name} (\S+)$", await answer.text(), re.MULTILINE)
    return float(found[0])


@pytest.mark.soak
@pytest.mark.timeout(2400)
async def test_nothing_grows(tmp_path: Path) -> None:
    """Memory within 10% of what it was after the first 2,000; the last 2,000 take half as much work again as the second 2,000, at most."""
    dataset = write(tmp_path / "rows.jsonl", [{**TASK, "task_id": f"t{number}"} for number in range(ROLLOUTS // 4)])
    upstream = Upstream(turns=[TC(("c", "increment_counter", '{"count": 1}')), MSG("done")])
    async with serving(up=upstream) as up, aiohttp.ClientSession() as http:
        overrides = [*OVERRIDES, f"model_interface.base_url={up['up']}/v1"]
        stack = stacks.read([str(ROOT / "configs/counter.yaml")], overrides)
        async with launched(stack.servers(), token=None) as running, Client(running.urls) as client:
            heard = Sampler(running, upstream, http)
            settings = RolloutsSettings(repeats=4, concurrency=32)
            plan = Plan([Source("counter", dataset)], tmp_path / "out.jsonl", settings, client=client)
            summary = await collect(plan, heard)
            await asyncio.gather(*heard.leaving)

            assert summary.line == f"{ROLLOUTS} ok, 0 failed, 0 missing"
            warm, after = heard.memory[WARM], heard.resident()
            assert {name: kib for name, kib in after.items() if kib > GROWTH * warm[name]} == {}, warm
            assert heard.cpu[ROLLOUTS] - heard.cpu[ROLLOUTS - WARM] < 1.5 * (heard.cpu[2 * WARM] - heard.cpu[WARM])
            assert heard.left > 0
            agent = running.urls["agent_server"]
            while await metric(http, agent, "rollouts_in_flight"):  # noqa: ASYNC110 - of callers that left just now
                await asyncio.sleep(0.05)
            assert await metric(http, running.urls["resources_server"], "sessions_open") == 0
