"""`trivium reverify`: verdicts again from stored lines, and a table of what changed."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from rollouts.reverify import Outcome, reverify
from rollouts.stack import sections
from wire import config, jsonl
from wire.errors import UsageError


def reverify_command(
    rollouts: Annotated[list[Path], typer.Argument(help="Rollouts or failures files.")],
    environment: Annotated[
        str | None, typer.Option(help="Judge with this environment; by default each line's own.")
    ] = None,
    config_file: Annotated[
        str | None, typer.Option("--config", help="Take environment and options from a config.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write the lines with their new verdicts.")] = None,
    show: Annotated[bool, typer.Option(help="Name the first changes one by one.")] = True,
) -> int:
    """Judge stored episodes again, on a changed verifier, without servers or models. Exits 1 where a verdict was lost."""
    options = None
    if config_file is not None:
        section = config.load(config_file, [], sections()).data.get("resources_server") or {}
        environment, options = environment or section.get("environment"), section.get("options")
    if output is not None and output.exists():
        raise UsageError(f"{output} exists; name another file for the new lines")
    if output is None:
        outcomes = reverify(rollouts, environment=environment, options=options)
    else:
        with jsonl.Appender(output) as out:
            outcomes = reverify(rollouts, environment=environment, options=options, write=out.append)
    _print(outcomes, Console(), show=show)
    return 1 if any(outcome.lost for outcome in outcomes.values()) else 0


def _print(outcomes: dict[str, Outcome], console: Console, *, show: bool) -> None:
    table = Table()
    for name in ("environment", "same", "higher", "lower", "gained", "lost", "not judged", "mean before", "mean after"):
        table.add_column(name, justify="left" if name == "environment" else "right")
    for name, each in outcomes.items():
        counts = (
            each.same,
            each.higher,
            each.lower,
            each.gained,
            sum(each.lost.values()),
            sum(each.not_judged.values()),
        )
        means = (f"{running.mean:.4f}" if running.n else "-" for running in (each.before, each.after))
        table.add_row(name, *map(str, counts), *means)
    console.print(table)
    for each in outcomes.values():
        for reason, count in (each.not_judged + each.lost).items():
            console.print(f"{count} lines: {reason}", markup=False)
        for change in each.changes if show else ():
            console.print(
                f"{change.place}: {change.before} -> {change.after} {change.reason or ''}".rstrip(), markup=False
            )
