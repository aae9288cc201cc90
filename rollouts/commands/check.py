"""`trivium check CONFIG`: whether an environment is fit to train on, as a card."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from rollouts.check.card import Card
from rollouts.check.examine import PROBES
from rollouts.check.served import cards
from rollouts.commands.arguments import split
from wire import strict_json
from wire.errors import UsageError

UNFIT = 1
STYLES = {"ok": "green", "fault": "bold red", "waived": "yellow", "not tried": "dim"}


def check(
    arguments: Annotated[
        list[str], typer.Argument(metavar="CONFIG… [KEY=VALUE…]", help="Config files or bundled names.")
    ],
    rows: Annotated[int, typer.Option(min=1, help="Rows to try, spread over the data set.")] = 8,
    input_: Annotated[Path | None, typer.Option("--input", help="Rows in place of the config's own.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Only this probe; may be given again.")] = None,
    json_: Annotated[Path | None, typer.Option("--json", help="Write the cards as JSON.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the cards as Markdown.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Same as a bare KEY=VALUE.")
    ] = None,
) -> int:
    """Is this environment fit to train on? Exits 1 when it is not, naming each fault.

    The reference solution is played against the real resources server, and with it everything that should earn less or the same.
    """
    configs, overrides = split(arguments, set_)
    known = [probe.name for probe in PROBES]
    for name in only or ():
        if name not in known:
            raise UsageError(f"there is no probe {name!r} (have: {', '.join(known)})")
    found = asyncio.run(cards(configs, overrides, rows=rows, given=input_, only=only or ()))
    console = Console()
    for card in found:
        _print(card, console)
    if json_ is not None:
        json_.write_bytes(strict_json.dumps([card.as_json() for card in found]) + b"\n")
    if markdown is not None:
        markdown.write_text("\n".join(card.as_markdown() for card in found), encoding="utf-8")
    return 0 if all(card.fit for card in found) else UNFIT


def _print(card: Card, console: Console) -> None:
    under = ", under augmentation" if card.augmented else ""
    table = Table(title=f"{card.environment} (version {card.version}), {card.rows} rows{under}", title_justify="left")
    table.add_column("probe")
    table.add_column("result")
    table.add_column("trials", justify="right")
    table.add_column("what it shows")
    for line in (each for each in card.lines if each.status != "not tried" or not card.augmented):
        table.add_row(line.probe, f"[{STYLES[line.status]}]{line.status}[/]", str(line.trials), line.explains)
    console.print(table)
    for line in card.lines:
        for fault in line.faults:
            console.print(f"{line.probe}: {fault}", markup=False, style="red", soft_wrap=True)
        for name, reason in line.waived.items():
            console.print(f"waived, {name}: {reason}", markup=False, soft_wrap=True)
    for note in card.notes:
        console.print(note, markup=False, soft_wrap=True)
    console.print(
        "fit to train on" if card.fit else "NOT fit to train on", style="bold green" if card.fit else "bold red"
    )
