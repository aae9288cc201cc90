"""The bare HTTP stack: ASGI apps and a client that carry recorded bytes along the hops of a rollout and do nothing else.

The client is aiohttp's, or (`own`) that of our servers.

`python -m benchmarks.bare` serves one role; its first line on standard input says which.
"""

import asyncio
import base64
import json
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn
import uvloop

from wire.client import Client
from wire.deadline import Deadline

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
ASGI = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

STEP = b"x-step"  # which recorded exchange is meant
JSON_HEADERS = [(b"content-type", b"application/json")]


@dataclass(frozen=True)
class Exchange:
    """One request and its answer, as they went over the wire."""

    path: str
    request: bytes
    answer: bytes

    def as_json(self) -> dict[str, str]:
        """For the trace file."""
        return {
            "path": self.path,
            "request": base64.b64encode(self.request).decode(),
            "answer": base64.b64encode(self.answer).decode(),
        }

    @classmethod
    def from_json(cls, value: dict[str, str]) -> "Exchange":
        """From the trace file."""
        return cls(value["path"], base64.b64decode(value["request"]), base64.b64decode(value["answer"]))


def tapped(app: ASGI, exchanges: list[Exchange]) -> ASGI:
    """The app, with every POST written down."""

    async def tap(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await app(scope, receive, send)
            return
        request, answer = bytearray(), bytearray()

        async def heard() -> dict[str, Any]:
            message = await receive()
            request.extend(message.get("body", b""))
            return message

        async def said(message: dict[str, Any]) -> None:
            answer.extend(message.get("body", b""))
            await send(message)

        await app(scope, heard, said)
        exchanges.append(Exchange(scope["path"], bytes(request), bytes(answer)))

    return tap


async def body_of(receive: Receive) -> bytes:
    """The whole request body."""
    chunks = []
    while True:
        message = await receive()
        chunks.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(chunks)


async def answer(send: Send, body: bytes) -> None:
    """Status 200 with a body."""
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [*JSON_HEADERS, (b"content-length", str(len(body)).encode())],
        }
    )
    await send({"type": "http.response.body", "body": body})


def plain(handle: Callable[[bytes, dict[bytes, bytes], str], Awaitable[bytes]]) -> ASGI:
    """An ASGI app from a function of body, headers and path."""

    async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        await answer(send, await handle(await body_of(receive), dict(scope["headers"]), scope["path"]))

    return app


def stub(steps: int) -> ASGI:
    """A model that calls `increment_counter` once a step and then answers in text."""
    usage = {"prompt_tokens": 50, "completion_tokens": 12, "total_tokens": 62}

    def completion(message: dict[str, Any], finish: str) -> bytes:
        choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
        body = {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "stub",
            "choices": [choice],
            "usage": usage,
        }
        return json.dumps(body).encode()

    calls = []
    for step in range(steps):
        function = {"name": "increment_counter", "arguments": '{"count": 1}'}
        message = {"content": None, "tool_calls": [{"id": f"call_{step}", "type": "function", "function": function}]}
        calls.append(completion(message, "tool_calls"))
    done = completion({"content": "The counter is at its goal."}, "stop")

    async def handle(body: bytes, headers: dict[bytes, bytes], path: str) -> bytes:
        step = body.count(b'"tool_call_id"')
        return calls[step] if step < steps else done

    return plain(handle)


class Floor:
    """The three servers' hops with recorded bytes."""

    def __init__(self, role: str, urls: dict[str, str], trace: Path, *, own: bool) -> None:
        self.role, self.urls, self.own = role, urls, own
        self.client = Client(urls)
        recorded = json.loads(trace.read_text())
        self.trace = {name: [Exchange.from_json(each) for each in exchanges] for name, exchanges in recorded.items()}

    async def model_interface(self, body: bytes, headers: dict[bytes, bytes], path: str) -> bytes:
        """One call upstream for one call from the agent."""
        step = int(headers.get(STEP, b"0"))
        await self.post("upstream", self.trace["stub"][step], step)
        return self.trace["model_interface"][step].answer

    async def resources_server(self, body: bytes, headers: dict[bytes, bytes], path: str) -> bytes:
        """The recorded answer."""
        return self.trace["resources_server"][int(headers.get(STEP, b"0"))].answer

    async def agent_server(self, body: bytes, headers: dict[bytes, bytes], path: str) -> bytes:
        """Seed, then model and tool in turn, verify, close: in the order they were recorded."""
        asks = self.trace["model_interface"]
        world = self.trace["resources_server"]
        tools = [
            index for index, each in enumerate(world) if each.path not in {"/seed_session", "/verify", "/close_session"}
        ]
        others = [index for index in range(len(world)) if index not in tools]
        await self.post("resources_server", world[others[0]], others[0])
        for step, ask in enumerate(asks):
            await self.post("model_interface", ask, step)
            if step < len(tools):
                await self.post("resources_server", world[tools[step]], tools[step])
        for index in others[1:]:
            await self.post("resources_server", world[index], index)
        return self.trace["agent_server"][0].answer

    async def post(self, server: str, exchange: Exchange, step: int) -> None:
        """Send recorded bytes and read the answer."""
        if self.own:
            await self.client.post(
                server, exchange.path, exchange.request, {"x-step": str(step)}, deadline=Deadline(60)
            )
            return
        headers = {"content-type": "application/json", "x-step": str(step)}
        async with self.http.post(self.urls[server] + exchange.path, data=exchange.request, headers=headers) as reply:
            await reply.read()

    async def serve(self, bound: socket.socket) -> None:
        """Serve this role until standard input ends."""
        async with self.client, aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=4096)) as self.http:
            await serve(plain(getattr(self, self.role)), bound)


async def serve(app: ASGI, bound: socket.socket) -> None:
    """uvicorn with uvloop and httptools, until standard input ends; nothing on that it can do without."""
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            backlog=8192,
            proxy_headers=False,
            server_header=False,
            date_header=False,
        )
    )
    loop = asyncio.get_running_loop()
    loop.run_in_executor(None, _stop_at_end_of_input, server)
    await server.serve([bound])


def _stop_at_end_of_input(server: uvicorn.Server) -> None:
    sys.stdin.read()
    server.should_exit = True


def main() -> None:
    """One role, told by the first line of standard input."""
    start = json.loads(sys.stdin.readline())
    bound = socket.socket(fileno=start["fd"])
    if start["role"] == "stub":
        uvloop.run(serve(stub(start["steps"]), bound))
    else:
        uvloop.run(Floor(start["role"], start["urls"], Path(start["trace"]), own=start["own"]).serve(bound))


if __name__ == "__main__":
    main()
