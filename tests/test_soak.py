"""Twenty thousand rollouts: no server and no collector grows, no session stays open, and the last are as fast as the first."""

import re
import time
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
from wire.client import Client

ROOT = Path(__file__).parent.parent
ROLLOUTS, WARM = 20_000, 2_000
GROWTH = 1.10


class Sampler(Quiet):
    """Resident memory of every process after the first rollouts, and the pace of the run's parts."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.warm: dict[str, int] = {}
        self.at: dict[int, float] = {}

    def ticked(self, tick: Tick) -> None:
        if tick.done == WARM:
            self.warm = self.resident()
        if tick.done % WARM == 0:
            self.at[tick.done] = time.monotonic()

    def resident(self) -> dict[str, int]:
        """Name to KiB."""
        pids = {**{name: each[0] for name, each in self._running.pids.items()}, "collector": "self"}
        return {
            name: int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[0])
            for name, pid in pids.items()
        }


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_nothing_grows(tmp_path: Path) -> None:
    """Memory within 10% of what it was after the first 2,000; the last 2,000 take no longer than twice the second 2,000."""
    task = {"responses_create_params": {"input": "Leave the counter."}, "initial_count": 1, "expected_count": 1}
    dataset = write(tmp_path / "rows.jsonl", [{**task, "task_id": f"t{number}"} for number in range(ROLLOUTS // 4)])
    overrides = ["auth=none", "model_interface.backend=reference"]
    stack = stacks.read([str(ROOT / "configs/counter.yaml")], overrides)

    async with launched(stack.servers(), token=None) as running, Client(running.urls) as client:
        heard = Sampler(running)
        settings = RolloutsSettings(repeats=4, concurrency=32)
        plan = Plan([Source("counter", dataset)], tmp_path / "out.jsonl", settings, client=client)
        summary = await collect(plan, heard)

        assert summary.line == f"{ROLLOUTS} ok, 0 failed, 0 missing"
        after = heard.resident()
        assert {name: kib for name, kib in after.items() if kib > GROWTH * heard.warm[name]} == {}, heard.warm
        assert heard.at[ROLLOUTS] - heard.at[ROLLOUTS - WARM] < 2 * (heard.at[2 * WARM] - heard.at[WARM])
        async with aiohttp.ClientSession() as http, http.get(running.urls["resources_server"] + "/metrics") as answer:
            assert re.search(r"sessions_open(\{.*\})? 0(\.0)?$", await answer.text(), re.MULTILINE)
