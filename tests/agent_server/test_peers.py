"""NeMo Gym's own parts, unmodified: its environment server drives our servers, and our agent plays in its resources server.

Needs a Python with nemo-gym 0.7 (`pip install --ignore-requires-python nemo-gym==0.7.0`), named by `TRIVIUM_NEMO_GYM_PYTHON`.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from agent_server.agents.tool_loop import ToolLoop
from agent_server.app import make_app
from agent_server.settings import AgentServerSettings
from tests.agent_server.stage import outputs
from tests.stack import run, stack
from wire import strict_json
from wire.testing import serving
from wire.testing.upstream import MSG, TC, Upstream

DRIVER = Path(__file__).parent / "nemo_gym_driver.py"
WORLD = Path(__file__).parent / "nemo_gym_world.py"
TOOL = {
    "type": "function",
    "name": "increment_counter",
    "description": "Add to the counter.",
    "parameters": {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]},
    "strict": True,
}
pytestmark = pytest.mark.peers


def interpreter() -> str:
    """A Python that has nemo-gym."""
    python = os.environ.get("TRIVIUM_NEMO_GYM_PYTHON")
    if not python:
        pytest.skip("TRIVIUM_NEMO_GYM_PYTHON names no Python that has nemo-gym")
    return python


@contextlib.asynccontextmanager
async def their_world(folder: Path) -> AsyncIterator[str]:
    """NeMo Gym's counter example as a server; yields its URL."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        interpreter(), "-P", str(WORLD), stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, cwd=folder
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        while not (line := (await process.stdout.readline()).decode()).startswith("PORT "):
            assert line or process.returncode is None
        yield f"http://127.0.0.1:{line.split()[1]}"
    finally:
        process.stdin.close()
        await process.wait()


def place(url: str) -> list[Any]:
    """Host and port of a URL."""
    parts = urlsplit(url)
    return [parts.hostname, parts.port]


async def episode(
    urls: dict[str, str], task_input: dict[str, Any], transports: list[str], folder: Path
) -> dict[str, Any]:
    """What NeMo Gym's environment server answers for one episode; it writes its logs into the folder."""
    python = interpreter()
    asked: dict[str, Any] = {"resources": place(urls["resources_server"]), "agent": place(urls["agent_server"])}
    asked |= {"transports": transports, "task_input": task_input}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        python, "-P", str(DRIVER), stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder
    )
    out, err = await process.communicate(strict_json.dumps(asked))
    answers = [line for line in out.decode().splitlines() if line.startswith("ANSWER ")]
    assert answers, err.decode()[-3000:]
    answer = strict_json.loads(answers[0].removeprefix("ANSWER "))
    assert isinstance(answer, dict)
    return answer


@pytest.mark.parametrize("tools", [[TOOL], None], ids=["tools in the row", "tools told by the world"])
async def test_its_environment_server_plays_through_our_servers(
    tools: list[dict[str, Any]] | None, tmp_path: Path
) -> None:
    """Seed, agent session, tool calls by cookie, close, verify, close: the reward is the world's."""
    params: dict[str, Any] = {"input": [{"role": "user", "content": "Add three."}]}
    if tools:
        params["tools"] = tools
    task_input = {"responses_create_params": params, "task_data": {"initial_count": 1, "expected_count": 4}}
    upstream = Upstream([TC(("c1", "increment_counter", '{"count": 3}')), MSG("done")])
    async with (
        serving(up=upstream) as up,
        stack(up["up"], resources_server={"environment": "counter"}) as urls,
    ):
        answer = await episode(urls, task_input, ["direct_http"], tmp_path)
    assert answer["failure"] is None, answer["failure"]
    assert answer["result"]["reward"] == 1.0
    types = [item["type"] for item in answer["result"]["response"]["output"]]
    assert types == ["function_call", "function_call_output", "message"]


async def test_our_agent_plays_in_its_resources_server(tmp_path: Path) -> None:
    """Its row as it is; the session lives in its cookie alone, and rollouts at once never share one."""
    turns = [
        TC(("c1", "increment_counter", '{"count": 1}')),
        TC(("c2", "increment_counter", '{"count": "x"}'), ("c3", "increment_counter", '{"count": 2}')),
        TC(("c4", "get_counter_value", "{}")),
        MSG("six"),
    ]
    value = {**TOOL, "name": "get_counter_value", "parameters": {"type": "object", "properties": {}}}
    params = {"input": [{"role": "user", "content": "add 1 then add 2"}], "tools": [TOOL, value]}
    row = {"responses_create_params": params, "expected_count": 6, "initial_count": 3}
    settings = AgentServerSettings()
    async with (
        their_world(tmp_path) as world,
        serving(up=Upstream(turns=turns)) as up,
        stack(up["up"], resources_server={"environment": "counter"}) as urls,
        serving(agent=make_app(settings, ToolLoop(settings), {**urls, "resources_server": world})) as served,
    ):
        agent = {"agent_server": served["agent"]}
        lines = await asyncio.gather(*(run(agent, row) for _ in range(8)))
    assert [line["reward"] for line in lines] == [1.0] * 8, lines[0]["failure"]
    told = outputs(lines[0])
    assert (told[0], told[2], told[3]) == ('{"success":true}', '{"success":true}', '{"count":6}')
    assert "valid integer" in told[1]
    assert lines[0]["expected_count"] == 6
