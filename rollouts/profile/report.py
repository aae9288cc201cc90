"""A profile in words and tables: what a person reads in a terminal, and the same as JSON."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from rich.console import Console
from rich.table import Table

from rollouts.profile.reading import Profile
from rollouts.statistics import CUT_OFF
from wire.figures import Figures
from wire.statistics import Paired, paired

NAMED_TASKS = 5  # too easy or too hard, in the report
ALWAYS_FAILS = 0.9  # of a tool's calls
LENGTH_MATTERS = 0.5  # |r| of reward and length from which the report says so


@dataclass(frozen=True)
class Prices:
    """What tokens cost, per million, in whatever currency the reader thinks in."""

    input: float = 0.0
    output: float = 0.0

    def of(self, figures: Figures) -> float:
        """Cost of all scored rollouts."""
        tokens_in = figures.input_tokens.mean * figures.input_tokens.n
        tokens_out = figures.output_tokens.mean * figures.output_tokens.n
        return (tokens_in * self.input + tokens_out * self.output) / 1e6


@dataclass(frozen=True)
class Comparison:
    """Two models on the tasks of one environment that both played."""

    environment: str
    first: str
    second: str
    result: Paired


def comparisons(profile: Profile) -> Iterator[Comparison]:
    """Every pair of models, the lower mean first: does the stronger one score higher?"""
    for environment in profile.environments:
        means = {
            model: {each.name: each.rewards.mean for each in figures.scored}
            for model, figures in profile.models(environment).items()
        }
        for one, other in combinations(means, 2):
            result = paired(means[one], means[other])
            if result is not None and result.difference.mean < 0:
                one, other = other, one
                result = paired(means[one], means[other])
            if result is not None:
                yield Comparison(environment, one, other, result)


def as_json(profile: Profile, prices: Prices) -> dict[str, Any]:
    """The whole profile."""
    return {
        "files": [str(path) for path in profile.paths],
        "threshold": profile.threshold,
        "environments": [
            {
                "environment": environment,
                "model": model,
                "cost": prices.of(figures),
                "findings": list(findings(figures)),
                **figures.summary(),
                "by_task": [
                    {
                        "task": each.name,
                        "n": each.n,
                        "failed": each.failures,
                        "mean": each.rewards.mean if each.n else None,
                    }
                    for each in figures.tasks.values()
                ],
            }
            for (environment, model), figures in profile.by_key.items()
        ],
        "comparisons": [asdict(each) for each in comparisons(profile)],
    }


def findings(figures: Figures) -> Iterator[str]:
    """What a trainer would otherwise find out a day later, one sentence each."""
    spread = figures.spread_share()
    if spread is not None and spread < 0.2:
        yield f"only {spread:.0%} of the groups have different rewards: the rest teach nothing"
    if not figures.rewards.n:
        yield "no rollout has a reward"
    elif figures.rewards.highest == figures.rewards.lowest and figures.rewards.n > 1:
        yield f"every reward is {figures.rewards.lowest:g}"
    cut = sum(figures.outcomes[each] for each in CUT_OFF)
    if figures.rewards.n and cut / figures.rewards.n > 0.05:
        yield f"{cut / figures.rewards.n:.0%} of the episodes were cut off for their length"
    for name, calls in figures.calls.most_common():
        if calls >= 5 and figures.call_errors[name] / calls >= ALWAYS_FAILS:
            yield f"tool {name}: {figures.call_errors[name]} of {calls} calls failed"
    correlation = figures.length_correlation()
    if correlation is not None and abs(correlation) >= LENGTH_MATTERS and figures.rewards.n >= 20:
        yield f"reward goes with length (r = {correlation:+.2f}): look at what the verifier rewards"
    failed = sum(figures.failures.values())
    if failed > 0.05 * (failed + figures.rewards.n):
        kind, count = figures.failures.most_common(1)[0]
        yield f"{failed} rollouts have no reward, most often {kind} ({count})"


def to_terminal(profile: Profile, prices: Prices, console: Console) -> None:
    """Tables of figures, then findings and comparisons in sentences."""
    console.print(_figures(profile, prices))
    console.print(f"solved: a reward of {profile.threshold:g} or more", markup=False)
    for (environment, model), figures in profile.by_key.items():
        name = f"{environment} / {model}"
        for label, tasks in (("too easy", figures.too_easy()), ("too hard", figures.too_hard())):
            if tasks:
                shown = ", ".join(each.name for each in tasks[:NAMED_TASKS]) + (
                    ", …" if len(tasks) > NAMED_TASKS else ""
                )
                console.print(f"{name}: {len(tasks)} of {len(figures.scored)} tasks {label} ({shown})", markup=False)
        for each in findings(figures):
            console.print(f"{name}: {each}", markup=False)
    for comparison in comparisons(profile):
        console.print(sentence(comparison), markup=False)


def sentence(comparison: Comparison) -> str:
    """One comparison in words."""
    gap, p = comparison.result.difference, comparison.result.p_value
    told = (
        f"{comparison.environment}: {comparison.second} scores {gap.mean:+.3f} against {comparison.first} "
        f"(95% {gap.low:+.3f} to {gap.high:+.3f}, {gap.n} tasks, p = {p:.3g})"
    )
    return (
        told if p < 0.05 else f"{told}: no difference shown; if one of them is clearly stronger, look at the verifier"
    )


def _figures(profile: Profile, prices: Prices) -> Table:
    """One column per environment and model, one row per figure: fits a terminal however many figures there are."""
    table = Table(show_lines=False)
    table.add_column("")
    for environment, model in profile.by_key:
        table.add_column(f"{environment}\n{model}", justify="right", overflow="fold")
    columns = [_column(figures, prices) for figures in profile.by_key.values()]
    for name in dict.fromkeys(name for column in columns for name in column):
        table.add_row(name, *(column.get(name, "-") for column in columns))
    return table


def _column(figures: Figures, prices: Prices) -> dict[str, str]:
    summary = figures.summary()
    low, high = summary["mean_reward_low"], summary["mean_reward_high"]
    return {
        "tasks": str(summary["tasks"]),
        "rollouts": str(summary["rollouts"]),
        "failed": str(summary["failed"]),
        "mean reward over tasks": _number(summary["mean_reward"]),
        "95% interval": "-" if low is None else f"{_number(low)} to {_number(high)}",
        **{f"pass@{k}": _number(value) for k, value in figures.pass_at().items()},
        **{f"pass^{k}": _number(value) for k, value in figures.pass_hat().items() if k > 1},
        "best of a group": _number(summary["best"]),
        "majority answer": _number(summary["majority"]),
        "groups with spread": _share(summary["groups_with_spread"]),
        "too easy / too hard": f"{summary['too_easy']} / {summary['too_hard']}",
        "steps": f"{summary['steps']:.1f}",
        "output tokens": f"{summary['output_tokens']:.0f}",
        "tool errors": _share(summary["tool_error_share"]),
        **({"cost": f"{prices.of(figures):.4g}"} if prices != Prices() else {}),
    }


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
