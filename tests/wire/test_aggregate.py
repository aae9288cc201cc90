"""Figures over finished rollouts: failures are counted and are in no mean."""

from typing import Any

import pytest

from wire.aggregate import aggregate, aggregate_request
from wire.errors import Unprocessable


def line(task: int, reward: float | None, **more: Any) -> dict[str, Any]:
    """A rollout line, or a failed one where there is no reward."""
    failure = {"kind": "timeout"} if reward is None else None
    return {"task_index": task, "reward": reward, "failure": failure, "mask_sample": reward is None, **more}


def test_a_failure_is_counted_and_in_no_mean() -> None:
    """Case F05, group G1: 1, 0, failure, 0 has the mean 1/3 over three."""
    found = aggregate([line(0, 1.0), line(0, 0.0), line(0, None), line(0, 0.0)])
    (group,) = found["group_level_metrics"]
    assert (group["n"], group["n_valid"], group["mean/reward"]) == (4, 3, pytest.approx(1 / 3))
    assert found["agent_metrics"]["mean/reward"] == found["key_metrics"]["mean/reward"] == pytest.approx(1 / 3)


def test_metrics_are_averaged_beside_the_reward() -> None:
    """Numbers only; a task with equal rewards is marked."""
    lines = [line(0, 1.0, metrics={"steps": 2, "note": "x"}), line(0, 1.0, metrics={"steps": 4}), line(1, 0.0)]
    found = aggregate(lines)
    assert found["agent_metrics"]["mean/steps"] == 3
    assert [each["zero_variance"] for each in found["group_level_metrics"]] == [True, False]
    assert "mean/note" not in found["agent_metrics"]
    assert found["agent_metrics"]["n_tasks"] == 2


def test_nothing_measured_has_no_mean() -> None:
    """No line, or none with a verdict: counts only."""
    assert aggregate([])["key_metrics"] == {}
    assert aggregate([line(0, None)])["agent_metrics"] == {"n": 1, "n_valid": 0, "n_tasks": 1}


def test_a_body_that_is_no_list_of_lines_is_refused() -> None:
    """The sentence names the field."""
    with pytest.raises(Unprocessable, match="verify_responses"):
        aggregate_request({"verify_responses": "x"})
