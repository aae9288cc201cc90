"""The same tools over the Model Context Protocol: streamable HTTP, one JSON answer per request, no stream of its own.

Source: MCP specification 2025-06-18, transports and tools. The session is the rollout's: its id in `X-Session-Id`, or as the bearer token
that every MCP client can be given. Listing tools needs none; calling them does.
"""

from typing import Any

from resources_server.host import Host
from resources_server.sessions import Reply
from wire import strict_json
from wire.app import HotReply, HotRequest, package_version
from wire.errors import TriviumError
from wire.session import SessionNames

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603


class RpcError(Exception):
    """A JSON-RPC error answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Mcp:
    """The handler of `POST /mcp`.

    Args:
        host: Whose tools.
        names: How a request says which session it means.
    """

    def __init__(self, host: Host, names: SessionNames) -> None:
        self._host = host
        self._names = names

    async def post(self, request: HotRequest) -> HotReply:
        """One JSON-RPC message; notifications and answers are accepted with 202 and no body."""
        try:
            message = strict_json.loads(request.body)
        except strict_json.JSONError as error:
            return _answer({"id": None, "error": {"code": PARSE_ERROR, "message": str(error)}}, 400)
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            wrong = {"code": INVALID_REQUEST, "message": "a JSON-RPC 2.0 message is expected; batches are not taken"}
            return _answer({"id": None, "error": wrong}, 400)
        if "id" not in message or "method" not in message:
            return HotReply(status=202)
        try:
            result = await self._result(message["method"], _params(message), request)
            return _answer({"id": message["id"], "result": result})
        except RpcError as error:
            return _answer({"id": message["id"], "error": {"code": error.code, "message": str(error)}})

    async def _result(self, method: Any, params: dict[str, Any], request: HotRequest) -> dict[str, Any]:
        match method:
            case "initialize":
                return self._initialize(params)
            case "ping":
                return {}
            case "tools/list":
                return {"tools": await self._list(request)}
            case "tools/call":
                return await self._call(params, request)
        raise RpcError(NO_METHOD, f"there is no method {method!r} here")

    async def _list(self, request: HotRequest) -> list[dict[str, Any]]:
        """The session's tools; the environment's, where the client has no session yet."""
        tools, session_id = self._host.environment.served(), self._session(request)
        try:
            offered = await self._host.offered(session_id) if session_id is not None else frozenset(tools)
        except TriviumError as error:
            raise RpcError(INTERNAL_ERROR, str(error)) from error
        return [_listed(tool.definition) for name, tool in tools.items() if name in offered]

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": f"trivium {self._host.ref.name}", "version": package_version()},
        }

    async def _call(self, params: dict[str, Any], request: HotRequest) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments")
        tool = self._host.environment.served().get(name) if isinstance(name, str) else None
        if tool is None:
            raise RpcError(INVALID_PARAMS, f"there is no tool {name!r}")
        sent = strict_json.dumps({} if arguments is None else arguments)
        try:
            reply = await self._host.calls.call(
                tool, self._session(request), sent, None, request.headers.get(b"x-budget-s")
            )
        except TriviumError as error:
            raise RpcError(INTERNAL_ERROR, str(error)) from error
        return _content(reply)

    def _session(self, request: HotRequest) -> str | None:
        named = self._names.read(request.headers).id
        bearer = request.headers.get(b"authorization", b"")
        if named is None and bearer.lower().startswith(b"bearer "):
            return bearer[len(b"bearer ") :].strip().decode("latin-1")
        return named


def _params(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params", {})
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params should be an object")
    return params


def _listed(definition: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": definition["name"],
        "description": definition["description"],
        "inputSchema": definition["parameters"],
    }


def _content(reply: Reply) -> dict[str, Any]:
    """A tool's reply; what the model did wrong is its output too, marked as an error."""
    if reply.status >= 500:
        raise RpcError(INTERNAL_ERROR, strict_json.loads(reply.body)["error"]["message"])
    return {"content": [{"type": "text", "text": reply.body.decode()}], "isError": reply.status != 200}


def _answer(members: dict[str, Any], status: int = 200) -> HotReply:
    return HotReply.json({"jsonrpc": "2.0", **members}, status)
