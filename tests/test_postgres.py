"""Sessions on a real PostgreSQL, through the whole stack: a resources server that is killed in the middle of an episode costs nothing."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from rollouts import launcher
from rollouts import stack as stacks
from rollouts.launcher import launched
from tests.stack import ROOT, run
from wire.testing import free_port, serving
from wire.testing.answers import MSG, TC
from wire.testing.proxy import FaultyProxy
from wire.testing.upstream import Upstream

ROW = {
    "responses_create_params": {"input": "Add 2, then 3, then 4."},
    "initial_count": 1,
    "expected_count": 10,
}


def add(count: int) -> Any:
    """A turn with one call."""
    return TC((f"c{count}", "increment_counter", f'{{"count": {count}}}'))


@pytest.mark.postgres
@pytest.mark.parametrize("path", ["/increment_counter", "/verify"])
async def test_a_server_killed_in_mid_episode_costs_nothing(
    postgres: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed as a call is on its way to it, three times: the episode completes on the new ones, every call having run once."""
    monkeypatch.setattr(launcher, "RESTARTS", 100)
    port = free_port()
    upstream = Upstream(turns=[add(2), add(3), add(4), MSG("done")])
    async with serving(up=upstream) as up, FaultyProxy(f"http://127.0.0.1:{port}", share=0.0) as proxy:
        overrides = ["auth=none", f"resources_server.port={port}", f"resources_server.url={proxy.url}"]
        overrides += [f"resources_server.sessions.url='{postgres}'", "model_interface.backend=chat"]
        overrides += [f"model_interface.base_url={up['up']}/v1", "model_interface.model=m"]
        stack = stacks.read([str(Path(ROOT) / "configs/counter.yaml")], overrides)
        async with launched(stack.servers(), token=None) as running:
            playing = asyncio.create_task(run(running.urls, ROW))
            killed = []
            for call in range(1, 4 if path == "/increment_counter" else 2):
                await proxy.until(path, call)
                killed += running.pids["resources_server"]
                os.kill(killed[-1], signal.SIGKILL)
            line = await playing
        assert running.pids["resources_server"][0] not in killed
    assert (line["reward"], line["failure"], line["state"]) == (1.0, None, {"count": 10})
    assert [each["status"] for step in line["steps"] for each in step["calls"]] == ["ok"] * 3
    assert proxy.came["/seed_session"] == 1 and proxy.came[path] > len(killed) - 1
