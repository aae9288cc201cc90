"""The shape every server of ours has: health, metrics, errors, auth, and plain-ASGI handlers on the paths of a step.

FastAPI is the face (`/docs`, ordinary routes). A route registered with `hot` is answered before FastAPI sees the request: no
dependency solving, no validation layer, the body as bytes. It is in the OpenAPI document all the same.
"""

import asyncio
import contextlib
import hmac
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from wire import logs, strict_json
from wire.errors import MethodNotAllowed, NotFound, TooLarge, TriviumError, Unauthorized, UsageError
from wire.metrics import Metrics

MAX_BODY_BYTES = 256 << 20  # a row with images and token ids of a long episode; past this it is a mistake
HEALTH_PATHS = ("/", "/health", "/livez", "/readyz", "/healthz")

log = logging.getLogger(__name__)


def package_version() -> str:
    """The version of this distribution; `0+source` when it runs from a bare checkout."""
    try:
        return version("trivium")
    except PackageNotFoundError:
        return "0+source"


@dataclass(slots=True)
class HotRequest:
    """A request whose whole body has been read."""

    method: str
    path: str
    body: bytes
    scope: Scope
    receive: Receive
    _headers: dict[bytes, bytes] | None = None

    @property
    def headers(self) -> dict[bytes, bytes]:
        """Lower-case names; the last of several lines with one name."""
        if self._headers is None:
            self._headers = dict(self.scope["headers"])
        return self._headers

    def header(self, name: bytes) -> str | None:
        """One header as text, by its lower-case name."""
        value = self.headers.get(name)
        return value.decode("latin-1") if value is not None else None

    @property
    def query(self) -> bytes:
        """The raw query string."""
        return bytes(self.scope.get("query_string", b""))

    def json(self) -> Any:
        """The body as a JSON value.

        Raises:
            JSONError: it is none; the server answers 400 with the sentence.
        """
        return strict_json.loads(self.body)

    async def disconnected(self) -> None:
        """Returns when the caller has gone."""
        while (await self.receive())["type"] != "http.disconnect":
            pass


@dataclass(slots=True)
class HotReply:
    """An answer that is ready."""

    body: bytes = b""
    status: int = 200
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    content_type: bytes = b"application/json"

    @classmethod
    def json(cls, value: Any, status: int = 200, headers: list[tuple[bytes, bytes]] | None = None) -> "HotReply":
        """An answer from a JSON value."""
        return cls(strict_json.dumps(value), status, headers or [])


@dataclass(slots=True)
class StreamReply:
    """An answer that is sent as it comes; server-sent events unless told otherwise."""

    chunks: AsyncIterator[bytes]
    status: int = 200
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    content_type: bytes = b"text/event-stream; charset=utf-8"


Handler = Callable[[HotRequest], Awaitable[HotReply | StreamReply]]


@dataclass(frozen=True, slots=True)
class _Route:
    handler: Handler
    control: bool


