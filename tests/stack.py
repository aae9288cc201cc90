"""The three servers of ours in this process, on loopback, in front of a fake model."""

import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from typing import Any

import aiohttp

from wire import strict_json
from wire.config import Config
from wire.testing import free_port, one_server

ROOT = Path(__file__).parent.parent
ROOMS = ("model_interface", "resources_server", "agent_server")


@contextlib.asynccontextmanager
async def stack(
    upstream: str | None = None, *, keep_alive_s: int = 5, **sections: dict[str, Any]
) -> AsyncIterator[dict[str, str]]:
    """Serve all three; yields name to URL.

    Args:
        upstream: A Chat Completions server behind the model interface; without one the `scripted` backend plays.
        keep_alive_s: After which the resources server lets go of idle connections.
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
            idle_s = keep_alive_s if name == "resources_server" else 5
            await running.enter_async_context(one_server(app, port=ports[name], timeout_keep_alive=idle_s))
        yield urls


async def run(urls: dict[str, str], row: dict[str, Any]) -> dict[str, Any]:
    """One rollout by HTTP."""
    async with aiohttp.ClientSession() as http, http.post(f"{urls['agent_server']}/run", json=row) as answer:
        assert answer.status == 200
        line = strict_json.loads(await answer.read())
        assert isinstance(line, dict)
        return line


def trivium(
    *arguments: str, cwd: Path, path: Path | None = None, timeout: float = 60
) -> "subprocess.CompletedProcess[str]":
    """The command as a person calls it."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *([str(path)] if path else [])])}
    command = [sys.executable, "-m", "rollouts.cli", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout, check=False
    )
