"""`trivium version`."""

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from typing import Annotated

import typer


def version(
    packages: Annotated[bool, typer.Option("--packages", help="Also the packages that a report should name.")] = False,
) -> None:
    """Print the version, and on request those of what it runs on."""
    typer.echo(f"trivium {_of('trivium')}")
    if packages:
        typer.echo(f"python {platform.python_version()}")
        for name in ("aiohttp", "fastapi", "openai", "omegaconf", "pydantic", "sqlalchemy", "uvicorn", "xllamacpp"):
            typer.echo(f"{name} {_of(name)}")


def _of(name: str) -> str:
    try:
        return installed(name)
    except PackageNotFoundError:
        return "not installed" if name != "trivium" else "0+source"
