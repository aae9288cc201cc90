"""An app of ours served in this process's loop, beside the servers that are processes."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI

from rollouts import sockets
from wire.errors import TriviumError

LOOK_S = 0.01  # between two looks whether it has started


@asynccontextmanager
async def served(name: str, app: FastAPI, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve until the block ends; yields the URL.

    Raises:
        UsageError: the address cannot be bound.
        TriviumError: the app did not start; its log says why.
    """
    bound = sockets.listen(name, host, port)
    options: dict[str, Any] = {"log_config": None, "access_log": False, "http": "httptools", "ws": "none"}
    server = uvicorn.Server(uvicorn.Config(app, lifespan="on", timeout_graceful_shutdown=1, **options))
    serving = asyncio.create_task(_serve(server, bound))
    try:
        await _started(name, server, serving)
        yield sockets.address(bound)
    finally:
        server.should_exit = True
        await serving
        bound.close()


async def _serve(server: uvicorn.Server, bound: socket.socket) -> None:
    await server._serve([bound])  # not `serve`: that one takes over this process's signal handlers


async def _started(name: str, server: uvicorn.Server, serving: "asyncio.Task[None]") -> None:
    while not server.started:
        if serving.done():
            serving.result()
            raise TriviumError(f"{name} stopped while it started")
        await asyncio.sleep(LOOK_S)
