"""Run by a Python that has nemo-gym, never by ours: one of its example resources servers, unmodified, on a port of its own choice.

Prints `PORT <n>` when it listens; ends when standard input does.
"""

import asyncio
import socket
import sys
from unittest.mock import MagicMock

import uvicorn
from nemo_gym.server_utils import ServerClient  # type: ignore[import-not-found]
from resources_servers.example_session_state_mgmt.app import (  # type: ignore[import-not-found]
    StatefulCounterResourcesServer,
    StatefulCounterResourcesServerConfig,
)


async def main() -> None:
    """Serve until the parent closes our input."""
    config = StatefulCounterResourcesServerConfig(host="127.0.0.1", port=1, entrypoint="", name="counter")
    world = StatefulCounterResourcesServer(config=config, server_client=MagicMock(spec=ServerClient))
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(world.setup_webserver(), log_config=None))
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    sys.stdout.write(f"PORT {bound.getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await serving


asyncio.run(main())
