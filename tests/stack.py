"""The three servers of ours in this process, on loopback, in front of a fake model."""

import contextlib
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

from wire.config import Config
from wire.testing import free_port, one_server

ROOMS = ("model_interface", "resources_server", "agent_server")


@contextlib.asynccontextmanager
async def stack(upstream: str | None = None, **sections: dict[str, Any]) -> AsyncIterator[dict[str, str]]:
    """Serve all three; yields name to URL.

    Args:
        upstream: A Chat Completions server behind the model interface; without one the `scripted` backend plays.
        sections: Of the config, over what a test needs.
    """
    model: dict[str, Any] = {"backend": "scripted"}
    if upstream is not None:
        model = {"backend": "chat", "base_url": f"{upstream}/v1", "model": "m", "api_key": "k-e-y", "attempts": 1}
    data: dict[str, Any] = {"auth": "none", "model_interface": model} | {
        name: {**(model if name == "model_interface" else {}), **section} for name, section in sections.items()
    }
    ports = {name: free_port() for name in ROOMS}
    urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
    async with contextlib.AsyncExitStack() as running:
        for name in ROOMS:
            app = import_module(f"{name}.app").build(Config("test", data), urls, None, name)
            await running.enter_async_context(one_server(app, port=ports[name]))
        yield urls
