"""`trivium models pull|list`: the small models that run on this machine. What they are is the model interface's to know."""

import importlib
from typing import Annotated, Any

import typer

app = typer.Typer(
    add_completion=False, no_args_is_help=True, rich_markup_mode=None, help="The small models that run on this machine."
)


def _models() -> Any:
    # By name: the collector imports no server's modules.
    return importlib.import_module("model_interface.models")


@app.command()
def pull(
    name: Annotated[str | None, typer.Argument(help="Which one; the default model when left out.")] = None,
) -> None:
    """Fetch a model and check its digest; print where it lies."""
    models = _models()
    typer.echo(str(models.pull(name) if name else models.pull()))


@app.command("list")
def list_() -> None:
    """Print the models that can be pulled, and where those are that have been."""
    models = _models()
    for model in models.catalogue():
        path = models.path_of(model.name)
        typer.echo(f"{model.name}  {model.bytes / 1e6:.0f} MB, {model.license}: {model.summary}")
        typer.echo(f"  {path}" if path else f"  not here yet: trivium models pull {model.name}")
