"""Two runs side by side: what they scored on the same tasks, which tasks flipped, and what else is different about them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollouts.fingerprint import Record, differences
from rollouts.journal import beside
from rollouts.profile.reading import Profile, read
from wire.errors import UsageError
from wire.figures import SOLVED, Figures
from wire.statistics import Paired, paired

FLIPPED_NAMED = 20


@dataclass(frozen=True)
class EnvironmentDiff:
    """One environment in both runs."""

    environment: str
    first: Figures
    second: Figures
    result: Paired | None
    """None where no task is in both."""
    won: list[str]
    """Tasks whose mean reward came to the threshold in the second run only."""
    lost: list[str]
    """In the first run only."""


@dataclass(frozen=True)
class Diff:
    """Two runs."""

    environments: list[EnvironmentDiff]
    settings: list[tuple[str, Any, Any]]
    """What the fingerprints of the runs say differently: path, first, second."""


def diff(first: Path, second: Path, threshold: float = SOLVED) -> Diff:
    """Compare two rollouts files.

    Raises:
        UsageError: a file cannot be read, or the two have no environment in common.
    """
    profiles = read([first], threshold), read([second], threshold)
    one, other = (_by_environment(profile, threshold) for profile in profiles)
    common = [name for name in one if name in other]
    if not common:
        raise UsageError(
            f"{first} has {', '.join(one) or 'no lines'}; {second} has {', '.join(other) or 'no lines'}: nothing to compare"
        )
    return Diff(
        [_environment(name, one[name], other[name], threshold) for name in common],
        list(differences(settings_of(first), settings_of(second))),
    )


def _by_environment(profile: Profile, threshold: float) -> dict[str, Figures]:
    """One set of figures per environment; a run has one model, so the first stands for it."""
    found: dict[str, Figures] = {}
    for (environment, model), figures in profile.by_key.items():
        if environment in found and figures.rewards.n:
            raise UsageError(
                f"{profile.paths[0]}: environment {environment} was played by several models ({model} is one): use profile"
            )
        if figures.rewards.n or environment not in found:
            found[environment] = figures
    return found


def _environment(name: str, first: Figures, second: Figures, threshold: float) -> EnvironmentDiff:
    one, other = ({each.name: each.rewards.mean for each in figures.scored} for figures in (first, second))
    both = [task for task in one if task in other]
    return EnvironmentDiff(
        name,
        first,
        second,
        paired(one, other),
        won=[task for task in both if one[task] < threshold <= other[task]],
        lost=[task for task in both if other[task] < threshold <= one[task]],
    )


def settings_of(path: Path) -> dict[str, Any]:
    """The fingerprint that `collect` left beside the file; empty where there is none."""
    try:
        run = Record(beside(path, "_run.json"), beside(path, "_run.rows")).load()
    except (OSError, UsageError):
        return {}
    return run.fingerprint if run is not None else {}
