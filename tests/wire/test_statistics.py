"""Figures against values worked out by hand or by another road."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire import statistics
from wire.statistics import advantages, group_figures, pass_at_k, pass_hat_k

FAILED = None


def test_a_failed_member_is_in_no_mean() -> None:
    """Case F05, G1: rewards 1, 0, failure, 0 have the mean 1/3 over three."""
    rewards = [1.0, 0.0, FAILED, 0.0]
    figures = group_figures(rewards)
    assert (figures.n, figures.n_valid) == (4, 3)
    assert figures.mean == pytest.approx(1 / 3)
    assert advantages(rewards, normalise=False) == [
        pytest.approx(2 / 3),
        pytest.approx(-1 / 3),
        None,
        pytest.approx(-1 / 3),
    ]


def test_equal_rewards_give_zeros() -> None:
    """Case F05, G2; a thirds' worth of rounding is still equal."""
    assert advantages([1.0] * 4) == [0.0] * 4
    assert advantages([1 / 3, 0.1 + 0.7 / 3, 1 / 3]) == [0.0] * 3
    assert group_figures([1.0, 1.0]).zero_variance


def test_a_group_of_failures_has_no_figures() -> None:
    """Case F05, G3 and G4: nothing to compare with."""
    assert group_figures([FAILED] * 4).mean is None
    assert advantages([FAILED, FAILED]) == [None, None]
    assert not group_figures([1.0, FAILED]).zero_variance


@pytest.mark.parametrize("normalise", [True, False])
def test_one_of_eight_that_differs_is_not_blown_up(normalise: bool) -> None:
    """Case F05, G5: no absolute value above 10."""
    assert max(abs(each or 0) for each in advantages([0.35] * 7 + [0.95], normalise=normalise)) < 10


@given(st.lists(st.floats(-1e6, 1e6) | st.none(), max_size=16))
def test_advantages_are_finite_and_bounded(rewards: list[float | None]) -> None:
    """Whatever the rewards."""
    for reward, advantage in zip(rewards, advantages(rewards), strict=True):
        assert (advantage is None) == (reward is None)
        assert advantage is None or abs(advantage) <= statistics.MAX_ADVANTAGE


@pytest.mark.parametrize(("n", "correct", "k"), [(5, 2, 1), (5, 2, 3), (6, 0, 2), (6, 6, 6), (4, 1, 4)])
def test_pass_at_k_is_the_share_of_subsets(n: int, correct: int, k: int) -> None:
    """Counted over every subset of k samples."""
    subsets = list(itertools.combinations([True] * correct + [False] * (n - correct), k))
    assert pass_at_k(n, correct, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
    assert pass_hat_k(n, correct, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))


def test_too_few_samples_give_no_pass_at_k() -> None:
    """A guess would be biased."""
    assert pass_at_k(3, 1, 4) is None


@pytest.mark.parametrize(
    ("p", "degrees", "expected"),
    [(0.975, 1, 12.7062), (0.975, 2, 4.30265), (0.975, 4, 2.77645), (0.975, 10, 2.22814), (0.95, 30, 1.69726)],
)
def test_quantiles_of_student_t(p: float, degrees: int, expected: float) -> None:
    """Against the printed table."""
    assert statistics.student_t(p, degrees) == pytest.approx(expected, rel=3e-3)


def test_the_interval_of_four_values() -> None:
    """Mean 2.5, standard error sqrt(5/3/4), t(3) = 3.1824."""
    interval = statistics.mean_interval([1, 2, 3, 4])
    assert interval is not None
    assert interval.high - 2.5 == pytest.approx(3.1824 * math.sqrt(5 / 12), rel=3e-3)


def test_paired_tasks_are_compared_task_by_task() -> None:
    """Six tasks better and none worse: p is 2 of 64 sign patterns."""
    first = {str(each): 0.0 for each in range(6)}
    result = statistics.paired(first, dict.fromkeys(first, 1.0) | {"other": 0.0})
    assert result is not None
    assert (result.difference.mean, result.better) == (1.0, 6)
    assert result.p_value == pytest.approx(2 / 64)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1))
def test_running_figures_equal_those_of_the_list(values: list[float]) -> None:
    """One pass, constant memory."""
    running = statistics.Running()
    for each in values:
        running.add(each)
    figures = group_figures(values)
    assert figures.mean is not None
    assert figures.std is not None
    assert running.mean == pytest.approx(figures.mean, abs=1e-6)
    assert running.std == pytest.approx(figures.std, abs=1e-6)
