"""NeMo Gym's own conformance check for resources servers, run over our app.

Needs a Python with nemo-gym 0.7 (`pip install --ignore-requires-python nemo-gym==0.7.0`), named by `TRIVIUM_NEMO_GYM_PYTHON`.
"""

import asyncio
import os
from pathlib import Path

import pytest

CHECK = """
from nemo_gym.base_resources_server import ResourcesSeedSessionRequest
from nemo_gym.testing.session_conformance import check_resources_session_contract
from resources_server.app import app_for
from resources_server.environments.counter import Counter

seed = ResourcesSeedSessionRequest.model_validate({
    "resources_session_id": "session-1",
    "episode_id": {"rollout_id": "r-7", "attempt": 0},
    "task_id": {"taskset": "counter", "task_id": "1"},
    "task_data": {"initial_count": 0, "expected_count": 2},
})
check_resources_session_contract(app_for(Counter), seed, keeps_state=True)
print("the contract holds")
"""


@pytest.mark.peers
async def test_our_app_keeps_nemo_gyms_session_contract() -> None:
    """Seed, seed again, close, close again, close of what never was, and no seed after a close."""
    python = os.environ.get("TRIVIUM_NEMO_GYM_PYTHON")
    if not python:
        pytest.skip("TRIVIUM_NEMO_GYM_PYTHON names no Python that has nemo-gym")
    process = await asyncio.create_subprocess_exec(
        python,
        "-c",
        CHECK,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    out, err = await process.communicate()
    assert b"the contract holds" in out, err.decode()[-3000:]
