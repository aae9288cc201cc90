"""Whatever breaks, no rollout is lost, none is counted twice, none that failed is passed off as a reward.

One hop in twenty meets with a fault, on all four hops; the servers (sessions in SQLite) and the collector are killed (`kill -9`) at
random; in the end every key is there once, with the reward and the state that it has when nothing breaks.
"""

import asyncio
import contextlib
import itertools
import json
import os
import random
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rollouts import launcher
from rollouts import stack as stacks
from rollouts.launcher import Running, launched
from tests.rollouts.command import exists, free
from tests.rollouts.runs import keys, lines, write
from wire import jsonl
from wire.testing import free_port, serving
from wire.testing.answers import MSG, TC, slowly
from wire.testing.proxy import SHARE, FaultyProxy
from wire.testing.upstream import Upstream

ROOT = Path(__file__).parent.parent
ROOMS = ("model_interface", "resources_server", "agent_server")
MODEL_S = 0.03  # of each model call, so that a run has a length whatever the machine
LIFE = 8  # rollouts that a collector begins before it is killed, about; those in flight then have not ended
CHECKED = ("/run", "/seed_session", "/verify", "/v1/responses", "/v1/chat/completions")
"""Paths whose replies are JSON for our own servers; a tool's may be any text, and nobody could tell that it was spoilt."""


def task(number: int) -> dict[str, Any]:
    """Up to three turns, one of them with two calls; a third of the tasks is not solved by what the model does."""
    moves = [1 + (number + turn) % 4 for turn in range(number % 4)]
    reached = number + sum(moves) + (moves[0] if moves else 0)
    return {
        "task_id": f"t{number}",
        "responses_create_params": {"input": f"Moves: {json.dumps(moves)}"},
        "initial_count": number,
        "expected_count": reached + (number % 3 == 0),
        "reached": reached,
    }


def move(body: dict[str, Any]) -> Any:
    """The model's next turn, read off the conversation: the same whenever and however often it is asked."""
    said = re.findall(r"Moves: (\[.*?\])", json.dumps(body["messages"][0]))
    moves = json.loads(said[0])
    turn = sum(each["role"] == "assistant" for each in body["messages"])
    if turn == len(moves):
        return slowly(MSG("done"), MODEL_S)
    calls = [
        (f"c{turn}.{place}", "increment_counter", json.dumps({"count": moves[turn]}))
        for place in range(2 if turn == 0 else 1)
    ]
    return slowly(TC(*calls), MODEL_S)


class Chaos:
    """Servers behind proxies, and what is done to them."""

    def __init__(
        self, running: Running, proxies: dict[str, FaultyProxy], folder: Path, tasks: int, repeats: int
    ) -> None:
        self.running, self.proxies, self.folder = running, proxies, folder
        self.tasks, self.repeats = tasks, repeats
        self.chance = random.Random(3)
        self.killed: Counter[str] = Counter()
        write(folder / "rows.jsonl", [task(number) for number in range(tasks)])

    def share(self, share: float) -> None:
        """How much goes wrong from now on."""
        for proxy in self.proxies.values():
            proxy.share = share

    async def collector(self, output: str, concurrency: int) -> asyncio.subprocess.Process:
        """Start the command, or start it again."""
        command = [sys.executable, "-m", "rollouts.cli", "collect", "configs/counter.yaml", "auth=none"]
        command += ["--agent-url", self.proxies["agent_server"].url, "--input", str(self.folder / "rows.jsonl")]
        command += ["--output", str(self.folder / output), "--repeats", str(self.repeats)]
        command += ["--concurrency", str(concurrency), "--attempts", "50"]
        command += ["rollouts.retry_wait_s=0.1", "rollouts.timeout_s=60"]
        log = (self.folder / "collector.log").open("ab")
        return await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=log, stderr=log)

    async def kill_collector(self, output: str) -> bool:
        """Start it, and kill it at a random instant; False when it had ended by itself."""
        process = await self.collector(output, 4)
        ended = asyncio.create_task(process.wait())
        if self.chance.random() < 0.1:  # it may not have begun
            await asyncio.wait({ended}, timeout=self.chance.uniform(0, 1))
        else:
            begun = asyncio.create_task(self.rollouts(self.chance.randrange(1, 2 * LIFE)))
            await asyncio.wait({begun, ended}, return_when=asyncio.FIRST_COMPLETED)
            begun.cancel()
            await asyncio.wait({ended}, timeout=self.chance.uniform(0, 0.1))
        if process.returncode is None:
            process.kill()
        self.killed["collector"] += await ended == -signal.SIGKILL
        return process.returncode != 0

    async def rollouts(self, number: int) -> None:
        """Wait until so many more have come to the agent: moments that lie as thickly on any machine."""
        agent = self.proxies["agent_server"]
        await agent.until("/run", agent.came["/run"] + number)

    async def kill_servers(self, every: int) -> None:
        """Again and again, about every so many rollouts, one after the other."""
        for name in itertools.cycle(("agent_server", "resources_server", "model_interface")):
            await self.rollouts(self.chance.randrange(1, 2 * every))
            await asyncio.sleep(self.chance.uniform(0, 0.2))
            for pid in self.running.pids[name]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self.killed[name] += 1

    async def wreak(self, output: str, kills: int, every: int) -> None:
        """Kill the collector so many times, and servers meanwhile; then let the run come to its end, with faults on every hop."""
        killer = asyncio.create_task(self.kill_servers(every))
        while self.killed["collector"] < kills and await self.kill_collector(output):
            pass
        killer.cancel()
        assert await (await self.collector(output, 16)).wait() == 0, (self.folder / "collector.log").read_text()[-3000:]

    def check(self, output: str) -> list[dict[str, Any]]:
        """Every key once, in strict JSON, with the verdict of an undisturbed rollout; no failure has a reward. Returns the failures."""
        path, failed = self.folder / f"{output}.jsonl", self.folder / f"{output}_failures.jsonl"
        out = [record for _, record in jsonl.read(path)]
        failures = [record for _, record in jsonl.read(failed)] if failed.exists() else []
        assert keys(path) == [(number, repeat) for number in range(self.tasks) for repeat in range(self.repeats)]
        for each in out:
            right = (float(each["reached"] == each["expected_count"]), {"count": each["reached"]})
            assert (each["reward"], each["state"]) == right, each
            assert (each["failure"], each["mask_sample"], each["outcome"]) == (None, False, "completed")
        assert all(each["reward"] is None and each["mask_sample"] and each["failure"]["kind"] for each in failures)
        attempts = [(each["task_index"], each["rollout_index"], each["attempt"]) for each in [*out, *failures]]
        assert len(attempts) == len(set(attempts))
        return failures


