"""`trivium config`: what the servers would be told, secrets masked."""

from typing import Annotated

import typer
import yaml

from rollouts import stack as stacks
from rollouts.commands.arguments import split
from wire.config import masked
from wire.errors import UsageError


def config(
    arguments: Annotated[
        list[str], typer.Argument(metavar="CONFIG… [KEY=VALUE…]", help="Config files or bundled names.")
    ],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Same as a bare KEY=VALUE.")
    ] = None,
) -> None:
    """Print the resolved config as YAML: every key with its value, defaults included, secrets as ***."""
    sources, overrides = split(arguments, set_)
    if not sources:
        raise UsageError("config: name a config, a file or a bundled one such as `workplace`")
    typer.echo(
        yaml.safe_dump(masked(_shown(stacks.read(sources, overrides))), sort_keys=False, allow_unicode=True).rstrip()
    )


def _shown(stack: stacks.Stack) -> dict[str, object]:
    alone = len(stack.environments) == 1
    worlds = {each.name: each.settings for each in stack.environments}
    return {
        "auth": stack.config.auth,
        stacks.MODEL: stack.section(stacks.MODEL),
        **({stacks.RESOURCES: stack.environments[0].settings} if alone else {"environments": worlds}),
        stacks.AGENT: stack.section(stacks.AGENT),
        "rollouts": stack.section("rollouts"),
    }
