"""Runs over the real servers in which something goes wrong: it costs the rollouts that it happens to, and nobody else."""

import asyncio
import contextlib
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollouts import launcher
from rollouts import stack as stacks
from rollouts.collect import collect
from rollouts.launcher import Running, launched
from rollouts.lines import LOST, PERHAPS_LOST
from rollouts.plan import Plan, Source
from rollouts.progress import Quiet
from rollouts.settings import RolloutsSettings
from rollouts.summary import Summary
from tests.rollouts.command import setting, trivium
from tests.rollouts.runs import keys, lines, write
from tests.stack import ROOT, run, stack
from wire.client import Client
from wire.testing import free_port, serving
from wire.testing.answers import MSG, TC, never, refused, slowly
from wire.testing.upstream import Upstream

FRAIL = '''
from resources_server import Environment, Response, Task, tool


class FrailTask(Task):
    number: int
    broken: bool = False


class Frail(Environment[FrailTask]):
    count: int = 0

    @tool
    def increment(self, by: int = 1) -> int:
        """Count.

        Args:
            by: How much.
        """
        self.count += by
        return self.count

    def verify(self, response: Response) -> float:
        if self.task.broken:
            raise KeyError("answer")
        return float(self.count)
'''
Does = Callable[[int], Any]


class Troubled:
    """A run of rows whose model does what `does` says for their number, over servers that are processes.

    Args:
        folder: For the world, the rows and the output.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.output = folder, folder / "out.jsonl"
        (folder / "frail_world.py").write_text(FRAIL)
        self.running: Running
        self.asked: Counter[int] = Counter()
        self.broken: int | None = None  # number of the row whose verify raises

    async def run(self, rows: int, does: Does, **settings: Any) -> Summary:
        """Start everything, collect, end everything."""

        def answer(body: dict[str, Any]) -> Any:
            number = int(body["messages"][0]["content"])
            self.asked[number] += 1
            if any(each["role"] == "tool" for each in body["messages"]):
                return MSG("done")
            return does(number) or TC(("c", "increment", "{}"))

        data = [
            {"responses_create_params": {"input": str(each)}, "number": each, "broken": each == self.broken}
            for each in range(rows)
        ]
        async with serving(up=Upstream(after=answer)) as up:
            overrides = ["auth=none", "resources_server.environment=frail_world:Frail", "model_interface.model=m"]
            overrides += ["model_interface.backend=chat", f"model_interface.base_url={up['up']}/v1"]
            stack = stacks.read([str(ROOT / "configs/base.yaml")], [*overrides, "model_interface.attempts=1"])
            async with launched(stack.servers(), token=None) as self.running, Client(self.running.urls) as client:
                chosen = RolloutsSettings.model_validate({"retry_wait_s": 0, **settings})
                source = Source("frail", write(self.folder / "rows.jsonl", data))
                plan = Plan([source], self.output, chosen, client=client, on_verdict=self.running.prove)
                return await collect(plan, Quiet())

    def kill(self, server: str) -> None:
        """As the kernel does when memory is short."""
        [pid] = next(pids for name, pids in self.running.pids.items() if name.startswith(server))
        with contextlib.suppress(ProcessLookupError):  # another row has just killed it
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def troubled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Troubled:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    return Troubled(tmp_path)


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_three_bad_rows_take_no_other_along(troubled: Troubled, concurrency: int) -> None:
    """Case D07: one whose upstream answers 500, one whose verify raises, one under which the agent server dies; seven are there."""

    def does(number: int) -> Any:
        if number == 7:
            troubled.kill("agent_server")
        return refused(500) if number == 3 else None

    troubled.broken = 5
    summary = await troubled.run(10, does, concurrency=concurrency, attempts=3)

    assert summary.line == "7 ok, 3 failed, 0 missing" and summary.exit_code == 1
    if concurrency == 1:  # else the dying agent may take an attempt of the first along
        assert summary.kinds == {"model_error": 1, "verifier_error": 1, "agent_lost": 1}
    assert keys(troubled.output) == [(each, 0) for each in (0, 1, 2, 4, 6, 8, 9)]
    assert all((each["reward"], each["state"]) == (1.0, {"count": 1}) for each in lines(troubled.output))
    failures = lines(troubled.folder / "out_failures.jsonl")
    assert all(each["reward"] is None and each["mask_sample"] for each in failures)
    assert {3, 5, 7} <= {each["number"] for each in failures}


@pytest.mark.parametrize("server", ["agent_server", "resources_server", "model_interface"])
@pytest.mark.parametrize("attempts", [2, 3])
async def test_rows_that_kill_a_server_take_no_other_along(troubled: Troubled, server: str, attempts: int) -> None:
    """Two of them among eight that run at once, with whichever server: all that is lost for good are those two."""

    def does(number: int) -> Any:
        return troubled.kill(server) if number in (1, 6) else None

    summary = await troubled.run(8, does, concurrency=8, attempts=attempts)

    assert summary.line == "6 ok, 2 failed, 0 missing" and set(summary.kinds) <= LOST | PERHAPS_LOST
    assert keys(troubled.output) == [(each, 0) for each in (0, 2, 3, 4, 5, 7)]
    assert all((each["reward"], each["state"]) == (1.0, {"count": 1}) for each in lines(troubled.output))
    assert sum(each["number"] == 1 for each in lines(troubled.folder / "out_failures.jsonl")) == attempts


async def test_max_failures_stops_and_keeps_what_is_done(troubled: Troubled) -> None:
    """Case D07, `--max-failures 0`: one permanent failure is enough; what has ended is on disk."""
    troubled.broken = 5
    summary = await troubled.run(10, lambda number: None, concurrency=1, max_failures=0)

    assert summary.line == "5 ok, 1 failed, 4 missing" and "max-failures" in str(summary.stopped)
    assert keys(troubled.output) == [(each, 0) for each in range(5)]


async def test_an_agent_that_dies_for_good_fails_the_rest_at_once(
    troubled: Troubled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case D07: started again twice and given up, its port is closed; fifty rows do not wait for fifty time-outs."""
    monkeypatch.setattr(launcher, "RESTARTS", 2)
    began = time.monotonic()
    summary = await troubled.run(50, lambda number: troubled.kill("agent_server"), concurrency=8, agent_wait_s=1)

    assert summary.line == "0 ok, 50 failed, 0 missing" and summary.kinds == {"agent_lost": 50}
    assert time.monotonic() - began < 30


