"""`trivium stream`: complete groups over HTTP as they end, for a trainer that changes the model's weights meanwhile."""

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer

from rollouts import sockets
from rollouts import token as tokens
from rollouts.commands.arguments import split
from rollouts.interrupt import Interrupt, handled
from rollouts.served import served
from rollouts.trainers.endpoint import Endpoint
from rollouts.trainers.stream import Stale, Stream, streaming
from wire.errors import UsageError

Option = typer.Option


def stream(
    arguments: Annotated[
        list[str], typer.Argument(metavar="CONFIG [KEY=VALUE…]", help="A config file or bundled name.")
    ],
    output: Annotated[Path | None, Option("--output", metavar="FILE", help="Where every rollout's line goes.")] = None,
    max_lag: Annotated[int, Option(min=0, help="Versions behind which a group is stale.")] = 1,
    stale: Annotated[str, Option(metavar="drop|mark", help="What becomes of stale groups.")] = "drop",
    host: Annotated[str, Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, Option(help="0: any free one.")] = 8010,
    set_: Annotated[list[str] | None, Option("--set", metavar="KEY=VALUE", help="Same as a bare KEY=VALUE.")] = None,
) -> int:
    """Run the servers of a config and answer GET /group, POST /pause, POST /resume and GET /stream until stopped."""
    configs, overrides = split(arguments, set_)
    if len(configs) != 1:
        raise UsageError("stream: name one config, a file or a bundled one such as `workplace`")
    if stale not in ("drop", "mark"):
        raise UsageError(f"--stale {stale}: drop or mark")
    kept: Stale = "mark" if stale == "mark" else "drop"
    if tokens.given() is None and not sockets.is_loopback(host):
        raise UsageError(f"--host {host} is reachable from other machines: set TRIVIUM_TOKEN, or listen at 127.0.0.1")
    running = streaming(configs[0], *overrides, output=output, max_lag=max_lag, stale=kept)
    return asyncio.run(_stream(running, host, port))


async def _stream(running: AbstractAsyncContextManager[Stream], host: str, port: int) -> int:
    task = asyncio.current_task()
    assert task is not None
    interrupt = Interrupt(first=task.cancel, again=lambda: None)
    try:
        with handled(interrupt):
            async with AsyncExitStack() as held:
                groups = await held.enter_async_context(running)
                url = await held.enter_async_context(served("stream", Endpoint(groups).app(tokens.given()), host, port))
                typer.echo(f"stream {url}")
                await asyncio.Event().wait()
    except asyncio.CancelledError:
        if interrupt.status is None:
            raise
    return interrupt.status or 0
