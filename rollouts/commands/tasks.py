"""`trivium tasks CONFIG`: more tasks for an environment."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from rollouts.commands.arguments import split
from rollouts.tasks import sift, table
from rollouts.tasks.make import Made, Order, make
from wire import jsonl
from wire.errors import UsageError

TOLD = 10  # of the tasks that did not become one


def tasks(
    arguments: Annotated[
        list[str], typer.Argument(metavar="CONFIG [KEY=VALUE…]", help="A config file or bundled name.")
    ],
    output: Annotated[Path, typer.Option(help="Where the tasks go, JSON lines; must not exist.")],
    count: Annotated[int, typer.Option(min=0, help="Draw so many from the environment's templates.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 0,
    input_: Annotated[
        Path | None, typer.Option("--input", help="Start from these rows; else from the config's.")
    ] = None,
    paraphrase: Annotated[int, typer.Option(min=0, help="Have the model reword each task so many times.")] = 0,
    propose: Annotated[int, typer.Option(min=0, help="Have the model propose so many new tasks.")] = 0,
    solves: Annotated[int, typer.Option(min=1, help="Independent solves that a proposed task is put to.")] = 3,
    rollouts: Annotated[Path | None, typer.Option(help="Keep tasks by their pass rate in this rollouts file.")] = None,
    at_least: Annotated[float, typer.Option(help="Lowest pass rate kept.")] = 0.05,
    at_most: Annotated[float, typer.Option(help="Highest pass rate kept.")] = 0.95,
    validation: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of templates held out, into OUTPUT_validation.jsonl.")
    ] = 0.0,
    seeds: Annotated[
        Path | None,
        typer.Option(help="Also write the tasks as a table (.csv, .jsonl, .parquet), for NeMo Data Designer."),
    ] = None,
    results: Annotated[Path | None, typer.Option(help="Start from a table that was made of such seeds.")] = None,
    column: Annotated[str, typer.Option(help="Its column with the new prompts.")] = "paraphrase",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Same as a bare KEY=VALUE.")
    ] = None,
) -> int:
    """Make tasks: drawn from templates, reworded or proposed by a model; each proven by carrying out its solution; no two alike."""
    configs, overrides = split(arguments, set_)
    if len(configs) != 1:
        raise UsageError("tasks: name one config, a file or a bundled one such as `reasoning`")
    held_out = output.with_name(f"{output.stem}_validation{output.suffix}")
    for path in (output, *([held_out] if validation else ()), *([seeds] if seeds else ())):
        if path.exists():
            raise UsageError(f"{path} exists; name another file")
    order = Order(
        count,
        seed,
        input_,
        (results, column) if results else None,
        paraphrase,
        propose,
        solves,
        rollouts,
        (at_least, at_most),
    )
    made = asyncio.run(make(configs[0], overrides, order, _report))
    train, kept_back = sift.split(made.rows, validation) if validation else (made.rows, [])
    _write(output, train)
    if validation:
        _write(held_out, kept_back)
    if seeds is not None:
        _report(f"{table.write(train, seeds)} lines -> {seeds}")
    _tell(made)
    return 0 if made.rows else 1


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    count = 0
    with jsonl.Appender(path) as out:
        for row in rows:
            out.append(row)
            count += 1
    _report(f"{count} tasks -> {path}")


def _tell(made: Made) -> None:
    for sentence in made.dropped[:TOLD]:
        _report(f"dropped: {sentence}")
    if len(made.dropped) > TOLD:
        _report(f"dropped: {len(made.dropped) - TOLD} more")


def _report(sentence: str) -> None:
    typer.echo(sentence, err=True)
