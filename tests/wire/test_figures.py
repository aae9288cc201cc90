"""Figures over lines, against values worked out by hand."""

from typing import Any

import pytest

from wire.figures import Figures, environment_of


def line(task: int, reward: float | None, text: str = "", tokens: int = 0, **more: Any) -> dict[str, Any]:
    """A rollout line as far as figures read it."""
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]
    response = {"output": output, "usage": {"input_tokens": 10, "output_tokens": tokens}}
    return {"task_index": task, "reward": reward, "response": response} | more


def figures(*lines: dict[str, Any]) -> Figures:
    made = Figures()
    for each in lines:
        made.add(each)
    return made


FAILURE: dict[str, Any] = {"failure": {"kind": "model_timeout"}}


def test_means_are_over_tasks_and_failures_are_in_none() -> None:
    """Task 0: 1, 0, 0 and a failure; task 1: 1, 1. Mean of 1/3 and 1."""
    found = figures(line(0, 1), line(0, 0), line(0, 0), line(0, None, **FAILURE), line(1, 1), line(1, 1))
    mean = found.mean()
    assert mean is not None
    assert mean.mean == pytest.approx(2 / 3)
    assert found.pass_at() == {1: pytest.approx(2 / 3), 2: pytest.approx((2 / 3 + 1) / 2)}
    assert found.pass_hat()[2] == pytest.approx(0.5)
    assert (found.best(), found.spread_share()) == (1.0, 0.5)
    assert [len(found.too_easy()), len(found.too_hard())] == [1, 0]
    assert found.failures == {"model_timeout": 1}


def test_the_majority_answer_counts_once_per_task() -> None:
    """Two say b and got 0, one says a and got 1; spaces do not make another answer."""
    assert figures(line(0, 1, "a"), line(0, 0, "b"), line(0, 0, " b\n")).majority() == 0.0


def test_reward_against_length() -> None:
    """Longer is worse here, exactly linearly."""
    assert figures(*(line(each, -each, tokens=each) for each in range(5))).length_correlation() == pytest.approx(-1)
    assert figures(line(0, 1, tokens=3), line(0, 1, tokens=4)).length_correlation() is None


def test_tool_errors_steps_and_times() -> None:
    """Counted from the steps of the lines."""
    step = {
        "model_s": 1.0,
        "tool_s": 0.5,
        "calls": [{"name": "a", "status": "ok"}, {"name": "a", "status": "tool_error"}],
    }
    summary = figures(line(0, 1, steps=[step, step])).summary()
    assert (summary["tool_error_share"], summary["steps"], summary["model_s"], summary["tool_s"]) == (0.5, 2, 2.0, 1.0)


def test_memory_does_not_grow_with_lines() -> None:
    """Points for the plot and answers of a task are bounded."""
    found = figures(*(line(0, 1, str(each)) for each in range(5000)))
    assert (len(found.points), len(found.tasks[0].answers)) == (2000, 64)


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ({"environment_ref": {"name": "shop", "version": "2"}, "environment": "other"}, "shop"),
        ({"environment_ref": None, "environment": "shop"}, "shop"),
        ({"agent_ref": {"name": "shop_agent"}}, "shop_agent"),
        ({"environment": {"name": "no text"}}, ""),
    ],
)
def test_the_environment_of_a_line(told: dict[str, Any], name: str) -> None:
    """Ours says it in `environment_ref`, a row in `environment`, NeMo Gym's lines by their agent alone."""
    assert environment_of(told) == name
