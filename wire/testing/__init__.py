"""What tests and users need to try things for real: servers on free loopback ports, and a model that misbehaves on request.

`serving` runs real servers in this process; `wire.testing.upstream` is a Chat Completions server that checks what it is sent and fails
as it is told to.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import uvicorn

START_S = 10.0
ASGI = Callable[..., Awaitable[Any]]


@contextlib.asynccontextmanager
async def serving(**apps: ASGI) -> AsyncIterator[dict[str, str]]:
    """Serve ASGI apps on free loopback ports for the length of the block; yields name to base URL."""
    async with contextlib.AsyncExitStack() as stack:
        served = {name: await stack.enter_async_context(_running(app)) for name, app in apps.items()}
        try:
            yield {name: url for name, (url, _) in served.items()}
        finally:
            for _, server in served.values():  # all at once: each takes uvicorn a few ticks of 0.1 s to notice
                server.should_exit = True


@contextlib.asynccontextmanager
async def one_server(app: ASGI, *, port: int = 0, **options: Any) -> AsyncIterator[str]:
    """Serve one ASGI app; yields its base URL.

    Args:
        app: What to serve.
        port: 0 for any free one.
        options: For `uvicorn.Config`, such as `timeout_keep_alive`.
    """
    async with _running(app, port=port, **options) as (url, _):
        yield url


@contextlib.asynccontextmanager
async def _running(app: ASGI, *, port: int = 0, **options: Any) -> AsyncIterator[tuple[str, uvicorn.Server]]:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # or asyncio leaves Nagle on
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    defaults: dict[str, Any] = {
        "log_config": None,
        "access_log": False,
        "http": "httptools",
        "timeout_graceful_shutdown": 2,
    }
    server = uvicorn.Server(uvicorn.Config(app, **defaults | options))
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]  # uvicorn before 0.29 had it
    task = asyncio.create_task(_serve(server, bound))
    try:
        await _started(server, task)
        yield f"http://127.0.0.1:{bound.getsockname()[1]}", server
    finally:
        server.should_exit = True
        await task
        bound.close()


def free_port() -> int:
    """A loopback port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _serve(server: uvicorn.Server, bound: socket.socket) -> None:
    with contextlib.suppress(SystemExit):  # uvicorn's way to say that start-up failed; `_started` tells
        await server._serve([bound])  # not `serve`: that one takes over the process's signal handlers


async def _started(server: uvicorn.Server, task: "asyncio.Task[None]") -> None:
    async with asyncio.timeout(START_S):
        while not server.started:
            if task.done():
                task.result()
                raise RuntimeError("the server stopped before it had started; its log says why")
            await asyncio.sleep(0.002)
