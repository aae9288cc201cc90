"""Groups as they end: with real servers and a scripted model."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import aiohttp
import pytest

from rollouts.trainers.endpoint import Endpoint
from rollouts.trainers.stream import HOPELESS, streaming
from tests.stack import ROOT
from wire import jsonl
from wire.errors import TriviumError
from wire.testing import one_server

MODEL = (
    "model_interface.backend=scripted",
    "model_interface.options={turns: [{calls: [{name: increment_counter, arguments: {count: 2}}]}, done], tokens: true}",
)
GROUPS = ("counter", *MODEL, "rollouts.repeats=3", "rollouts.concurrency=6", "rollouts.retry_wait_s=0")


async def test_groups_come_whole_and_with_their_version(tmp_path: Path) -> None:
    """Three rollouts of one task each; every one of them is a line too."""
    async with streaming(*GROUPS, output=tmp_path / "lines.jsonl") as stream:
        found = [await anext(stream) for _ in range(4)]
    assert all(len(each.lines) == 3 for each in found)
    assert all({line["task_index"] for line in each.lines} == {each.task} for each in found)
    assert {(each.version, each.lag, each.stale) for each in found} == {(0, 0, False)}
    assert stream.counts["handed_out"] == 4
    keys = [
        (line["provenance"]["run_id"], line["task_index"], line["rollout_index"])
        for _, line in jsonl.read(tmp_path / "lines.jsonl")
    ]
    assert len(keys) == len(set(keys)) >= 12


async def test_nothing_is_in_flight_while_weights_change(tmp_path: Path) -> None:
    """After `pause` no line is written until `resume`."""
    path = tmp_path / "lines.jsonl"
    async with streaming(*GROUPS, output=path) as stream:
        await anext(stream)
        await stream.pause()
        assert stream.status["in_flight"] == 0
        written = path.read_bytes()
        await asyncio.wait([asyncio.create_task(stream._idle.wait())])
        assert path.read_bytes() == written
        stream.resume(1)
        while (await anext(stream)).version == 0:
            pass


async def test_stale_groups_are_dropped_and_counted(tmp_path: Path) -> None:
    """Those that were ready when the weights went on by more than the lag."""
    async with streaming(*GROUPS, output=tmp_path / "lines.jsonl", max_lag=0) as stream:
        await anext(stream)
        await stream.pause()
        ready = stream.status["ready"]
        stream.resume(1)
        assert (await anext(stream)).version == 1
    assert ready and stream.counts["stale"] == ready


async def test_stale_groups_may_be_marked_instead(tmp_path: Path) -> None:
    """The trainer decides, group by group."""
    async with streaming(*GROUPS, output=tmp_path / "lines.jsonl", max_lag=0, stale="mark") as stream:
        await anext(stream)
        await stream.pause()
        stream.resume(2)
        group = await anext(stream)
    assert (group.version, group.lag, group.stale) == (0, 2, True)


async def test_a_stream_that_only_fails_says_so(tmp_path: Path) -> None:
    """Groups without enough verdicts are counted and not handed out; after many in a row there is no more, and the reason."""
    broken = ("model_interface.backend=scripted", "model_interface.options={turns: [{failure: model_refused}]}")
    config = ("counter", *broken, "rollouts.repeats=2", "rollouts.concurrency=2", "rollouts.attempts=1")
    async with streaming(*config, output=tmp_path / "lines.jsonl") as stream:
        for _ in range(2):
            with pytest.raises(TriviumError, match=r"groups in a row had too few verdicts; the last one: .*fails so"):
                await anext(stream)
    assert stream.counts == {"incomplete": HOPELESS}
    assert len(list(jsonl.read(tmp_path / "lines_failures.jsonl"))) == 2 * HOPELESS


async def test_a_trainer_elsewhere_takes_groups_over_http(tmp_path: Path) -> None:
    """The same groups, pause and resume; who waits too short a time loses nothing."""
    async with (
        streaming(*GROUPS, output=tmp_path / "lines.jsonl") as stream,
        one_server(Endpoint(stream).app("secret-token")) as url,
        aiohttp.ClientSession(url, headers={"Authorization": "Bearer secret-token"}) as http,
    ):
        async with http.get("/group?wait_s=0") as none, http.get("/group?wait_s=60") as first:
            assert none.status in (200, 204)
            group = await first.json()
            assert (first.status, len(group["lines"]), group["lag"]) == (200, 3, 0)
        async with http.post("/pause") as paused:
            assert (await paused.json())["paused"] is True
        async with http.post("/resume", json={"policy_version": 4}) as resumed:
            assert (await resumed.json())["policy_version"] == 4
        async with http.post("/resume", json={"policy_version": "5"}) as refused:
            assert refused.status == 400
        async with http.get("/group?wait_s=never") as refused, aiohttp.ClientSession(url) as stranger:
            assert refused.status == 400
            async with stranger.get("/group") as closed:
                assert closed.status == 401


def test_the_command_hands_out_groups(tmp_path: Path) -> None:
    """Until it is told to stop; the exit status is the signal's."""
    command = [
        sys.executable,
        "-m",
        "rollouts.cli",
        "stream",
        *GROUPS,
        "--port",
        "0",
        "--output",
        str(tmp_path / "l.jsonl"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRIVIUM_TOKEN": "t" * 20}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path) as running:
        assert running.stdout is not None
        url = running.stdout.readline().split()[1]
        asked = urllib.request.Request(f"{url}/group?wait_s=60", headers={"Authorization": f"Bearer {'t' * 20}"})
        with urllib.request.urlopen(asked, timeout=90) as answer:
            assert len(json.load(answer)["lines"]) == 3
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 130