class App(FastAPI):
    """One of our servers.

    Args:
        name: The server's name in the config; told by `/health`, so that a launcher knows it from a stranger.
        token: Bearer token that control routes ask for; None where the config says `auth: none`.
        depends_on: Name and URL of each server this one calls, for `/health`.
    """

    def __init__(self, name: str, *, token: str | None = None, depends_on: dict[str, str] | None = None) -> None:
        super().__init__(title=f"Trivium {name}", version=package_version(), lifespan=_lifespan)
        self.server_name = name
        self.metrics = Metrics()
        self.facts: dict[str, Any] = {}
        """More to say in `/health`."""
        self.token = token
        self._authorization = f"Bearer {token}".encode() if token else None
        self._api_key = token.encode() if token else None
        self._depends_on = depends_on or {}
        self._hot: dict[tuple[str, str], _Route] = {}
        self._prefixes: list[tuple[str, _Route]] = []
        self._documents: list[tuple[str, str, dict[str, Any]]] = []
        self.starters: list[Callable[[], Awaitable[None]]] = []
        self.stoppers: list[Callable[[], Awaitable[None]]] = []
        self.refusal: UsageError | None = None
        """Why it did not start, where that is for its user to mend."""
        for path in HEALTH_PATHS:
            self.add_api_route(
                path, self._health, include_in_schema=path == "/health", summary="Ready, and who this is"
            )
        self.add_api_route("/metrics", self._metrics, summary="Prometheus text")
        self.add_exception_handler(TriviumError, _on_error)
        self.add_exception_handler(strict_json.JSONError, _on_error)
        self.add_exception_handler(HTTPException, self._on_no_route)

    def hot(
        self,
        method: str,
        path: str,
        handler: Handler,
        *,
        summary: str,
        control: bool = False,
        request_schema: dict[str, Any] | None = None,
        response_schema: dict[str, Any] | None = None,
    ) -> None:
        """Answer `method path` (an exact path) with a plain handler.

        Args:
            method: `GET` or `POST`.
            path: Compared as text.
            handler: Gets the whole body as bytes; a `TriviumError` it raises becomes that error's JSON answer.
            summary: For `/docs`.
            control: Needs the stack's token, unless there is none.
            request_schema: JSON schema of the body, for `/docs`.
            response_schema: JSON schema of the answer, for `/docs`.
        """
        self._hot[method, path] = _Route(handler, control)
        self._documents.append((method.lower(), path, _document(summary, request_schema, response_schema)))

    def hot_prefix(self, prefix: str, handler: Handler, *, summary: str, control: bool = False) -> None:
        """Answer every path below `prefix` (which ends in `/`), any method, with one handler. Exact paths win."""
        self._prefixes.append((prefix, _Route(handler, control)))
        self._documents.append(("post", prefix + "{path}", _document(summary, None, None)))

    def on_start(self, starter: Callable[[], Awaitable[None]]) -> None:
        """Await `starter` before the first request."""
        self.starters.append(starter)

    def on_stop(self, stopper: Callable[[], Awaitable[None]]) -> None:
        """Await `stopper` after the last request; the last one registered goes first."""
        self.stoppers.append(stopper)

    def openapi(self) -> dict[str, Any]:
        """FastAPI's document with the hot routes in it."""
        if self.openapi_schema is None:
            schema = super().openapi()
            for method, path, document in self._documents:
                schema["paths"].setdefault(path, {})[method] = document
            self.openapi_schema = schema
        return self.openapi_schema

    def authorise(self, request: HotRequest) -> None:
        """Check the token of a control route.

        Raises:
            Unauthorized: there is none, or another one.
        """
        if self._authorization is None or self._api_key is None:
            return
        given = request.headers.get(b"authorization")
        if given is not None and hmac.compare_digest(given, self._authorization):
            return
        key = request.headers.get(b"x-api-key")  # what Anthropic's clients send
        if key is not None and hmac.compare_digest(key, self._api_key):
            return
        raise Unauthorized(
            f"{self.server_name}: {request.path} needs the stack's token (TRIVIUM_TOKEN, as Authorization: Bearer …)"
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI: hot routes here, everything else in FastAPI."""
        if scope["type"] == "http":
            route = self._hot.get((scope["method"], scope["path"])) or self._below(scope["path"])
            if route is not None:
                await self._answer(route, scope, receive, send)
                return
        await super().__call__(scope, receive, self._without_trace(send) if scope["type"] == "lifespan" else send)

    def _without_trace(self, send: Send) -> Send:
        """What is told of a start that failed: nothing where `refusal` says it in a sentence, else Starlette's traceback."""

        async def tell(message: Message) -> None:
            refused = message["type"] == "lifespan.startup.failed" and self.refusal is not None
            await send({**message, "message": ""} if refused else message)

        return tell

    def _below(self, path: str) -> _Route | None:
        for prefix, route in self._prefixes:
            if path.startswith(prefix):
                return route
        return None

    async def _answer(self, route: _Route, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            request = HotRequest(scope["method"], scope["path"], await _body(receive), scope, receive)
            logs.bind(request.header(b"x-session-id"))
            if route.control:
                self.authorise(request)
            reply = await route.handler(request)
        except TriviumError as error:
            reply = HotReply.json(error.body(), error.status)
        except strict_json.JSONError as error:
            reply = HotReply.json(_bad_json(scope["path"], error), 400)
        except _GoneError:
            return
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            known = (
                scope["method"],
                scope["path"],
            ) in self._hot  # paths below a prefix hold ids: each would stay for ever
            self.metrics.count("internal_errors", path=scope["path"] if known else "below a prefix")
            reply = HotReply.json(
                TriviumError(f"{self.server_name} failed at {scope['path']}; its log says why").body(), 500
            )
        await _send(reply, send)

    async def _on_no_route(self, request: Request, error: Exception) -> Response:
        """Starlette's 404 and 405 in our words; a hot path asked for by another method is no route to it, so it said 404."""
        assert isinstance(error, HTTPException)
        path = request.url.path
        allowed = [method for method, known in self._hot if known == path]
        allowed += (error.headers or {}).get("Allow", "").split(", ") if error.status_code == 405 else []
        if allowed:
            methods = ", ".join(sorted(allowed))
            refusal = MethodNotAllowed(f"{request.method} {path}: {self.server_name} answers {methods} here")
            return JSONResponse(refusal.body(), refusal.status, {"Allow": methods})
        missing = NotFound(f"{request.method} {path}: {self.server_name} has no such route (/docs lists them)")
        return JSONResponse(missing.body(), missing.status)

    async def _health(self) -> dict[str, Any]:
        body = {"status": "ok", "server": self.server_name, "version": self.version, "depends_on": self._depends_on}
        return body | self.facts

    async def _metrics(self) -> Response:
        return PlainTextResponse(self.metrics.text(), media_type="text/plain; version=0.0.4")


class _GoneError(Exception):
    """The caller left before its body was whole."""


async def _body(receive: Receive) -> bytes:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise _GoneError
    if not message.get("more_body"):
        return message.get("body", b"")  # type: ignore[no-any-return]  # ASGI: bytes
    chunks, size = [message.get("body", b"")], len(message.get("body", b""))
    while message.get("more_body"):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _GoneError
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > MAX_BODY_BYTES:
            raise TooLarge(f"the body is over {MAX_BODY_BYTES >> 20} MiB")
    return b"".join(chunks)


async def _send(reply: HotReply | StreamReply, send: Send) -> None:
    if isinstance(reply, HotReply):
        length = (b"content-length", str(len(reply.body)).encode())
        headers = [(b"content-type", reply.content_type), length, *reply.headers]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})
        return
    headers = [(b"content-type", reply.content_type), (b"cache-control", b"no-store"), *reply.headers]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    try:
        async for chunk in reply.chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    finally:
        if isinstance(reply.chunks, AsyncGenerator):
            await reply.chunks.aclose()
    await send({"type": "http.response.body", "body": b""})


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    assert isinstance(app, App)
    try:
        for starter in app.starters:
            await starter()
    except UsageError as error:
        app.refusal = error
        raise
    try:
        yield
    finally:
        for stopper in reversed(app.stoppers):
            with contextlib.suppress(asyncio.CancelledError):
                await stopper()


async def _on_error(request: Request, error: Exception) -> Response:
    if isinstance(error, TriviumError):
        return JSONResponse(error.body(), error.status)
    return JSONResponse(_bad_json(request.url.path, error), 400)


def _bad_json(path: str, error: Exception) -> dict[str, Any]:
    message = f"the body sent to {path} is not JSON: {error}"
    return {"error": {"message": message, "type": "invalid_request_error", "code": "invalid_json", "param": None}}


def _document(summary: str, request: dict[str, Any] | None, response: dict[str, Any] | None) -> dict[str, Any]:
    answer = {"description": "Answer", "content": {"application/json": {"schema": response or {}}}}
    document: dict[str, Any] = {"summary": summary, "responses": {"200": answer}}
    if request is not None:
        document["requestBody"] = {"required": True, "content": {"application/json": {"schema": request}}}
    return document


def no_such_path(request: HotRequest) -> NotFound:
    """The error for a path below a prefix that means nothing."""
    return NotFound(f"{request.method} {request.path}: there is no such route")
