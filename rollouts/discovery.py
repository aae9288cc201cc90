"""Where NeMo Gym's clients look for servers: `GET :11000/global_config_dict_yaml`, a JSON string that holds YAML.

Names, kinds, hosts and ports only: no secret of the config is in it.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import yaml
from fastapi import FastAPI

from rollouts.served import served
from rollouts.stack import AGENT, MODEL, Stack

PORT = 11000  # NeMo Gym's head server's; its clients have it by default
ENTRYPOINT = "app.py"  # a key that its readers expect to be there


def directory(stack: Stack, urls: Mapping[str, str]) -> dict[str, Any]:
    """`name: {group of servers: {kind: {host, port, entrypoint}}}` of the servers that have a URL.

    Each environment stands there under its name, with an agent `<name>_agent` that plays it; the model as `policy_model`.
    """
    found: dict[str, Any] = {}
    settings = {AGENT: stack.section(AGENT)["agent"], MODEL: stack.section(MODEL)["backend"]}
    for each in stack.environments:
        if each.server in urls:
            found[each.name] = {"resources_servers": {each.name: _place(urls[each.server])}}
        if AGENT in urls:
            world = {"resources_server": {"type": "resources_servers", "name": each.name}}
            agent = (
                _place(urls[AGENT]) | world | {"model_server": {"type": "responses_api_models", "name": "policy_model"}}
            )
            found[f"{each.name}_agent"] = {"responses_api_agents": {str(settings[AGENT]): agent}}
    if MODEL in urls:
        found["policy_model"] = {"responses_api_models": {str(settings[MODEL]): _place(urls[MODEL])}}
    return found


@asynccontextmanager
async def announced(
    stack: Stack, urls: Mapping[str, str], *, port: int = PORT, host: str = "127.0.0.1"
) -> AsyncIterator[str]:
    """Answer while the block runs; yields the URL.

    Raises:
        UsageError: the port is taken.
    """
    text = yaml.safe_dump(directory(stack, urls), sort_keys=False)
    app = FastAPI(title="Trivium discovery for NeMo Gym")

    @app.get("/global_config_dict_yaml")
    async def global_config_dict_yaml() -> str:
        return text

    async with served("nemo_gym_discovery", app, host, port) as url:
        yield url


def _place(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {"host": parts.hostname or "127.0.0.1", "port": port, "entrypoint": ENTRYPOINT}
