"""What a run came to: every rollout that was asked for is in one of three counts, and the lines explain the rest."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rollouts.keys import Counts
from rollouts.statistics import Statistics


@dataclass(frozen=True)
class Tick:
    """How far a run is.

    Attributes:
        done: Rollouts that need nothing more, earlier runs' included; never above `total`.
        total: Tasks x repeats.
        in_flight: Started and not ended.
        mean_reward: Of all rollouts with a verdict; None before the first.
        tokens_per_s: Output tokens of this run's rollouts by its seconds.
        left_s: Until the end, at the pace so far; None before the first end.
    """

    done: int
    total: int
    ok: int
    failed: int
    in_flight: int = 0
    mean_reward: float | None = None
    tokens_per_s: float = 0.0
    seconds: float = 0.0
    left_s: float | None = None


@dataclass(frozen=True)
class EnvironmentSummary:
    """One environment's part of a run."""

    name: str
    counts: Counts
    statistics: Statistics


@dataclass(frozen=True)
class Summary:
    """The whole output, earlier runs' lines included.

    Attributes:
        counts: ok + failed + missing = tasks x repeats; `extra` stands beside it.
        kinds: Of the rollouts that stay failed, by the kind of their last attempt.
        environments: The same by environment.
        ran: Attempts that ended in this run.
        cancelled: Rollouts in flight that were given up: an interruption, or a group that had enough.
        groups: Groups closed, by what became of them.
        findings: One line each, what a person would otherwise find a day later.
        stopped: Why the run ended before everything was tried; None if it did not.
        interrupted: It was asked to stop.
    """

    output: Path
    run_id: str
    tasks: int
    counts: Counts
    kinds: Counter[str]
    statistics: Statistics
    environments: Sequence[EnvironmentSummary]
    seconds: float
    ran: int = 0
    retried: int = 0
    cancelled: int = 0
    outside: int = 0  # lines of tasks or repeats that this run did not ask for
    groups: Counter[str] = field(default_factory=Counter)
    findings: Sequence[str] = ()
    stopped: str | None = None
    interrupted: bool = False

    @property
    def line(self) -> str:
        """`7 ok, 3 failed, 0 missing`."""
        return f"{self.counts.ok} ok, {self.counts.failed} failed, {self.counts.missing} missing"

    @property
    def exit_code(self) -> int:
        """0 only if none failed and none is missing; an interruption's own code is the caller's."""
        return 1 if self.counts.failed or self.counts.missing else 0
