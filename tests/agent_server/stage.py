"""Two small servers for the agent's tests: a model that plays given turns, and a counter world. Both keep what they were sent."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from agent_server.agent import Agent
from agent_server.agents.tool_loop import ToolLoop
from agent_server.app import make_app
from agent_server.settings import AgentServerSettings
from wire import strict_json
from wire.testing import serving

LOST = 0  # as a status: the connection breaks in the middle of the answer
TOOLS = ("get_weather", "increment", "echo")


def text(words: str) -> dict[str, Any]:
    """A message item."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}]}


def call(name: str, arguments: str = "{}", call_id: str = "call_1") -> dict[str, Any]:
    """A function_call item."""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


THINKING = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]}
ROW: dict[str, Any] = {"task_id": "t1", "responses_create_params": {"input": "Count."}}


@dataclass
class Sent:
    """A request that a server got."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as a value."""
        return strict_json.loads(self.body)


Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]


@dataclass
class Server:
    """A bare ASGI app: remembers each request, answers what `answer` gives (bytes go out as they are)."""

    sent: list[Sent] = field(default_factory=list)

    async def answer(self, request: Sent) -> Answer:
        """Status, body and, optionally, headers."""
        raise NotImplementedError

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        message = await receive()
        body = message["body"]
        while message.get("more_body"):
            message = await receive()
            body += message["body"]
        headers = {key.decode(): value.decode() for key, value in scope["headers"]}
        request = Sent(scope["path"], headers, body)
        self.sent.append(request)
        status, value, *more = await self.answer(request)
        if status == LOST:  # an answer that breaks off: uvicorn closes the connection
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"100")]})
            await send({"type": "http.response.body", "body": b"{", "more_body": True})
            return
        raw = value if isinstance(value, bytes) else strict_json.dumps(value)
        extra = [(key.encode(), each.encode()) for key, each in (more[0] if more else {}).items()]
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"x"), *extra]})
        await send({"type": "http.response.body", "body": raw})

    def to(self, path: str) -> list[Sent]:
        """The requests to one path."""
        return [each for each in self.sent if each.path == path]


Turn = list[dict[str, Any]] | dict[str, Any] | Answer


@dataclass
class Model(Server):
    """A model interface that plays turns: the items of a reply, a whole reply, or (status, body); then it says "done".

    A turn may be a function of the request.
    """

    turns: list[Any] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=lambda: {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25})
    tokens: list[Any] = field(default_factory=list)

    async def answer(self, request: Sent) -> Answer:
        """The next turn."""
        turn: Any = self.turns.pop(0) if self.turns else [text("done")]
        if isinstance(turn, Callable):  # type: ignore[arg-type]
            turn = turn(request)
            turn = await turn if asyncio.iscoroutine(turn) else turn
        if isinstance(turn, tuple):
            return turn
        reply = turn if isinstance(turn, dict) else {"output": turn}
        ours = {
            "tokens": self.tokens.pop(0) if self.tokens else None,
            "model": "m",
            "backend": "b",
            "policy_version": "7",
        }
        number = len(self.sent)
        whole = {
            "id": f"resp_{number}",
            "object": "response",
            "status": "completed",
            "usage": self.usage,
            "trivium": ours,
        }
        return 200, {**whole, **reply}


@dataclass
class Counter(Server):
    """A counter per session with an `increment`, an `echo`, and whatever a test adds in `on`."""

    seed: dict[str, Any] = field(default_factory=dict)
    """More to say in the seed reply; a None takes a key away."""
    on: dict[str, Any] = field(default_factory=dict)
    """Path to an answer, or to a function of the request that gives one."""
    counts: dict[str, int] = field(default_factory=dict)

    async def answer(self, request: Sent) -> Answer:
        """As our own resources server would."""
        if request.path in self.on:
            given = self.on[request.path]
            given = given(request) if callable(given) else given
            return await given if asyncio.iscoroutine(given) else given  # type: ignore[no-any-return]
        session = request.headers.get("x-session-id", "")
        if request.path == "/seed_session":
            tools = [{"type": "function", "name": name, "parameters": {"type": "object"}} for name in TOOLS]
            reply = {"session_id": session, "tools": tools, "remembers_calls": True, **self.seed}
            self.counts[session] = 0
            return 200, {key: value for key, value in reply.items() if value is not None}
        if request.path == "/verify":
            return 200, {
                **request.json,
                "reward": float(self.counts[session]),
                "metrics": {"count": self.counts[session]},
            }
        if request.path == "/increment":
            self.counts[session] += request.json.get("by", 1)
            return 200, self.counts[session]
        if request.path == "/close_session":
            return 200, {}
        return 200, request.body

    @property
    def calls(self) -> list[Sent]:
        """What was sent to tools."""
        return [each for each in self.sent if each.path not in ("/seed_session", "/verify", "/close_session")]


@dataclass
class Stage:
    """An agent server between the two, and a way to post to it."""

    model: Any
    world: Any
    url: str
    world_url: str
    http: aiohttp.ClientSession

    async def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        """Status and body of a POST to the agent server."""
        raw = body if isinstance(body, bytes) else strict_json.dumps(body)
        async with self.http.post(self.url + path, data=raw, headers=headers) as answer:
            return answer.status, strict_json.loads(await answer.read())

    async def run(self, row: dict[str, Any] | None = None, headers: dict[str, str] | None = None) -> dict[str, Any]:
        """The line of one rollout."""
        status, line = await self.post("/run", row or ROW, headers)
        assert status == 200, line
        assert isinstance(line, dict)
        return line


@contextlib.asynccontextmanager
async def stage(
    *turns: Any,
    model: Any = None,
    world: Any = None,
    agent: type[Agent] = ToolLoop,
    urls: dict[str, str] | None = None,
    **settings: Any,
) -> AsyncIterator[Stage]:
    """The three servers; `turns` are the model's."""
    model = model or Model(turns=list(turns))
    world = world or Counter()
    section = AgentServerSettings.model_validate(settings)
    async with serving(model_interface=model, resources_server=world) as found:
        app = make_app(section, agent(section), {**found, **(urls or {})})
        async with serving(agent_server=app) as served, aiohttp.ClientSession() as http:
            yield Stage(model, world, served["agent_server"], found["resources_server"], http)


def outputs(line: dict[str, Any]) -> list[str]:
    """What the model was told by its calls, in order."""
    return [item["output"] for item in line["response"]["output"] if item["type"] == "function_call_output"]
