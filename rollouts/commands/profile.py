"""`trivium profile ROLLOUTS…`: is the reward signal any good?"""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rollouts.profile.page import page
from rollouts.profile.reading import read
from rollouts.profile.report import Prices, as_json, to_terminal
from wire.errors import UsageError
from wire.figures import SOLVED


def profile(
    rollouts: Annotated[list[Path], typer.Argument(help="Rollouts files; each one's failures file is read with it.")],
    solved: Annotated[float, typer.Option(help="Reward from which a rollout counts as solved.")] = SOLVED,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all figures as JSON; - for the terminal.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page with plots.")] = None,
    price_input: Annotated[float, typer.Option(help="Per million input tokens.")] = 0.0,
    price_output: Annotated[float, typer.Option(help="Per million output tokens.")] = 0.0,
) -> None:
    """Figures per environment and model: means with intervals, pass@k, spread, outcomes, tools, cost; models compared task by task."""
    for option, path, ending in (("--json", json_file, ".json"), ("--html", html, ".html")):
        if path is not None and str(path) != "-" and path.suffix != ending:
            raise UsageError(f"{option} {path}: the file's name should end in {ending}")
    found = read(rollouts, solved)
    prices = Prices(price_input, price_output)
    if json_file is not None:
        text = json.dumps(as_json(found, prices), ensure_ascii=False, indent=1)
        if str(json_file) == "-":
            typer.echo(text)
            return
        json_file.write_text(text + "\n", encoding="utf-8")
    if html is not None:
        html.write_text(page(found, prices), encoding="utf-8")
    to_terminal(found, prices, Console())
