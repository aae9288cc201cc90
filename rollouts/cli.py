"""The command `trivium`: finds the command that was asked for, and turns what it raises into one line and an exit status.

Each command lives in its own module and is imported when it is called, so that `trivium --help` answers at once. To add one, write
a function with typer's annotations (or a `typer.Typer` with several) and give it a line in `COMMANDS`.
"""

import difflib
import importlib
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

OK, SOME_FAILED, USAGE, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143


@dataclass(frozen=True)
class Entry:
    """A command that can be called."""

    target: str  # "module:attribute", a function or a typer.Typer
    help: str


COMMANDS: dict[str, Entry] = {
    "collect": Entry("rollouts.commands.collect:collect", "Play rows, score them, write one JSON line per rollout."),
    "serve": Entry("rollouts.commands.serve:serve", "Run the servers until stopped."),
    "stream": Entry(
        "rollouts.commands.stream:stream", "Hand out complete groups over HTTP while a trainer changes weights."
    ),
    "export": Entry(
        "rollouts.commands.export:export_command", "Write samples for a trainer: TRL, Unsloth, NeMo RL, veRL, …"
    ),
    "profile": Entry(
        "rollouts.commands.profile:profile", "Is the reward signal any good? Figures over rollouts files."
    ),
    "reverify": Entry(
        "rollouts.commands.reverify:reverify_command", "Judge stored episodes again, without servers or models."
    ),
    "check": Entry(
        "rollouts.commands.check:check", "Is an environment fit to train on? Tries to cheat it; prints a card."
    ),
    "new": Entry("rollouts.commands.new:new", "Write a working environment to start from: class, config, rows, test."),
    "tasks": Entry("rollouts.commands.tasks:tasks", "Make tasks: from templates or a model, each proven by execution."),
    "diff": Entry("rollouts.commands.diff:diff_command", "Compare two runs task by task."),
    "config": Entry("rollouts.commands.config:config", "Print the resolved config, secrets masked."),
    "models": Entry("rollouts.commands.models:app", "Fetch and list the small models that run on this machine."),
    "version": Entry("rollouts.commands.version:version", "Print the version."),
}


def main(arguments: list[str] | None = None) -> NoReturn:
    """The console script: runs a command and exits with its status."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        status = run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:  # `trivium config x | head`
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - what the interpreter flushes at its end
        status = SOME_FAILED
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # while the interpreter ends, either would kill it, with a status of its own
        signal.signal(number, signal.SIG_IGN)
    sys.exit(status)


def run(arguments: list[str]) -> int:
    """Run one command line; what is wrong with it is one line on stderr."""
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        print(_help())
        return OK if arguments else USAGE
    name, *rest = ["version", *arguments[1:]] if arguments[0] in ("--version", "-V") else arguments
    if name not in COMMANDS:
        return _say(f"there is no command {name!r}{_hint(name)}: see trivium --help")
    _see_the_working_folder()
    return _invoke(name, rest)


def _invoke(name: str, arguments: list[str]) -> int:
    import typer

    from wire.errors import TriviumError, UsageError

    # typer carries its own copy of click in newer versions, so the class is taken from typer itself.
    click_error: type[Any] = next(each for each in typer.BadParameter.__mro__ if each.__name__ == "ClickException")
    try:
        result = command(name)(arguments, prog_name=f"trivium {name}", standalone_mode=False)
    except UsageError as error:
        return _say(str(error))
    except TriviumError as error:
        return _say(str(error), SOME_FAILED)
    except click_error as error:
        return _say(f"{name}: {error.format_message().strip()} (see trivium {name} --help)")
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        place = f"{error.filename}: " if error.filename else ""
        return _say(f"{name}: {place}{error.strerror or error}", SOME_FAILED)
    return result if isinstance(result, int) else OK


def command(name: str) -> Any:
    """The click command behind a name."""
    import typer

    module, _, attribute = COMMANDS[name].target.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name)(found)
    return typer.main.get_command(app)


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {entry.help}" for name, entry in COMMANDS.items()]
    return "\n".join(
        [
            "Usage: trivium COMMAND [ARGUMENTS]",
            "",
            "Environments for LLM agents: scored, tool-calling rollouts as JSON lines.",
            "",
            "Commands:",
            *lines,
            "",
            "trivium COMMAND --help says more. A config is a file or a bundled name, such as `workplace`;",
            "any key of it can be set on the command line: `trivium collect counter rollouts.repeats=4`.",
        ]
    )


def _hint(name: str) -> str:
    close = difflib.get_close_matches(name, list(COMMANDS), 1)
    return f", did you mean {close[0]!r}" if close else ""


def _say(message: str, status: int = USAGE) -> int:
    print(f"trivium: {message}", file=sys.stderr)
    return status


def _see_the_working_folder() -> None:
    """Worlds named by a dotted path may lie where the command is called, as for `python -m`; installed packages come first."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)


def _terminated(_number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(TERMINATED)


if __name__ == "__main__":
    main()
