"""The model interface as a server: routes, and what is made of a config. What they do is in `routes`."""

from model_interface.backend import Backend
from model_interface.calls import Calls
from model_interface.capture import Captures
from model_interface.dialects import DIALECTS, RESPONSES
from model_interface.routes import NEMO_GYM, ROLLOUTS, Routes
from model_interface.settings import ModelInterfaceSettings
from wire import plugins
from wire.app import App
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
    _register(app, Routes(app, Calls(backend, settings, app.metrics), Captures(settings.captures)))
    return app


def _register(app: App, routes: Routes) -> None:
    for dialect in DIALECTS.values():
        handler = routes.responses if dialect is RESPONSES else routes.other
        schema = REQUEST_SCHEMA if dialect is RESPONSES else None
        app.hot("POST", dialect.path, handler, summary=dialect.summary, control=True, request_schema=schema)
    app.hot("GET", "/v1/models", routes.models, summary="The models behind this server", control=True)
    app.hot_prefix(ROLLOUTS, routes.below_rollouts, summary="The same for one rollout, recorded; its record; its end")
    app.hot_prefix(NEMO_GYM, routes.below_ng_rollout, summary="The same as NeMo Gym's agents ask for it", control=True)
