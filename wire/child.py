"""`python -m wire.child`: one server as a process of its own, started by a launcher.

The first line of standard input is its whole start-up message: nothing secret is an argument, and the socket comes bound. Standard input
then stays open; its end means that the launcher is gone, however it went, and the server stops. So nothing is left behind.
"""

import asyncio
import contextlib
import gc
import importlib
import logging
import os
import signal
import socket
import sys
from typing import Any

import uvicorn
from pydantic import BaseModel, ConfigDict

from wire import logs
from wire.app import App
from wire.config import Config
from wire.errors import TriviumError

KEEP_ALIVE_S = 75  # idle connections are ours to close last; the client lets go of them after 4 s
STOP_S = 5  # for requests in flight when the server is told to stop
BACKLOG = 8192
COLLECT_AFTER = (
    20_000,
    20,
    20,
)  # containers made: what a step makes is freed by counting, so a search for cycles finds next to nothing


class Start(BaseModel):
    """What a launcher tells its child."""

    model_config = ConfigDict(extra="forbid")

    room: str
    """Package whose `app.build` makes the server: `agent_server`, …"""
    name: str
    """The server's name in messages and in `/health`; `resources_server.wordle` where there are several."""
    source: str
    """The config's name, for messages."""
    config: dict[str, Any]
    """The resolved config."""
    urls: dict[str, str]
    """Server name to base URL, of the whole stack."""
    token: str | None = None
    """The stack's bearer token; None with `auth: none`."""
    fd: int
    """The bound socket's descriptor, inherited."""


def build(start: Start) -> App:
    """The app that the start-up message asks for."""
    app = importlib.import_module(f"{start.room}.app").build(
        Config(start.source, start.config), start.urls, start.token, start.name
    )
    assert isinstance(app, App)
    return app


def server_for(app: App) -> uvicorn.Server:
    """A uvicorn server as all of ours are run."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            loop="uvloop",
            http="httptools",
            ws="none",
            lifespan="on",
            access_log=False,
            log_config=None,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=STOP_S,
            backlog=BACKLOG,
            server_header=False,
            date_header=False,
            proxy_headers=False,
        )
    )


def calm_collector() -> None:
    """Look for garbage in cycles less often, and never among what the imports made: a tenth of a busy server's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def main() -> int:
    """Serve until told to stop; the exit code: 0 stopped, 1 could not start, 2 the config is wrong."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is the launcher's to handle
    start = Start.model_validate_json(sys.stdin.buffer.readline())
    logs.set_up(start.name, os.environ.get("TRIVIUM_LOG", "WARNING"))
    try:
        app = build(start)
    except TriviumError as error:
        return _refuse(start, error)
    server = server_for(app)
    calm_collector()
    with (
        contextlib.suppress(SystemExit),
        asyncio.Runner(loop_factory=_new_loop) as runner,
    ):  # uvicorn's, of a failed start
        runner.run(_serve(server, socket.socket(fileno=start.fd)))
    if app.refusal is not None:
        return _refuse(start, app.refusal)
    return 0 if server.started else 1


def _refuse(start: Start, error: TriviumError) -> int:
    print(f"{start.name}: {error}", file=sys.stderr)  # noqa: T201 - the launcher shows it to a person
    return 2


async def _serve(server: uvicorn.Server, bound: socket.socket) -> None:
    watch = asyncio.create_task(_stop_with_parent(server))
    try:
        await server.serve(sockets=[bound])
    finally:
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch


async def _stop_with_parent(server: uvicorn.Server) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(4096):
        pass
    logging.getLogger(__name__).info("the launcher is gone: stopping")
    server.should_exit = True


def _new_loop() -> asyncio.AbstractEventLoop:
    import uvloop  # only here: not on every platform, and not needed to import this module

    return uvloop.new_event_loop()


if __name__ == "__main__":
    sys.exit(main())
