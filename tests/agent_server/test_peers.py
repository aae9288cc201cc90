"""NeMo Gym's own environment server, unmodified, drives our agent and our resources server.

Needs a Python with nemo-gym 0.7 (`pip install --ignore-requires-python nemo-gym==0.7.0`), named by `TRIVIUM_NEMO_GYM_PYTHON`.
"""

import asyncio
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.stack import stack
from wire import strict_json
from wire.testing import serving
from wire.testing.upstream import MSG, TC, Upstream

DRIVER = Path(__file__).parent / "nemo_gym_driver.py"
TOOL = {
    "type": "function",
    "name": "increment_counter",
    "description": "Add to the counter.",
    "parameters": {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]},
    "strict": True,
}
pytestmark = pytest.mark.peers


def place(url: str) -> list[Any]:
    """Host and port of a URL."""
    parts = urlsplit(url)
    return [parts.hostname, parts.port]


async def episode(
    urls: dict[str, str], task_input: dict[str, Any], transports: list[str], folder: Path
) -> dict[str, Any]:
    """What NeMo Gym's environment server answers for one episode; it writes its logs into the folder."""
    python = os.environ.get("TRIVIUM_NEMO_GYM_PYTHON")
    if not python:
        pytest.skip("TRIVIUM_NEMO_GYM_PYTHON names no Python that has nemo-gym")
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
