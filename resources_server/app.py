"""HTTP face of an environment: its sessions, one route per tool, its verdict."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from resources_server import nemo_gym
from resources_server.environment import Environment
from resources_server.game import Step
from resources_server.host import Host
from resources_server.mcp import Mcp
from resources_server.memory_sessions import MemorySessions
from resources_server.sessions import SessionStore
from resources_server.settings import ResourcesServerSettings
from resources_server.tasks import Tasks
from resources_server.tools import Tool
from wire import plugins, strict_json
from wire.aggregate import aggregate_request
from wire.app import App, HotReply, HotRequest
from wire.config import Config, bundled
from wire.deadline import Deadline
from wire.errors import UsageError
from wire.responses import Response
from wire.session import HEADER, Named, SessionNames, new_session_id

ENVIRONMENTS = "resources_server.environments"
ROOM = "resources_server"


def build(config: Config, urls: dict[str, str], token: str | None, name: str) -> App:
    """The server that a config describes; `name` is `resources_server`, or `resources_server.<environment>`."""
    settings = config.section(ROOM, ResourcesServerSettings)
    if settings.environment is None:
        raise UsageError(
            f"{config.source}: resources_server.environment is missing", param="resources_server.environment"
        )
    environment = plugins.load(ENVIRONMENTS, settings.environment, Environment)
    called = name.partition(".")[2] or plugins.short_name(settings.environment)
    dataset = (config.data.get("rollouts") or {}).get("dataset")
    return app_for(environment, settings, token=token, server=name, name=called, dataset=_dataset(dataset, called))


def app_for(
    environment: type[Environment[Any]],
    settings: ResourcesServerSettings | None = None,
    *,
    token: str | None = None,
    server: str = ROOM,
    name: str | None = None,
    secret: str | None = None,
    dataset: Path | None = None,
) -> App:
    """The server for an environment class.

    Args:
        environment: The class; bound here to the options in `settings`.
        settings: Defaults where None.
        token: What control routes ask for; None for nothing.
        server: The server's name, told by `/health`.
        name: The environment's name, told by the seed reply.
        secret: Signs session cookies; random where None and not in the environment variables.
        dataset: Rows for `/tasks`.

    Raises:
        UsageError: The options are wrong, or the store cannot serve several workers.
    """
    settings = settings or ResourcesServerSettings(environment=environment.__name__)
    app = App(server, token=token)
    called, bound = name or environment.__name__, _bound(environment, settings)
    host = Host(called, bound, _store(called, bound, settings), settings, app.metrics)
    names = SessionNames(server, secret)
    Routes(app, host, names, Tasks(dataset)).add()

    async def start() -> None:
        await host.start()
        if host.store.secret is not None:
            names.share(host.store.secret)

    app.facts = {"environment": host.ref.model_dump()}
    app.on_start(start)
    app.on_stop(host.stop)
    return app


def _bound(environment: type[Environment[Any]], settings: ResourcesServerSettings) -> type[Environment[Any]]:
    """The class with its options, and with troubles where they are asked for."""
    bound = environment.bound(settings.options)
    if settings.augment is None:
        return bound
    if settings.augment.failing and settings.sessions.url != "memory":
        raise UsageError(
            "augment.failing counts a session's calls in the process: it needs sessions.url=memory",
            param="augment.failing",
        )
    from resources_server.augment import augmented  # few want it

    return augmented(bound, settings.augment)


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
        tasks: Rows that come with the environment.
    """

    def __init__(self, app: App, host: Host, names: SessionNames, tasks: Tasks) -> None:
        self._app = app
        self._host = host
        self._names = names
        self._tasks = tasks
        self._budget_s = max(host.settings.tool_timeout_s, host.settings.verify_timeout_s, host.settings.seed_timeout_s)

    def add(self) -> None:
        """Register all of them."""
        hot = self._app.hot
        hot("POST", "/seed_session", self.seed, summary="Make a session's world from a row", control=True)
        hot("POST", "/verify", self.verify, summary="Score a finished rollout", control=True)
        hot("POST", "/close_session", self.close, summary="Free what a session holds", control=True)
        hot("POST", "/aggregate_metrics", self.aggregate_metrics, summary="Figures over rollouts", control=True)
        hot("GET", "/tools", self.tools, summary="Tool schemas")
        hot("GET", "/tasks", self.tasks, summary="Bundled rows, ground truth included", control=True)
        hot("POST", "/mcp", Mcp(self._host, self._names).post, summary="The tools over MCP (streamable HTTP)")
        hot("GET", "/mcp", _no_stream, summary="405: there is no stream to listen to")
        if self._host.step is not None:
            hot("POST", "/reset", self.reset, summary="The first observation of a game", control=True)
            hot("POST", "/step", self._tool(self._host.step), summary="One move of a game")
            hot("POST", "/close", self.close, summary="As /close_session", control=True)
        if self._host.settings.solutions:
            hot("POST", "/solution", self.solution, summary="The task's reference solution", control=True)
        for tool in self._host.environment.served().values():
            summary, _, _ = tool.description.partition("\n")
            hot("POST", f"/{tool.name}", self._tool(tool), summary=summary, request_schema=tool.schema)

    async def seed(self, request: HotRequest) -> HotReply:
        """`POST /seed_session`: the whole row, flat or in NeMo Gym's typed form."""
        body = _object(request)
        typed = nemo_gym.typed_session(body)
        session_id = typed or self._named(request).id or new_session_id()
        reply = await self._seeded(session_id, body, request)
        reply = nemo_gym.seed_reply(session_id, reply) if typed else reply
        return HotReply(reply, headers=[self._names.cookie(session_id)])

    async def reset(self, request: HotRequest) -> HotReply:
        """`POST /reset`: the row seeds a session; without one, the first observation of the session that is there."""
        body = _object(request) if request.body.strip() else {}
        session_id = self._named(request).id or new_session_id()
        seeded = await self._seeded(session_id, body, request) if body else await self._host.fresh(session_id)
        first = Step(strict_json.loads(seeded).get("observation"), info={"session_id": session_id})
        return HotReply.json(first.reply(), headers=[self._names.cookie(session_id)])

    async def _seeded(self, session_id: str, body: dict[str, Any], request: HotRequest) -> bytes:
        row = nemo_gym.row_of(body)
        text = request.body if row is body else strict_json.dumps(row)
        return await self._host.seed(session_id, row, text, self._deadline(request))

    async def verify(self, request: HotRequest) -> HotReply:
        """`POST /verify`: the row and its response; the row comes back with the verdict added."""
        body = _object(request)
        response = _response(body)
        named = self._named(request)
        added = await self._host.verify(named.id, body, response, self._deadline(request))
        return HotReply(_with_members(request.body, body, added), headers=self._cookies(named))

    async def close(self, request: HotRequest) -> HotReply:
        """`POST /close_session`."""
        body = _object(request) if request.body.strip() else {}
        typed = nemo_gym.typed_session(body)
        named = Named(typed) if typed else self._named(request)
        session_id = named.id or body.get("session_id")
        if not isinstance(session_id, str):
            raise UsageError("no session to close: send its X-Session-Id header or cookie", param="session_id")
        await self._host.close(session_id)
        return HotReply.json({nemo_gym.SESSION if typed else "session_id": session_id}, headers=self._cookies(named))

    async def aggregate_metrics(self, request: HotRequest) -> HotReply:
        """`POST /aggregate_metrics`: `{verify_responses}` -> `{group_level_metrics, agent_metrics, key_metrics}`."""
        return HotReply.json(aggregate_request(request.json()))

    async def tasks(self, request: HotRequest) -> HotReply:
        """`GET /tasks?offset=&limit=`."""
        return HotReply.json(await asyncio.to_thread(self._tasks.page, request.query))

    async def tools(self, request: HotRequest) -> HotReply:
        """`GET /tools`."""
        definitions = [tool.definition for tool in self._host.environment.tools.values()]
        return HotReply.json({"environment": self._host.ref.model_dump(), "tools": definitions})

    async def solution(self, request: HotRequest) -> HotReply:
        """`POST /solution`: the session's own, as calls or as the answer's text."""
        found = await self._host.solution(self._named(request).id)
        if isinstance(found, str):
            return HotReply.json({"calls": [], "text": found})
        calls = [{"name": e.name, "arguments": e.arguments} | ({"together": True} if e.together else {}) for e in found]
        return HotReply.json({"calls": calls, "text": None})

    def _tool(self, tool: Tool) -> Callable[[HotRequest], Awaitable[HotReply]]:
        call, read, cookie = self._host.calls.call, self._names.read, self._names.cookie

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


async def _no_stream(request: HotRequest) -> HotReply:
    """MCP's clients ask whether there is one, and take 405 for no."""
    return HotReply(status=405, headers=[(b"allow", b"POST")])


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


_VERDICT_NAMES = {"reward", "metrics", "reward_components", "reason", "state", "accepted_calls", "augmentation"}


def _dataset(configured: Any, environment: str) -> Path:
    path = Path(str(configured)) if configured else Path("data", environment, "example.jsonl")
    return path if path.is_absolute() or path.is_file() else bundled(*path.parts)
