"""A model interface on a free port, and what its tests ask of it."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from model_interface.app import model_interface
from model_interface.settings import ModelInterfaceSettings
from model_interface.streaming import SSEParser
from wire.app import App
from wire.testing import one_server

TOOL = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


class Caller:
    """Posts to one server; (status, JSON body) of the answer."""

    def __init__(self, url: str, http: aiohttp.ClientSession, app: App) -> None:
        self.url, self.http, self.app = url, http, app

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.post(self.url + path, json=body, headers=sent) as answer:
            return answer.status, await answer.json(content_type=None)

    async def ask(self, body: Any, **headers: str) -> Any:
        status, reply = await self.post("/v1/responses", body, **headers)
        assert status == 200, reply
        return reply

    async def streamed(self, body: Any) -> Any:
        """The response that a stream ends with."""
        async with self.http.post(self.url + "/v1/responses", json={**body, "stream": True}) as answer:
            parser = SSEParser()
            events = [event.json() for event in [*parser.feed(await answer.read()), *parser.close()] if not event.done]
        return events[-1]["response"]

    async def go_on(self, previous: Any, *items: Any, **headers: str) -> Any:
        """The next step of a conversation, as the agent asks for it."""
        body = {"previous_response_id": previous["id"], "input": list(items)}
        return await self.ask(body, X_Inherit_Params="1", **headers)

    async def get(self, path: str) -> tuple[int, str]:
        async with self.http.get(self.url + path) as answer:
            return answer.status, await answer.text()


@contextlib.asynccontextmanager
async def interface(**settings: Any) -> AsyncIterator[Caller]:
    """A model interface with these settings."""
    app = model_interface(ModelInterfaceSettings(**settings), urls=settings.pop("urls", None))
    async with one_server(app) as url, aiohttp.ClientSession() as http:
        yield Caller(url, http, app)


@pytest.fixture
def output() -> Any:
    """Makes the output of a call."""

    def of(call: Any, text: str = "sun") -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": call["call_id"], "output": text}

    return of
