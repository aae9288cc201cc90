"""The tools over MCP; the session is the rollout's."""

from typing import Any

import pytest

from resources_server.environments.warehouse import Warehouse
from tests.resources_server.conftest import Serve, World

ORDER = {"stock": {"bolt": 2}, "order": {"bolt": 2}}


async def rpc(world: World, method: str, params: Any = None, session: str | None = "s", **members: Any) -> Any:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        **({"params": params} if params is not None else {}),
        **members,
    }
    return (await world.post("/mcp", message, session)).json


async def test_a_session_over_mcp(serve: Serve) -> None:
    """Initialise, list, call; a call changes the same world as over HTTP, and a model's mistake is marked as an error."""
    async with serve(Warehouse) as world:
        await world.post("/seed_session", ORDER)
        hello = await rpc(world, "initialize", {"protocolVersion": "2025-03-26", "capabilities": {}})
        assert hello["result"]["protocolVersion"] == "2025-03-26" and "tools" in hello["result"]["capabilities"]
        assert (await world.post("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"})).status == 202
        listed = (await rpc(world, "tools/list"))["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["list_stock", "reserve"]
        assert listed[1]["inputSchema"]["required"] == ["product", "units"]
        made = await rpc(world, "tools/call", {"name": "reserve", "arguments": {"product": "bolt", "units": 2}})
        assert made["result"]["isError"] is False and '"number":1' in made["result"]["content"][0]["text"]
        refused = await rpc(world, "tools/call", {"name": "reserve", "arguments": {"product": "bolt", "units": 1}})
        assert refused["result"]["isError"] is True and "0 are left" in refused["result"]["content"][0]["text"]
        assert (await world.post("/verify", {**ORDER, "response": {"output": []}})).json["reward"] == 1.0
        late = await rpc(world, "tools/call", {"name": "list_stock"})
        assert "has been verified" in late["error"]["message"]


async def test_a_session_is_listed_its_own_tools(serve: Serve) -> None:
    """Those that its row names; a client without a session sees the environment's."""
    row = {**ORDER, "responses_create_params": {"input": "x", "tools": [{"type": "function", "name": "reserve"}]}}
    async with serve(Warehouse) as world:
        await world.post("/seed_session", row)
        assert [tool["name"] for tool in (await rpc(world, "tools/list"))["result"]["tools"]] == ["reserve"]
        assert len((await rpc(world, "tools/list", session=None))["result"]["tools"]) == 2
        assert "no session" in (await rpc(world, "tools/list", session="other"))["error"]["message"]


async def test_the_session_is_bound_to_a_token(serve: Serve) -> None:
    """A client that can only be given a bearer token; without a session nothing is called."""
    async with serve(Warehouse) as world:
        await world.post("/seed_session", ORDER, "secret-session")
        call = {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "list_stock"}}
        with_token = await world.http.post(
            world.url + "/mcp", json=call, headers={"Authorization": "Bearer secret-session"}
        )
        assert (await with_token.json())["result"]["content"][0]["text"] == '{"bolt":2}'
        assert "no session" in (await rpc(world, "tools/call", {"name": "list_stock"}, None))["error"]["message"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, -32700),
        (b"[]", 400, -32600),
        (b'{"id": 1, "method": "ping"}', 400, -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}', 200, -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "verify"}}', 200, -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}', 200, -32602),
    ],
)
async def test_wrong_messages_get_json_rpc_errors(serve: Serve, body: bytes, status: int, code: int) -> None:
    """The codes of the specification; a route of the server is no tool."""
    async with serve(Warehouse) as world:
        reply = await world.post("/mcp", body)
        assert (reply.status, reply.json["error"]["code"]) == (status, code)


async def test_there_is_no_stream_to_get(serve: Serve) -> None:
    """405, as the specification asks of a server without one."""
    async with serve(Warehouse) as world:
        assert (await world.get("/mcp")).status == 405
