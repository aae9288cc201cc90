"""`trivium new NAME`: a working environment to write one's own from."""

import importlib.util
import keyword
import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from wire.config import bundled_configs
from wire.errors import UsageError

STARTERS = Path(__file__).parents[1] / "starters"
AGENTS = {"tools": None, "game": "gym", "answer": "single_turn"}
TAKEN = ("Call", "Environment", "Field", "Game", "Response", "Step", "Task", "Verdict")  # classes that the files import
OPTIONS = {"game": "  options: {action_schema: {type: integer}}\n"}  # an answer in text is read as what an action is

IGNORED = "/results/\n/runs/\n__pycache__/\n.pytest_cache/\n"  # where `trivium collect` and the guides write


def new(
    name: Annotated[str, typer.Argument(help="Small letters, digits and underscores, as for a Python module.")],
    kind: Annotated[
        Literal["tools", "game", "answer"],
        typer.Option(help="A world with tools, a game played move by move, or questions with an answer."),
    ] = "tools",
) -> None:
    """Write a working environment into this folder: its class, config, five rows and a test, and a .gitignore where there is none.

    Nothing is overwritten.
    """
    _refuse_bad_name(name)
    files = contents(name, kind)
    if there := [path for path in files if Path(path).exists()]:
        raise UsageError(f"{', '.join(there)} exists already; choose another name, or move it away")
    if not Path(".gitignore").exists():  # somebody's own stays as it is
        files[".gitignore"] = IGNORED
    for path, text in files.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
        typer.echo(path)
    typer.echo(f"next: trivium check configs/{name}.yaml; pytest test_{name}.py; trivium collect configs/{name}.yaml")


def contents(name: str, kind: str) -> dict[str, str]:
    """Path -> text of the files of a new environment."""
    read = {
        each: (STARTERS / kind / each).read_text(encoding="utf-8")
        for each in ("environment.txt", "rows.jsonl", "test.txt")
    }
    return {
        f"{name}.py": _named(read["environment.txt"], name),
        f"configs/{name}.yaml": config(name, kind),
        f"data/{name}/example.jsonl": _named(read["rows.jsonl"], name),
        f"test_{name}.py": _named(read["test.txt"], name),
    }


def config(name: str, kind: str) -> str:
    """The config over `base.yaml`."""
    agent = f"agent_server:\n  agent: {AGENTS[kind]}\n{OPTIONS.get(kind, '')}" if AGENTS[kind] else ""
    return (
        f"extends: base.yaml\nresources_server:\n  environment: {name}:{class_name(name)}\n{agent}"
        f"rollouts:\n  dataset: data/{name}/example.jsonl\n"
    )


def class_name(name: str) -> str:
    """`MyWorld` of `my_world`."""
    return "".join(part.capitalize() for part in name.split("_"))


def _named(text: str, name: str) -> str:
    return re.sub(r"\bDemo(?=Task\b|\b)", class_name(name), re.sub(r"\bdemo\b", name, text))


def _refuse_bad_name(name: str) -> None:
    if keyword.iskeyword(name) or class_name(name) in TAKEN:
        raise UsageError(
            f"{name!r} means something already in Python or in an environment's module; choose another name"
        )
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise UsageError(
            f"{name!r} is no name for a module: small letters, digits and single underscores, such as my_world"
        )
    if name in bundled_configs():
        raise UsageError(f"{name!r} is a bundled environment; choose another name")
    if importlib.util.find_spec(name) is not None and not Path(f"{name}.py").exists():
        raise UsageError(f"{name!r} is the name of a module that Python has already; choose another one")
