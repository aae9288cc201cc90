"""HTTP face of an environment: its sessions, one route per tool, its verdict."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from resources_server.environment import Environment
from resources_server.host import Host
from resources_server.sessions import MemorySessions, SessionStore
from resources_server.settings import ResourcesServerSettings
from resources_server.tools import Tool
from wire import plugins, strict_json
from wire.app import App, HotReply, HotRequest
from wire.config import Config
from wire.deadline import Deadline
from wire.errors import UsageError
from wire.responses import Response
from wire.session import HEADER, Named, SessionNames, new_session_id

ENVIRONMENTS = "resources_server.environments"
ROOM = "resources_server"

log = logging.getLogger(__name__)


def build(config: Config, urls: dict[str, str], token: str | None, name: str) -> App:
    """The server that a config describes; `name` is `resources_server`, or `resources_server.<environment>`."""
    settings = config.section(ROOM, ResourcesServerSettings)
    if settings.environment is None:
        raise UsageError(
            f"{config.source}: resources_server.environment is missing", param="resources_server.environment"
        )
    environment = plugins.load(ENVIRONMENTS, settings.environment, Environment)
    called = name.partition(".")[2] or _short_name(settings.environment)
    return app_for(environment, settings, token=token, server=name, name=called)


def app_for(
    environment: type[Environment[Any]],
    settings: ResourcesServerSettings | None = None,
    *,
    token: str | None = None,
    server: str = ROOM,
    name: str | None = None,
    secret: str | None = None,
) -> App:
    """The server for an environment class.

    Args:
        environment: The class; bound here to the options in `settings`.
        settings: Defaults where None.
        token: What control routes ask for; None for nothing.
        server: The server's name, told by `/health`.
        name: The environment's name, told by the seed reply.
        secret: Signs session cookies; random where None and not in the environment variables.

    Raises:
        UsageError: The options are wrong, or the store cannot serve several workers.
    """
    settings = settings or ResourcesServerSettings(environment=environment.__name__)
    app = App(server, token=token)
    called, bound = name or environment.__name__, environment.bound(settings.options)
    host = Host(called, bound, _store(called, bound, settings), settings, app.metrics)
    Routes(app, host, SessionNames(server, secret)).add()
    app.facts = {"environment": host.ref.model_dump()}
    app.on_start(host.start)
    app.on_stop(host.stop)
    return app


def _store(name: str, environment: type[Environment[Any]], settings: ResourcesServerSettings) -> SessionStore:
    limits = settings.sessions
    if limits.url == "memory":
        if settings.workers > 1:
            raise UsageError(
                f"resources_server.workers={settings.workers} needs sessions that all of them see, and sessions.url=memory keeps "
                "each in one process: give a database (sqlite:///sessions.db, postgresql://…) or one worker",
                param="resources_server.workers",
            )
        return MemorySessions(limits.ttl_s, limits.max, limits.max_bytes)
    from resources_server.sql_sessions import SqlSessions  # SQLAlchemy takes 0.2 s to import, and few need it

    return SqlSessions(limits.url, name, environment, limits.ttl_s, limits.max, limits.max_bytes)


class Routes:
    """The handlers, on one app.

    Args:
        app: Where they are registered.
        host: What they do.
        names: How a request says which session it means.
    """

    def __init__(self, app: App, host: Host, names: SessionNames) -> None:
        self._app = app
        self._host = host
        self._names = names
        self._budget_s = max(host.settings.tool_timeout_s, host.settings.verify_timeout_s, host.settings.seed_timeout_s)

    def add(self) -> None:
        """Register all of them."""
        hot = self._app.hot
        hot("POST", "/seed_session", self.seed, summary="Make a session's world from a row", control=True)
        hot("POST", "/verify", self.verify, summary="Score a finished rollout", control=True)
        hot("POST", "/close_session", self.close, summary="Free what a session holds", control=True)
        hot("GET", "/tools", self.tools, summary="Tool schemas")
        if self._host.settings.solutions:
            hot("POST", "/solution", self.solution, summary="The task's reference solution", control=True)
        for tool in self._host.environment.tools.values():
            summary, _, _ = tool.description.partition("\n")
            hot("POST", f"/{tool.name}", self._tool(tool), summary=summary, request_schema=tool.schema)

    async def seed(self, request: HotRequest) -> HotReply:
        """`POST /seed_session`: the whole row."""
        row = _object(request)
        session_id = self._named(request).id or new_session_id()
        reply = await self._host.seed(session_id, row, request.body, self._deadline(request))
        return HotReply(reply, headers=[self._names.cookie(session_id)])

    async def verify(self, request: HotRequest) -> HotReply:
        """`POST /verify`: the row and its response; the row comes back with the verdict added."""
        body = _object(request)
        response = _response(body)
        named = self._named(request)
        added = await self._host.verify(named.id, body, response, self._deadline(request))
        return HotReply(_with_members(request.body, body, added), headers=self._cookies(named))

    async def close(self, request: HotRequest) -> HotReply:
        """`POST /close_session`."""
        named = self._named(request)
        body = _object(request) if request.body.strip() else {}
        session_id = named.id or body.get("session_id")
        if not isinstance(session_id, str):
            raise UsageError("no session to close: send its X-Session-Id header or cookie", param="session_id")
        await self._host.close(session_id)
        return HotReply.json({"session_id": session_id}, headers=self._cookies(named))

    async def tools(self, request: HotRequest) -> HotReply:
        """`GET /tools`."""
        definitions = [tool.definition for tool in self._host.environment.tools.values()]
        return HotReply.json({"environment": self._host.ref.model_dump(), "tools": definitions})

    async def solution(self, request: HotRequest) -> HotReply:
        """`POST /solution`: the session's own, as calls or as the answer's text."""
        found = await self._host.solution(self._named(request).id)
        if isinstance(found, str):
            return HotReply.json({"calls": [], "text": found})
        calls = [{"name": call.name, "arguments": call.arguments} for call in found]
        return HotReply.json({"calls": calls, "text": None})

    def _tool(self, tool: Tool) -> Callable[[HotRequest], Awaitable[HotReply]]:
        call, read, cookie = self._host.call, self._names.read, self._names.cookie

        async def route(request: HotRequest) -> HotReply:
            headers = request.headers
            call_id, budget = headers.get(b"x-call-id"), headers.get(b"x-budget-s")
            given = headers.get(HEADER)
            session_id = read(headers).id if given is None else given.decode("latin-1")
            reply = await call(
                tool, session_id, request.body, call_id.decode("latin-1") if call_id is not None else None, budget
            )
            cookies = [] if given is not None or session_id is None else [cookie(session_id)]
            return HotReply(reply.body, reply.status, cookies, reply.content_type)

        return route

    def _named(self, request: HotRequest) -> Named:
        return self._names.read(request.headers)

    def _cookies(self, named: Named) -> list[tuple[bytes, bytes]]:
        """For clients that keep only the last reply's cookies; one that sends the header needs none."""
        return [] if named.by_header or named.id is None else [self._names.cookie(named.id)]

    def _deadline(self, request: HotRequest) -> Deadline:
        return Deadline.from_header(request.headers.get(b"x-budget-s"), self._budget_s)


