"""`trivium diff A B`: two runs compared task by task."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from rollouts.diff import FLIPPED_NAMED, EnvironmentDiff, diff
from wire.figures import SOLVED

SHOWN_CHARACTERS = 60  # of a setting's value


def diff_command(
    first: Annotated[Path, typer.Argument(help="A rollouts file.")],
    second: Annotated[Path, typer.Argument(help="Another one.")],
    solved: Annotated[float, typer.Option(help="Reward from which a task counts as solved.")] = SOLVED,
) -> None:
    """Paired difference with an interval, tasks that flipped, and what else changed: settings, steps, tokens, failures."""
    found = diff(first, second, solved)
    console = Console()
    for each in found.environments:
        console.print(_table(each))
        console.print(_sentence(each), markup=False)
        for label, tasks in (("won", each.won), ("lost", each.lost)):
            if tasks:
                more = ", …" if len(tasks) > FLIPPED_NAMED else ""
                console.print(f"{label} ({len(tasks)}): {', '.join(tasks[:FLIPPED_NAMED])}{more}", markup=False)
    for path, one, other in found.settings:
        console.print(f"changed: {path}: {_short(one)} -> {_short(other)}", markup=False)


def _table(each: EnvironmentDiff) -> Table:
    table = Table(title=each.environment, title_justify="left")
    for name in ("", "tasks", "rollouts", "failed", "mean reward", "steps", "tokens out", "tool errors"):
        table.add_column(name, justify="left" if not name else "right")
    for label, figures in (("first", each.first), ("second", each.second)):
        summary = figures.summary()
        errors, mean = summary["tool_error_share"], summary["mean_reward"]
        table.add_row(
            label,
            str(summary["tasks"]),
            str(summary["rollouts"]),
            str(summary["failed"]),
            "-" if mean is None else f"{mean:.4f}",
            f"{summary['steps']:.2f}",
            f"{summary['output_tokens']:.0f}",
            "-" if errors is None else f"{errors:.1%}",
        )
    return table


def _sentence(each: EnvironmentDiff) -> str:
    if each.result is None:
        return "no task is in both runs"
    gap, result = each.result.difference, each.result
    return (
        f"second less first: {gap.mean:+.4f} (95% {gap.low:+.4f} to {gap.high:+.4f}) over {gap.n} tasks, p = {result.p_value:.3g}; "
        f"{result.better} better, {result.worse} worse, {result.equal} equal"
    )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