@contextlib.asynccontextmanager
async def chaos(folder: Path, tasks: int, repeats: int, seed: int, *more: str) -> AsyncIterator[Chaos]:
    """The stack of `configs/counter.yaml` with a proxy in front of every server and of the model; nothing is left of it afterwards."""
    ports = {name: free_port() for name in ROOMS}
    upstream = Upstream(after=move)
    async with contextlib.AsyncExitStack() as held:
        targets = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
        targets |= await held.enter_async_context(serving(upstream=upstream))
        proxies = {
            name: await held.enter_async_context(
                FaultyProxy(url, share=SHARE, seed=seed + place, spoils=lambda path: path in CHECKED)
            )
            for place, (name, url) in enumerate(targets.items())
        }
        overrides = [f"{name}.port={ports[name]}" for name in ROOMS] + [
            f"{name}.url={proxies[name].url}" for name in ROOMS
        ]
        overrides += ["auth=none", f"resources_server.sessions.url=sqlite:///{folder}/sessions.db", *more]
        overrides += ["model_interface.backend=chat", f"model_interface.base_url={proxies['upstream'].url}/v1"]
        stack = stacks.read([str(ROOT / "configs/counter.yaml")], [*overrides, "model_interface.model=m"])
        async with launched(stack.servers(), token=None) as running:
            yield Chaos(running, proxies, folder, tasks, repeats)
            pids = [pid for each in running.pids.values() for pid in each]
        assert not any(exists(pid) for pid in pids) and all(free(port) for port in ports.values())
    assert upstream.refused == []


def report(played: Chaos, failures: list[dict[str, Any]]) -> None:
    """What was done, for whoever runs it with `-s`."""
    faults = {name: dict(sorted(proxy.met.items())) for name, proxy in played.proxies.items()}
    kinds = Counter(each["failure"]["kind"] for each in failures)
    sys.stdout.write(f"\nkilled: {dict(played.killed)}\nhops: {json.dumps(faults)}\nfailed attempts: {dict(kinds)}\n")


async def test_a_short_run_in_a_storm_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """24 rollouts, one hop in ten faulty, the collector killed four times, servers as often."""
    monkeypatch.setattr(launcher, "RESTARTS", 1000)
    async with chaos(tmp_path, tasks=24, repeats=1, seed=11) as played:
        played.share(2 * SHARE)
        await played.wreak("out.jsonl", kills=4, every=8)
        report(played, played.check("out"))


@pytest.mark.chaos
@pytest.mark.timeout(2400)
async def test_nothing_is_lost_counted_twice_or_made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 rollouts, 5% of the hops faulty, servers killed at random, the collector at 100 random instants."""
    monkeypatch.setattr(launcher, "RESTARTS", 1000)
    monkeypatch.setattr(launcher, "LONGEST_WAIT_S", 0.5)
    async with chaos(tmp_path, tasks=250, repeats=2, seed=1) as played:
        played.share(0.0)
        assert await (await played.collector("calm.jsonl", 16)).wait() == 0
        assert played.check("calm") == []
        played.share(SHARE)

        await played.wreak("out.jsonl", kills=100, every=20)
        report(played, played.check("out"))
    rewards = [
        {(each["task_index"], each["rollout_index"]): each["reward"] for each in lines(tmp_path / name)}
        for name in ("calm.jsonl", "out.jsonl")
    ]
    assert rewards[0] == rewards[1] and played.killed["collector"] == 100


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "more",
    [
        ["resources_server.sessions.url=memory"],
        ["resources_server.workers=2", "agent_server.workers=2"],
        ["agent_server.token_ids=items", "model_interface.conversations.max=1"],
    ],
    ids=["sessions that die with their server", "two workers", "conversations forgotten at once"],
)
async def test_other_stacks_lose_nothing_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    """60 rollouts, 15% of the hops faulty: what is lost is tried again from its beginning, and no call counts twice."""
    monkeypatch.setattr(launcher, "RESTARTS", 1000)
    monkeypatch.setattr(launcher, "LONGEST_WAIT_S", 0.5)
    async with chaos(tmp_path, 60, 1, 100, *more) as played:
        played.share(3 * SHARE)
        await played.wreak("out.jsonl", kills=6, every=10)
        report(played, played.check("out"))
