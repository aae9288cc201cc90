"""Run by a Python that has nemo-gym, never by ours: its unmodified environment server plays one episode through our servers.

Reads {resources, agent: [host, port], transports, task_input} from standard input; prints what its `/run` would answer.
"""

import asyncio
import json
import sys

from environment_servers.single_agent_turn.app import (  # type: ignore[import-not-found]
    SingleAgentTurnEnvironmentServer,
    SingleAgentTurnEnvironmentServerConfig,
)
from nemo_gym.server_utils import BaseServerConfig, ServerClient  # type: ignore[import-not-found]
from nemo_gym.single_agent_turn_types import SingleAgentTurnRequest  # type: ignore[import-not-found]
from omegaconf import OmegaConf


async def main() -> None:
    """One episode, start to end."""
    asked = json.load(sys.stdin)

    def server(kind: str, place: list[object]) -> dict[str, object]:
        return {kind: {"test": {"host": place[0], "port": place[1], "entrypoint": "app.py"}}}

    names = OmegaConf.create(
        {
            "resources": server("resources_servers", asked["resources"]),
            "agent": server("responses_api_agents", asked["agent"]),
        }
    )
    client = ServerClient(head_server_config=BaseServerConfig(host="127.0.0.1", port=1), global_config_dict=names)
    config = SingleAgentTurnEnvironmentServerConfig(
        name="environment",
        host="127.0.0.1",
        port=8002,
        entrypoint="app.py",
        resources_server={"type": "resources_servers", "name": "resources"},
        agent_server={"type": "responses_api_agents", "name": "agent"},
        resources_tool_transports=asked["transports"],
        default_episode_timeout_seconds=30,
        cleanup_timeout_seconds=10,
    )
    environment = SingleAgentTurnEnvironmentServer(config=config, server_client=client)
    request = SingleAgentTurnRequest.model_validate(
        {
            "episode_id": {"rollout_id": "r1", "attempt": 2},
            "task": {"task_id": {"taskset": "counting", "task_id": "t1"}, "task_input": asked["task_input"]},
        }
    )
    answer = await environment.run_request(request)
    sys.stdout.write("ANSWER " + answer.model_dump_json() + "\n")


asyncio.run(main())
