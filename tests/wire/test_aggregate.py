"""Figures over finished rollouts: failures are counted and are in no mean."""

from typing import Any

import pytest

from wire.aggregate import aggregate, aggregate_request
from wire.errors import Unprocessable
from wire.figures import Figures


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
    found = aggregate([line(0, None)])["agent_metrics"]
    assert (found["n"], found["n_valid"], found["n_tasks"], found["mean_reward"]) == (1, 0, 1, None)
    assert "mean/reward" not in found


def test_it_says_what_profile_says() -> None:
    """The command's figures are in it, name by name."""
    lines = [line(task, float(task == repeat)) for task in range(3) for repeat in range(2)]
    figures = Figures()
    for each in lines:
        figures.add(each)
    found = aggregate(lines)["agent_metrics"]
    assert figures.summary().items() <= found.items()


def test_a_line_without_a_task_is_a_group_of_its_own() -> None:
    """Bare verify replies are not taken for repeats of one task."""
    bare = {"reward": 1.0}
    assert len(aggregate([bare, bare])["group_level_metrics"]) == 2


def test_a_body_that_is_no_list_of_lines_is_refused() -> None:
    """The sentence names the field."""
    with pytest.raises(Unprocessable, match="verify_responses"):
        aggregate_request({"verify_responses": "x"})
