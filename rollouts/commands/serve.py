"""`trivium serve`: the servers of a config, until stopped."""

import asyncio
import sys
from contextlib import AsyncExitStack
from typing import Annotated

import typer

from rollouts import stack as stacks
from rollouts import token as tokens
from rollouts.commands.arguments import split
from rollouts.interrupt import Interrupt, handled
from rollouts.launcher import Running, Server, launched
from rollouts.stack import Stack
from wire.errors import UsageError

GIVEN_UP = 1  # exit status when a server died too often


def serve(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="CONFIG [NAME…] [KEY=VALUE…]", help="Config files or bundled names; servers, if not all."
        ),
    ],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Same as a bare KEY=VALUE.")
    ] = None,
    nemo_gym_discovery: Annotated[
        bool, typer.Option("--nemo-gym-discovery", help="Tell NeMo Gym's clients where the servers are, on port 11000.")
    ] = False,
) -> int:
    """Run the servers until stopped; print `name http://host:port` for each once all are healthy.

    A server that dies is started again on its port. Exit status: 130 or 143 when stopped by a signal, 1 when a server could not be
    kept up, 2 when the config is wrong or a port is taken.
    """
    positional, overrides = split(arguments, set_)
    configs, names = _configs_and_names(positional)
    if nemo_gym_discovery and not any(each.startswith("agent_server.token_ids=") for each in overrides):
        overrides = [*overrides, "agent_server.token_ids=items"]  # its readers look for ids on the items
    stack = stacks.read(configs, overrides, starting={each.partition(".")[0] for each in names} or stacks.ROOMS)
    return asyncio.run(_serve(stack, stack.servers(names), discovery=nemo_gym_discovery))


async def _serve(stack: Stack, servers: list[Server], *, discovery: bool) -> int:
    task = asyncio.current_task()
    assert task is not None
    stopped = asyncio.Event()
    interrupt = Interrupt(first=task.cancel, again=lambda: None)
    token = tokens.for_stack(stack.config.auth)
    try:
        with handled(interrupt):
            async with AsyncExitStack() as held:
                running = await held.enter_async_context(
                    launched(servers, token=token, elsewhere=stack.elsewhere(servers), on_line=_pass_on, report=_report)
                )
                if discovery:
                    if token is not None:
                        _report("NeMo Gym's clients send no token; auth=none lets them in")
                    from rollouts.discovery import announced  # its web server is not needed otherwise

                    await held.enter_async_context(announced(stack, running.urls))
                interrupt.first, interrupt.again = stopped.set, running.kill
                _announce(servers, running, made=token is not None and tokens.given() is None)
                await _first_of(stopped, running.lost)
    except asyncio.CancelledError:
        if interrupt.status is None:
            raise
    return interrupt.status or GIVEN_UP


def _announce(servers: list[Server], running: Running, *, made: bool) -> None:
    for server in servers:
        typer.echo(f"{server.name} {running.urls[server.name]}")
    sys.stdout.flush()
    if made:
        _report("control routes ask for a token made for this run; set TRIVIUM_TOKEN to choose it, or auth=none")


async def _first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()


def _configs_and_names(positional: list[str]) -> tuple[list[str], list[str]]:
    """A server's name is one of the three rooms, or an environment's server below `resources_server.`."""
    names = [each for each in positional if each.partition(".")[0] in stacks.ROOMS]
    configs = [each for each in positional if each not in names]
    if not configs:
        raise UsageError("serve: name a config, a file or a bundled one such as `workplace`")
    return configs, names


def _pass_on(_name: str, line: str) -> None:
    typer.echo(line, err=True)


def _report(sentence: str) -> None:
    typer.echo(f"trivium: {sentence}", err=True)
