"""The model interface as a server: routes, and what is made of a config. What they do is in `calls`."""

import time
from typing import Any

from model_interface.backend import Backend
from model_interface.calls import Calls, write
from model_interface.settings import ModelInterfaceSettings
from wire import plugins, strict_json
from wire.app import App, HotReply, HotRequest, StreamReply
from wire.config import Config

REQUEST_SCHEMA = {
    "type": "object",
    "required": ["input"],
    "properties": {
        "input": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]},
        "previous_response_id": {"type": "string", "description": "Only what is new is in `input`."},
        "tools": {"type": "array", "items": {"type": "object"}},
        "instructions": {"type": "string"},
        "stream": {"type": "boolean"},
    },
}


def build(config: Config, urls: dict[str, str], token: str | None, name: str) -> App:
    """The server of a config's `model_interface` section.

    Args:
        config: The resolved config.
        urls: Every server of the stack by name.
        token: The stack's bearer token, or None.
        name: This server's own name.
    """
    return model_interface(config.section("model_interface", ModelInterfaceSettings), urls=urls, token=token, name=name)


def model_interface(
    settings: ModelInterfaceSettings,
    *,
    urls: dict[str, str] | None = None,
    token: str | None = None,
    name: str = "model_interface",
) -> App:
    """The server of these settings.

    Raises:
        UsageError: there is no such backend, or it cannot work with these settings.
    """
    backend_class = plugins.load("model_interface.backends", settings.backend, Backend)
    app = App(name, token=token)
    backend: Backend = backend_class(settings, urls or {}, token, app.metrics)
    backend.facts = app.facts
    app.facts |= {"backend": settings.backend, "model": settings.model}
    app.on_start(backend.start)
    app.on_stop(backend.stop)
    routes = Routes(Calls(backend, settings, app.metrics))
    app.hot(
        "POST",
        "/v1/responses",
        routes.responses,
        summary="The model's next turn",
        control=True,
        request_schema=REQUEST_SCHEMA,
    )
    app.hot("GET", "/v1/models", routes.models, summary="The models behind this server", control=True)
    return app


class Routes:
    """The handlers of the server's routes."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def responses(self, request: HotRequest) -> HotReply | StreamReply:
        """POST /v1/responses."""
        call = self._calls.read(
            request.json(),
            len(request.body),
            inherits=request.headers.get(b"x-inherit-params") == b"1",
            session_id=request.header(b"x-session-id"),
            budget_s=request.header(b"x-budget-s"),
        )
        response_id, response = await self._calls.answer(call)
        return HotReply(write(call, response_id, response))

    async def models(self, _: HotRequest) -> HotReply:
        """GET /v1/models."""
        created = int(time.time())
        names = await self._calls.backend.models()
        data: list[dict[str, Any]] = [
            {"id": name, "object": "model", "created": created, "owned_by": "trivium"} for name in names
        ]
        return HotReply(strict_json.dumps({"object": "list", "data": data}))
