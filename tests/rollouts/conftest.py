"""A scripted agent server on loopback, and a folder to collect into."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.rollouts.runs import Runs
from tests.rollouts.scripted_agent import ScriptedAgent
from wire.testing import serving


@pytest.fixture
async def agent() -> ScriptedAgent:
    """What the agent server was asked, and levers to move it."""
    return ScriptedAgent()


@pytest.fixture
async def runs(tmp_path: Path, agent: ScriptedAgent) -> AsyncIterator[Runs]:
    """Collections against it."""
    async with serving(agent_server=agent) as urls:
        yield Runs(tmp_path, urls["agent_server"])
