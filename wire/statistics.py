"""Figures over rewards, in one place: what `/aggregate_metrics`, the summary, `profile` and the exporters say is the same number.

Pure functions over plain floats. A member of a group without a verdict is `None`: it is in no mean and counts for nothing else.
"""

import math
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, pstdev

CONFIDENCE = 0.95
LARGE = 1e150  # beyond it squares and differences leave the range of floats
EQUAL_SPREAD = 1e-9  # relative; rewards this close are equal, and what is left is rounding
MIN_STD = 1e-4  # added under a normalised advantage, as GRPO implementations do, so that tiny spreads are not blown up
MAX_ADVANTAGE = 10.0  # the largest absolute value a normalised advantage may take
PERMUTATIONS = 10_000
EXACT_PAIRS = 13  # up to 2^13 sign patterns are counted rather than drawn


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval."""

    mean: float
    low: float
    high: float
    n: int
    """How many independent values stand behind it (tasks, not rollouts)."""


def mean(values: Sequence[float]) -> float:
    """Of at least one finite number; finite itself, however large they are."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.fsum(each / len(values) for each in values)


def spread(values: Sequence[float]) -> float:
    """Population standard deviation of at least one finite number; finite itself."""
    scale = max(map(abs, values))
    return pstdev(values) if scale < LARGE else scale * pstdev([each / scale for each in values])


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Mean of independent values with a Student-t interval; None for no values, infinitely wide for one."""
    n = len(values)
    if n == 0:
        return None
    middle = mean(values)
    if n == 1:
        return Interval(middle, -math.inf, math.inf, 1)
    reach = student_t(0.5 + confidence / 2, n - 1) * (spread(values) / math.sqrt(n - 1))
    return Interval(middle, middle - reach, middle + reach, n)


def student_t(p: float, degrees: int) -> float:
    """Quantile of Student's t distribution.

    Exact for one and two degrees; above, the normal quantile with the Cornish-Fisher expansion to the fourth order, which is within
    0.3% from three degrees on. Source: Abramowitz and Stegun, 26.7.5.
    """
    if degrees == 1:
        return math.tan(math.pi * (p - 0.5))
    if degrees == 2:
        return (2 * p - 1) / math.sqrt(2 * p * (1 - p))
    z = NormalDist().inv_cdf(p)
    v = float(degrees)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / v**power for power, term in enumerate(terms, 1))


def pass_at_k(n: int, correct: int, k: int) -> float | None:
    """Chance that at least one of k samples is right, unbiased; None where fewer than k were drawn.

    Source: Chen et al. 2021 (arXiv 2107.03374), equation 1.
    """
    return None if n < k else 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def pass_hat_k(n: int, correct: int, k: int) -> float | None:
    """Chance that all of k samples are right, unbiased; None where fewer than k were drawn.

    Source: Yao et al. 2024 (arXiv 2406.12045, tau-bench), pass^k.
    """
    return None if n < k else math.comb(correct, k) / math.comb(n, k)


@dataclass(frozen=True)
class GroupFigures:
    """What the rewards of one group say."""

    n: int
    n_valid: int
    mean: float | None
    std: float | None
    """Population standard deviation, over the valid members."""
    zero_variance: bool
    """All valid rewards are equal: the group teaches nothing. False below two valid members."""


def group_figures(rewards: Sequence[float | None]) -> GroupFigures:
    """Figures over the members that have a reward."""
    valid = [each for each in rewards if each is not None]
    if not valid:
        return GroupFigures(len(rewards), 0, None, None, False)
    return GroupFigures(len(rewards), len(valid), mean(valid), spread(valid), len(valid) > 1 and _equal(valid))


def advantages(rewards: Sequence[float | None], *, normalise: bool = True) -> list[float | None]:
    """Each valid reward less the mean of the valid ones; divided by their spread where asked for.

    Equal rewards give zeros, never rounding residue; no absolute value passes `MAX_ADVANTAGE` when normalised. A member without a
    reward has no advantage. Source: GRPO, arXiv 2402.03300.
    """
    valid = [each for each in rewards if each is not None]
    if not valid:
        return [None] * len(rewards)
    if _equal(valid):
        return [None if each is None else 0.0 for each in rewards]
    middle, scale = mean(valid), (spread(valid) + MIN_STD if normalise else 1.0)
    return [None if each is None else _clip(_finite(each - middle) / scale, normalise) for each in rewards]


@dataclass(frozen=True)
class Paired:
    """Two measurements of the same tasks, compared task by task."""

    difference: Interval
    """Mean of second less first."""
    p_value: float
    """Two-sided, by random sign flips: chance of a mean difference at least as large if neither were better."""
    better: int
    worse: int
    equal: int


def paired(first: Mapping[str, float], second: Mapping[str, float], seed: int = 0) -> Paired | None:
    """Compare by the tasks that both have; None where there is none."""
    differences = [second[key] - first[key] for key in first if key in second]
    interval = mean_interval(differences)
    if interval is None:
        return None
    return Paired(
        interval,
        _sign_flip_p(differences, seed),
        better=sum(each > 0 for each in differences),
        worse=sum(each < 0 for each in differences),
        equal=sum(each == 0 for each in differences),
    )


class Running:
    """Count, mean and spread of a stream, in constant memory. Source: Welford 1962."""

    __slots__ = ("_m2", "highest", "lowest", "mean", "n")

    def __init__(self) -> None:
        self.n = 0
        self.mean = 0.0
        self._m2 = 0.0
        self.lowest = math.inf
        self.highest = -math.inf

    def add(self, value: float) -> None:
        """One more value."""
        self.n += 1
        step = _finite(value - self.mean)
        self.mean += value / self.n - self.mean / self.n if abs(step) > LARGE else step / self.n
        self._m2 = _finite(self._m2 + step * _finite(value - self.mean))
        self.lowest, self.highest = min(self.lowest, value), max(self.highest, value)

    @property
    def std(self) -> float:
        """Population standard deviation; 0 for fewer than two values."""
        return math.sqrt(self._m2 / self.n) if self.n > 1 else 0.0


def _finite(value: float) -> float:
    """The largest number there is in place of what passes it."""
    return max(-sys.float_info.max, min(sys.float_info.max, value))


def _equal(values: Sequence[float]) -> bool:
    low, high = min(values), max(values)
    return high - low <= EQUAL_SPREAD * max(1.0, abs(low), abs(high))


def _clip(value: float, normalise: bool) -> float:
    return max(-MAX_ADVANTAGE, min(MAX_ADVANTAGE, value)) if normalise else value


def _sign_flip_p(differences: Sequence[float], seed: int) -> float:
    """Sign-flip permutation test; exact for few pairs."""
    moved = [each for each in differences if each]
    if not moved:
        return 1.0
    target = abs(math.fsum(moved)) * (1 - 1e-12)
    if len(moved) <= EXACT_PAIRS:
        patterns = range(1 << len(moved))
        hits = sum(abs(sum(-x if mask >> i & 1 else x for i, x in enumerate(moved))) >= target for mask in patterns)
        return hits / len(patterns)
    draw = random.Random(seed)
    hits = sum(
        abs(sum(x if bits >> i & 1 else -x for i, x in enumerate(moved))) >= target
        for bits in (draw.getrandbits(len(moved)) for _ in range(PERMUTATIONS))
    )
    return (hits + 1) / (PERMUTATIONS + 1)
