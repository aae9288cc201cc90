"""The server around an agent: routing among environments, the token, plug-ins and their faults, what `/docs` and `/metrics` say."""

import asyncio
from typing import Any

import aiohttp
import pytest

from agent_server.agent import Agent, Episode, Request, Session
from agent_server.agents.tool_loop import ToolLoop
from agent_server.app import build, make_app
from agent_server.rows import resources_servers, server_of
from agent_server.settings import AgentServerSettings
from tests.agent_server.stage import ROW, Counter, Model, stage
from wire.config import Config
from wire.errors import Unprocessable, UsageError
from wire.testing import serving

SERVERS = {"counter": "resources_server.counter", "wordle": "resources_server.wordle"}


class Clumsy(Agent):
    """An agent with a fault."""

    async def run(self, request: Request, session: Session) -> Episode:
        """Ask once, then fail."""
        await session.ask(b'{"input": "x"}')
        if self.settings.max_steps == 1:
            raise TimeoutError("mine, not the rollout's")
        raise KeyError("plan")


@pytest.mark.parametrize("max_steps", [1, 2])
async def test_a_fault_of_an_agent_is_its_rollouts_alone(max_steps: int) -> None:
    """`agent_error` with the exception's type and text, what was played is kept, and the server goes on."""
    async with stage(agent=Clumsy, max_steps=max_steps) as on:
        line = await on.run()
        assert (await on.run())["failure"]["kind"] == "agent_error"
        assert len(on.world.to("/close_session")) == 2
    assert (line["failure"]["kind"], len(line["steps"])) == ("agent_error", 1)
    assert ("mine" if max_steps == 1 else "KeyError: 'plan'") in line["failure"]["message"]


@pytest.mark.parametrize(
    "row",
    [
        {"environment": "wordle"},
        {"agent_ref": {"name": "wordle"}},
        {"environment": "wordle", "agent_ref": {"name": "counter"}},
        {"environment": {"name": "x"}, "agent_ref": {"name": "wordle"}},
    ],
)
def test_a_row_finds_its_environment(row: dict[str, Any]) -> None:
    """By `environment`, else by `agent_ref.name`."""
    assert server_of(row, SERVERS) == "resources_server.wordle"


def test_a_row_without_an_environment_of_several_is_refused() -> None:
    """The message lists what there is and the nearest; with a single one nothing need be named."""
    with pytest.raises(Unprocessable, match=r"'wordel', did you mean 'wordle'\? \(have: counter, wordle\)"):
        server_of({"environment": "wordel"}, SERVERS)
    with pytest.raises(Unprocessable, match="have: counter, wordle"):
        server_of({}, SERVERS)
    assert server_of({"agent_ref": {"name": "weather_agent"}}, {"": "resources_server"}) == "resources_server"


def test_resources_servers_are_told_from_the_others() -> None:
    """Their names say which environment is theirs."""
    names = ["model_interface", "resources_server.a", "agent_server", "resources_server"]
    assert resources_servers(names) == {"a": "resources_server.a", "": "resources_server"}


async def test_rows_of_several_environments_go_to_their_own_servers() -> None:
    """Two at once: each world is seeded with its own row only."""
    one, two, settings = Counter(), Counter(), AgentServerSettings()
    async with serving(model=Model(), one=one, two=two) as found, aiohttp.ClientSession() as http:
        urls = {"model_interface": found["model"]}
        urls |= {"resources_server.one": found["one"], "resources_server.two": found["two"]}
        async with serving(agent=make_app(settings, ToolLoop(settings), urls)) as served:

            async def run(name: str) -> Any:
                async with http.post(served["agent"] + "/run", json={**ROW, "environment": name}) as answer:
                    return await answer.json()

            lines = await asyncio.gather(*(run(name) for name in ("one", "two", "one")))
    assert [line["environment"] for line in lines] == ["one", "two", "one"]
    assert (len(one.to("/seed_session")), len(two.to("/seed_session"))) == (2, 1)


async def test_every_route_but_health_needs_the_token_where_there_is_one() -> None:
    """401 without, and the token goes on to the servers behind."""
    world, settings = Counter(), AgentServerSettings()
    async with serving(model=Model(), world=world) as found, aiohttp.ClientSession() as http:
        urls = {"model_interface": found["model"], "resources_server": found["world"]}
        async with serving(agent=make_app(settings, ToolLoop(settings), urls, token="t-o-k")) as served:
            for path in (
                "/run",
                "/v1/responses",
                "/v1/agent_sessions",
                "/aggregate_metrics",
                "/ng-rollout/r/v1/responses",
            ):
                async with http.post(served["agent"] + path, json=ROW) as answer:
                    assert answer.status == 401
                    assert "t-o-k" not in await answer.text()
            headers = {"Authorization": "Bearer t-o-k"}
            async with http.post(served["agent"] + "/run", json=ROW, headers=headers) as answer:
                assert (await answer.json())["outcome"] == "completed"
    assert {each.headers["authorization"] for each in world.sent} == {"Bearer t-o-k"}


async def test_the_server_says_what_it_is_and_counts() -> None:
    """Health names the agent and what it depends on; metrics count rollouts by how they ended; `/docs` has the routes."""
    async with stage() as on:
        await on.run()
        async with on.http.get(on.url + "/health") as answer:
            health = await answer.json()
        async with on.http.get(on.url + "/metrics") as answer:
            metrics = await answer.text()
        async with on.http.get(on.url + "/openapi.json") as answer:
            paths = (await answer.json())["paths"]
    assert (health["agent"], set(health["depends_on"])) == ("tool_loop", {"model_interface", "resources_server"})
    assert 'trivium_rollouts_total{result="completed"} 1' in metrics
    assert {"/run", "/v1/responses", "/aggregate_metrics"} <= set(paths)


async def test_figures_over_lines_are_answered() -> None:
    """`/aggregate_metrics` over what `/run` gave."""
    async with stage() as on:
        line = await on.run()
        status, figures = await on.post("/aggregate_metrics", {"verify_responses": [line]})
    assert (status, figures["agent_metrics"]["mean/reward"]) == (200, 0.0)


def test_an_agent_is_loaded_by_name() -> None:
    """A short name, a dotted path; another name lists what there is and the nearest."""
    config = {"agent": "tests.agent_server.test_app:Clumsy"}
    assert build(Config("test", {"agent_server": config}), {}, None, "agent_server").facts["agent"] == config["agent"]
    with pytest.raises(UsageError, match=r"tool_lop.*did you mean 'tool_loop'"):
        build(Config("test", {"agent_server": {"agent": "tool_lop"}}), {}, None, "agent_server")