async def test_one_slow_row_among_fifty_delays_nothing_but_itself(troubled: Troubled) -> None:
    """Its model takes as long as all others together; with four slots the others have long ended, in their order."""
    slow_s = 4.0
    summary = await troubled.run(
        50, lambda number: slowly(TC(("c", "increment", "{}")), slow_s) if number == 1 else None, concurrency=4
    )

    assert summary.line == "50 ok, 0 failed, 0 missing"
    out = lines(troubled.output)
    took = {each["task_index"]: each["provenance"]["duration_s"] for each in out}
    assert took.pop(1) >= slow_s > 2 * max(took.values())
    assert [each["task_index"] for each in out].index(1) > 10


async def test_a_model_that_never_answers_costs_its_row_its_own_budget(troubled: Troubled) -> None:
    """The rollout ends when its time is up, once, and its session is closed; the others do not notice."""
    began = time.monotonic()
    summary = await troubled.run(
        8, lambda number: never() if number == 2 else None, concurrency=2, timeout_s=2, grace_s=10, attempts=1
    )

    assert summary.line == "7 ok, 1 failed, 0 missing" and time.monotonic() - began < 15
    [failed] = lines(troubled.folder / "out_failures.jsonl")
    assert failed["failure_kind"] in ("timeout", "model_timeout") and 2 <= failed["provenance"]["duration_s"] < 4


def test_a_run_over_an_agent_that_is_down_ends_in_seconds(tmp_path: Path) -> None:
    """`--agent-url` to a port where nobody listens, fifty rows: told at once with the URL, ended soon, exit 1."""
    url = f"http://127.0.0.1:{free_port()}"
    folder = setting(tmp_path, rows=50)
    began = time.monotonic()
    done = trivium("collect", "c.yaml", "--agent-url", url, "--output", "o.jsonl", folder=folder)

    assert done.status == 1 and time.monotonic() - began < 20
    assert url in done.out + done.err and "0 ok, 50 failed, 0 missing" in done.out
    assert {each["failure_kind"] for each in lines(folder / "o_failures.jsonl")} == {"agent_lost"}


async def test_idle_connections_that_the_world_closes_lose_no_call() -> None:
    """Case B05 a with our own servers: the world keeps idle connections for 1 s, the model takes longer; 50 at once all count to 2."""
    calls = [TC((f"c{each}", "increment_counter", json.dumps({"count": 1}))) for each in range(2)]
    upstream = Upstream(turns=[calls[0], slowly(calls[1], 1.01), slowly(MSG("done"), 1.01)])
    row = {"responses_create_params": {"input": "Count to 2."}, "initial_count": 0, "expected_count": 2}
    async with (
        serving(up=upstream) as up,
        stack(up["up"], keep_alive_s=1, resources_server={"environment": "counter"}) as urls,
    ):
        found = await asyncio.gather(*(run(urls, row) for _ in range(50)))
    assert {(each["reward"], each["state"]["count"], each["failure"]) for each in found} == {(1.0, 2, None)}
