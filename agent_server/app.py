"""The agent server's routes: a whole rollout (`/run`), an episode without a verdict (`/v1/responses`), figures over lines."""

from agent_server.agent import Agent
from agent_server.rows import resources_servers
from agent_server.server import AgentServer
from agent_server.settings import AgentServerSettings
from wire import plugins
from wire.aggregate import aggregate_request
from wire.app import App, HotReply, HotRequest
from wire.client import Client
from wire.config import Config

ROW_SCHEMA = {"type": "object", "required": ["responses_create_params"], "description": "A data set row."}
LINE_SCHEMA = {"type": "object", "description": "The row with response, reward, outcome, failure, steps, provenance."}


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
    called = {"model_interface", *resources_servers(urls).values()}
    app = App(name, token=token, depends_on={key: url for key, url in urls.items() if key in called})
    app.facts["agent"] = settings.agent
    server = AgentServer(settings, agent, Client(urls, token=token), app)
    app.on_start(server.start)
    app.on_stop(server.stop)
    app.hot(
        "POST",
        "/run",
        server.run,
        summary="One rollout: seed, agent, verify, close",
        control=True,
        request_schema=ROW_SCHEMA,
        response_schema=LINE_SCHEMA,
    )
    app.hot("POST", "/v1/responses", server.respond, summary="One episode, without a verdict", control=True)
    app.hot_prefix("/ng-rollout/", server.respond, summary="The same, for one rollout's capture key", control=True)
    app.hot("POST", "/v1/agent_sessions", server.open_session, summary="Open an agent session", control=True)
    app.hot("POST", "/v1/agent_sessions/close", server.close_session, summary="Close an agent session", control=True)
    app.hot("POST", "/aggregate_metrics", aggregate_metrics, summary="Figures over finished rollouts", control=True)
    return app


async def aggregate_metrics(request: HotRequest) -> HotReply:
    """`POST /aggregate_metrics`: `{verify_responses}` -> `{group_level_metrics, agent_metrics, key_metrics}`."""
    return HotReply.json(aggregate_request(request.json()))
