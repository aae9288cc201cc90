"""`trivium export FORMAT ROLLOUTS… --output F`."""

from pathlib import Path
from typing import Annotated

import typer

from rollouts.export.export import export
from rollouts.export.formats import FORMATS
from rollouts.export.reading import Selection
from wire.errors import UsageError
from wire.plugins import nearest

DEFAULT = Selection()


def export_command(
    format_: Annotated[
        str, typer.Argument(metavar="FORMAT", help=", ".join(FORMATS) + "; or `parquet`: tokens, as Parquet.")
    ],
    rollouts: Annotated[list[Path], typer.Argument(help="Rollouts files.")],
    output: Annotated[Path, typer.Option(help="Where to write; a name that ends in .parquet is written as such.")],
    min_valid: Annotated[
        int, typer.Option(help="Leave out groups with fewer rewards (formats with advantages).")
    ] = DEFAULT.min_valid,
    drop_equal: Annotated[bool, typer.Option(help="Leave out groups whose rewards are all equal.")] = False,
    drop_truncated: Annotated[bool, typer.Option(help="Leave out episodes cut off for their length.")] = False,
    any_fidelity: Annotated[bool, typer.Option(help="Also token samples that are not exact, in pieces.")] = False,
    best_of: Annotated[bool, typer.Option(help="Only the best of each group.")] = False,
    min_reward: Annotated[float | None, typer.Option(help="Only rewards from this on (rejection sampling).")] = None,
    min_gap: Annotated[float, typer.Option(help="Pairs: better less worse, at least.")] = DEFAULT.min_gap,
    counted: Annotated[bool, typer.Option(help="Only members that the run's group records count.")] = False,
    normalise: Annotated[bool, typer.Option(help="Divide advantages by the spread of the group.")] = True,
) -> None:
    """Write samples for a trainer. Failed and masked rollouts are never samples; the counts say what was left out and why."""
    name = "tokens" if format_ == "parquet" else format_
    if name not in FORMATS:
        raise UsageError(f"there is no format {format_!r}{nearest(format_, [*FORMATS, 'parquet'])}")
    target = (
        output if format_ != "parquet" or output.suffix == ".parquet" else output.with_name(output.name + ".parquet")
    )
    selection = Selection(
        min_valid, drop_equal, drop_truncated, any_fidelity, best_of, min_reward, min_gap, normalise, counted
    )
    tally = export(FORMATS[name], rollouts, target, selection)
    typer.echo(f"{tally.records} records of {tally.exported} rollouts -> {target}")
    for reason, count in tally.left_out.most_common():
        if count:
            typer.echo(f"left out: {count} {reason}")
    for fault in tally.faults:
        typer.echo(fault, err=True)
