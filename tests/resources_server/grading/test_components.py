"""Composite rewards: named, weighted, and they add up."""

from typing import Any

import pytest

from resources_server.grading import right, wrong
from resources_server.grading.components import Components

WORDLE = Components({"correct": 1.0, "greens": 0.2, "yellows": 0.1, "repetition": -0.5})


def test_components_are_weighted_and_sum_to_the_reward() -> None:
    """Raw values are metrics; the weighted ones are what trainers take."""
    verdict = WORDLE.verdict({"correct": True, "greens": 0.6, "yellows": 0.4, "repetition": 1}, metrics={"turns": 3})
    assert verdict.reward_components == {
        "correct": 1.0,
        "greens": pytest.approx(0.12),
        "yellows": pytest.approx(0.04),
        "repetition": -0.5,
    }
    assert verdict.reward == sum(verdict.reward_components.values())
    assert verdict.metrics == {"correct": 1.0, "greens": 0.6, "yellows": 0.4, "repetition": 1.0, "turns": 3}


def test_grades_may_be_components() -> None:
    """Their reasons are told."""
    verdict = Components({"a": 0.5, "b": 0.5}).verdict({"a": right("fine"), "b": wrong("not fine")})
    assert (verdict.reward, verdict.reason) == (0.5, "a: fine; b: not fine")


@pytest.mark.parametrize("found", [{}, {"a": 1, "c": 1}, {"a": 1, "b": 1, "c": 1}, {"a": float("nan"), "b": 1}])
def test_missing_unknown_and_infinite_components_are_mistakes(found: dict[str, Any]) -> None:
    """Never silently zero."""
    with pytest.raises(ValueError, match="component"):
        Components({"a": 1, "b": 1}).verdict(found)


@pytest.mark.parametrize("weights", [{}, {"a": float("inf")}, {"a": True}])
def test_weights_are_finite_numbers(weights: dict[str, Any]) -> None:
    """Said when the config is read."""
    with pytest.raises(ValueError, match=r"weight|component"):
        Components(weights)
