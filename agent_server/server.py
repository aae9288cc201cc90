"""What the agent server's routes do. It shares an agent, a client and a count among rollouts, and nothing of any one rollout."""

import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Any

from agent_server import agent_sessions, forms, line
from agent_server.admission import Admission
from agent_server.agent import Agent
from agent_server.rollout import Closer, Player, Rollout, act
from agent_server.rows import resources_servers, server_of
from agent_server.session import Session
from agent_server.settings import AgentServerSettings
from agent_server.tokens import marked_items
from agent_server.toolbox import Definition, Toolbox
from agent_server.world import World
from wire import strict_json
from wire.app import App, HotReply, HotRequest, no_such_path
from wire.client import CallError, Client
from wire.deadline import Deadline
from wire.errors import Failed, Unprocessable, UsageError
from wire.rollout import flat_row

SESSION_BYTES = 24  # 192 random bits of a session id made here
TOOLS_S = 10.0  # for the tools' server to tell what it has


class AgentServer:
    """The handlers.

    Args:
        settings: The bounds.
        agent: Plays every rollout.
        client: Knows `model_interface` and the resources servers; opened and closed here.
        app: For the metrics.
    """

    def __init__(self, settings: AgentServerSettings, agent: Agent, client: Client, app: App) -> None:
        self._settings = settings
        self._player = Player(agent, settings.agent, client, Closer())
        self._client = client
        self._metrics = app.metrics
        self._servers = resources_servers(client.addresses)
        self._sessions = agent_sessions.AgentSessions()
        self._admission = Admission(settings.max_rollouts, app.metrics)
        app.metrics.gauge("agent_sessions_open", lambda: len(self._sessions))

    async def start(self) -> None:
        """Open the connection pool."""
        await self._client.__aenter__()

    async def stop(self) -> None:
        """Close it, when the last world is freed."""
        await self._player.closer.finish()
        await self._client.__aexit__(None, None, None)

    async def run(self, request: HotRequest) -> HotReply:
        """`POST /run`: a row in, its rollout line out; a failed rollout is a line too."""
        posted = forms.read(request.body)
        rollout = self._rollout(request, posted.row, on_items=posted.typed)
        record = await self._admission.do(request, rollout.run, request.header(b"x-session-id"))
        self._metrics.count("rollouts", result=record["outcome"] or record["failure"]["kind"])
        try:
            body = strict_json.dumps(posted.answer(record), trusted=True)
        except strict_json.JSONError as error:
            fault = Failed("unserialisable", f"the line cannot be written as JSON: {error}")
            body = strict_json.dumps(posted.answer(line.failed(posted.row, fault, None, {})))
        return HotReply(body)

    async def respond(self, request: HotRequest) -> HotReply:
        """`POST /v1/responses`: the Responses object of one episode, for a whole row or in a session that is open."""
        if not request.path.endswith("/v1/responses"):
            raise no_such_path(request)
        body = request.json()
        if not isinstance(body, dict):
            raise Unprocessable("the body is a JSON object")
        on_items = request.path != "/v1/responses"
        if "responses_create_params" in body or "task_input" in body:
            row = forms.check(flat_row(body))
            rollout = self._rollout(request, row, on_items=on_items)
            return HotReply.json(await self._admission.do(request, rollout.play))
        if not isinstance(body.get("input"), str | list):
            raise Unprocessable("field 'input' is missing (a string or a list of items)", param="input")
        return await self._in_open_session(request, body, on_items)

    async def open_session(self, request: HotRequest) -> HotReply:
        """`POST /v1/agent_sessions`."""
        session = self._sessions.open(request.body)
        cookie = f"{agent_sessions.COOKIE}={session.id}; Path=/; HttpOnly; SameSite=Lax".encode()
        return HotReply.json({"agent_session_id": session.id}, headers=[(b"set-cookie", cookie)])

    async def close_session(self, request: HotRequest) -> HotReply:
        """`POST /v1/agent_sessions/close`: also gives back the cookies of the tools' server, for the verdict."""
        session = self._sessions.close(request.body)
        return HotReply.json({"agent_session_id": session.id, "resources_cookies": session.cookies or None})

    def _rollout(self, request: HotRequest, row: dict[str, Any], *, on_items: bool) -> Rollout:
        session_id = _session_id(request)
        world = World(self._client, server_of(row, self._servers), session_id)
        on_items = on_items or self._settings.token_ids == "items"
        return Rollout(self._player, row, session_id, world, self._deadline(request), token_ids_on_items=on_items)

    def _deadline(self, request: HotRequest) -> Deadline:
        return Deadline.from_header(request.header(b"x-budget-s"), self._settings.timeout_s)

    async def _in_open_session(self, request: HotRequest, body: dict[str, Any], on_items: bool) -> HotReply:
        """An episode among tools that the caller has seeded: named by an agent session, a session id, or its cookies."""
        cookies = _cookies(request)
        name = cookies.pop(agent_sessions.COOKIE, None)
        opened = self._sessions.get(name) if name is not None else None
        session_id = opened.id if opened is not None else _session_id(request)
        world = self._world_of(request, opened, cookies)
        declared = await self._told_tools(world, body)
        toolbox = Toolbox(declared, body.get("tools"))
        session = Session(self._client, session_id, self._deadline(request), toolbox, world=world)
        episode = await self._admission.do(request, lambda: act(self._player.agent, body, session))
        response = {
            "tool_choice": "auto",
            "parallel_tool_calls": True,
            "tools": toolbox.definitions,
            **episode.response,
        }
        if on_items or opened is not None or self._settings.token_ids == "items":
            response["output"] = marked_items(session.transcript)
        if opened is not None and world is not None:
            opened.cookies = world.cookies
        return HotReply.json(response, headers=[] if opened is not None else _set_cookies(world))

    def _world_of(
        self, request: HotRequest, opened: agent_sessions.AgentSession | None, cookies: dict[str, str]
    ) -> World | None:
        if opened is not None:
            access = opened.tools
            if access is None:
                return None
            self._client.addresses.setdefault(access.base_url, access.base_url)
            return World(self._client, access.base_url, None, opened.cookies, access.headers)
        session_id = request.header(b"x-session-id")
        if session_id is None and not cookies:
            return None
        return World(self._client, server_of({}, self._servers), session_id, cookies)

    async def _told_tools(self, world: World | None, body: dict[str, Any]) -> list[Definition] | None:
        """The tools of the world where the request brings none; a world that does not tell has none but the request's."""
        if body.get("tools"):
            if world is None:
                raise UsageError(
                    "tools need a world: send the X-Session-Id of a seeded session, its cookies, or the whole row"
                )
            return None
        if world is None:
            return None
        try:
            reply = await self._client.get(world.server, "/tools", deadline=Deadline(TOOLS_S))
            tools = strict_json.loads(reply.body).get("tools") if reply.ok else None
        except (CallError, strict_json.JSONError, AttributeError):
            return None
        return [each for each in tools if isinstance(each, dict)] if isinstance(tools, list) else None


def _session_id(request: HotRequest) -> str:
    return request.header(b"x-session-id") or secrets.token_urlsafe(SESSION_BYTES)


def _cookies(request: HotRequest) -> dict[str, str]:
    try:
        return {name: each.value for name, each in SimpleCookie(request.header(b"cookie") or "").items()}
    except CookieError as error:
        raise UsageError(f"the Cookie header cannot be read: {error}") from None


def _set_cookies(world: World | None) -> list[tuple[bytes, bytes]]:
    """The world's cookies for a caller that keeps only what the last reply set."""
    cookies = world.cookies if world is not None else {}
    return [(b"set-cookie", f"{name}={value}; Path=/; HttpOnly".encode("latin-1")) for name, value in cookies.items()]
