"""What an agent server of another maker may answer: a line, or that rollout's failure; never the end of the run."""

import json
from typing import Any

import pytest

from rollouts import lines
from wire.client import Reply

ROW = b'{"responses_create_params": {"input": "x"}}'


def line_of(answer: dict[str, Any]) -> lines.Line:
    return lines.from_reply(Reply("agent_server", "/run", 200, json.dumps(answer).encode(), {}, {}), ROW)


@pytest.mark.parametrize(
    "answer",
    [
        {"response": "x"},
        {"response": {"output": 5}},
        {"response": {"output": [None, 5]}},
        {"response": {"output": [], "usage": "x"}},
        {"steps": "x"},
        {"steps": [5]},
        {"steps": [{"usage": [1]}]},
        {"steps": [{"calls": [1]}]},
        {"metrics": [1]},
    ],
)
def test_a_line_of_another_shape_is_a_failure(answer: dict[str, Any]) -> None:
    """Readers would stumble over it, and the whole run with them."""
    line = line_of({"reward": 1.0, **answer})
    assert (line["reward"], line["failure"]["kind"], line["mask_sample"]) == (None, "agent_error", True)
    assert "line has" in line["failure"]["message"]


def test_a_line_may_leave_out_what_is_optional() -> None:
    """NeMo Gym's agents know no steps."""
    line = line_of({"reward": 0.5, "response": {"output": [], "usage": None}})
    assert (line["reward"], line["failure"], line["outcome"]) == (0.5, None, "completed")


def test_a_reward_past_every_float_is_no_reward() -> None:
    """A whole number of 400 digits is JSON, and no float."""
    assert line_of({"reward": 10**400, "response": {"output": []}})["failure"]["kind"] == "invalid_reward"
