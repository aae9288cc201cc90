"""The agent server's routes: a whole rollout (`/run`), an episode without a verdict (`/v1/responses`)."""

import asyncio
import secrets
from collections.abc import Coroutine
from typing import Any, TypeVar

from agent_server import line
from agent_server.agent import Agent
from agent_server.rollout import Rollout
from agent_server.rows import read_row, resources_servers, server_of
from agent_server.settings import AgentServerSettings
from agent_server.world import World
from wire import plugins, strict_json
from wire.app import App, HotReply, HotRequest
from wire.client import Client
from wire.config import Config
from wire.deadline import Deadline
from wire.errors import Failed, Overloaded, TriviumError

T = TypeVar("T")
SESSION_BYTES = 24  # 192 random bits of a session id made here


def build(config: Config, urls: dict[str, str], token: str | None, name: str) -> App:
    """The server as a config asks for it."""
    settings = config.section("agent_server", AgentServerSettings)
    agent = plugins.load("agent_server.agents", settings.agent, Agent)(settings)  # type: ignore[type-abstract]
    return make_app(settings, agent, urls, token=token, name=name)


def make_app(
    settings: AgentServerSettings,
    agent: Agent,
    urls: dict[str, str],
    *,
    token: str | None = None,
    name: str = "agent_server",
) -> App:
    """The server around one agent.

    Args:
        settings: The bounds.
        agent: Plays every rollout.
        urls: `model_interface` and `resources_server`, or `resources_server.<environment>` for each of several.
        token: Asked for on every route here, and sent to the servers called.
        name: This server's name in the config.
    """
    depends_on = {
        key: url for key, url in urls.items() if key == "model_interface" or key in resources_servers(urls).values()
    }
    app = App(name, token=token, depends_on=depends_on)
    server = AgentServer(settings, agent, Client(urls, token=token), app)
    app.on_start(server.start)
    app.on_stop(server.stop)
    app.hot("POST", "/run", server.run, summary="One rollout: seed, agent, verify, close", control=True)
    app.hot("POST", "/v1/responses", server.respond, summary="One episode, without a verdict", control=True)
    return app


class AgentServer:
    """What the routes share: the agent, the client, and the count of rollouts in flight. Nothing of any one rollout."""

    def __init__(self, settings: AgentServerSettings, agent: Agent, client: Client, app: App) -> None:
        self._settings = settings
        self._agent = agent
        self._client = client
        self._metrics = app.metrics
        self._servers = resources_servers(client.addresses)
        self._in_flight = 0
        app.metrics.gauge("rollouts_in_flight", lambda: self._in_flight)

    async def start(self) -> None:
        """Open the connection pool."""
        await self._client.__aenter__()

    async def stop(self) -> None:
        """Close it."""
        await self._client.__aexit__(None, None, None)

    async def run(self, request: HotRequest) -> HotReply:
        """`POST /run`: a row in, its rollout line out; a failed rollout is a line too."""
        row = read_row(request.body)
        record = await self._admitted(request, self._rollout(request, row).run())
        self._metrics.count("rollouts", result=record["outcome"] or record["failure"]["kind"])
        try:
            return HotReply(strict_json.dumps(record))
        except strict_json.JSONError as error:
            return HotReply.json(unserialisable(row, error))

    async def respond(self, request: HotRequest) -> HotReply:
        """`POST /v1/responses`: a row, or a create request for a session that is open; the episode's Responses object."""
        row = read_row(request.body)
        episode = await self._admitted(request, self._rollout(request, row).play())
        return HotReply.json(episode.response)

    def _rollout(self, request: HotRequest, row: dict[str, Any]) -> Rollout:
        session_id = request.header(b"x-session-id") or secrets.token_urlsafe(SESSION_BYTES)
        deadline = Deadline.from_header(request.header(b"x-budget-s"), self._settings.timeout_s)
        world = World(self._client, server_of(row, self._servers), session_id)
        return Rollout(self._client, self._agent, self._settings.agent, row, world, deadline)

    async def _admitted(self, request: HotRequest, work: Coroutine[Any, Any, T]) -> T:
        """Do the work unless too much is in flight; stop it when its caller has gone."""
        if self._in_flight >= self._settings.max_rollouts:
            work.close()
            self._metrics.count("rollouts_refused")
            raise Overloaded(
                f"{self._in_flight} rollouts are in flight, as many as agent_server.max_rollouts allows; ask again later"
            )
        self._in_flight += 1
        try:
            return await _while_connected(request, work)
        finally:
            self._in_flight -= 1


class CallerGoneError(TriviumError):
    """The caller of a rollout left before its end; nobody reads this."""

    status, code = 499, "caller_gone"


async def _while_connected(request: HotRequest, work: Coroutine[Any, Any, T]) -> T:
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(request.disconnected())
    try:
        await asyncio.wait([working, gone], return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait([working])
    if working.cancelled():
        raise CallerGoneError("the caller has gone")
    return working.result()


def unserialisable(row: dict[str, Any], error: strict_json.JSONError) -> dict[str, Any]:
    """The line of a rollout whose own line has no JSON form: the input and what was wrong."""
    return line.failed(row, Failed("unserialisable", f"the line cannot be written as JSON: {error}"), None, {})