def _object(request: HotRequest) -> dict[str, Any]:
    body = request.json()
    if not isinstance(body, dict):
        raise UsageError(f"the body of {request.path} should be a JSON object")
    return body


def _response(body: Mapping[str, Any]) -> Response:
    """The response to score; a bare Responses object stands for a row that has nothing else."""
    given = body.get("response", body if isinstance(body.get("output"), list) else None)
    if not isinstance(given, dict):
        raise UsageError("field 'response' is missing (a Responses object)", param="response")
    try:
        return Response.model_validate(given)
    except ValueError as error:
        raise UsageError(f"field 'response' is no Responses object: {error}", param="response") from None


def _with_members(text: bytes, body: dict[str, Any], members: bytes) -> bytes:
    """The posted object with the verdict's members added; the posted bytes are kept where no name is there twice."""
    added = b"{" + members + b"}"
    verdict = strict_json.loads(added) if body.keys() & _VERDICT_NAMES else None
    if verdict is not None:
        return strict_json.dumps({**body, **verdict}, trusted=True)
    head = text.rstrip()[:-1].rstrip()
    return head + (b"" if head.endswith(b"{") else b",") + members + b"}"


_VERDICT_NAMES = {"reward", "metrics", "reward_components", "reason", "state", "accepted_calls"}


def _short_name(environment: str) -> str:
    """`wordle` of `wordle`, `MyWorld` of `my_package.world:MyWorld`."""
    return environment.rpartition(":")[2].rpartition(".")[2]
