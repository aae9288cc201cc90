"""The plug-ins that a config names, found and asked about their options before any server is started.

Nothing is started: an environment's class is bound to its options, an agent is made and thrown away, and so is a backend of ours, whose
work begins with `start`. Of a backend of somebody else's only the class is looked for, since its constructor may load a model.
"""

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from wire import plugins
from wire.errors import UsageError
from wire.metrics import Metrics

FACES = {
    "resources_server": ("environment", "resources_server.environments", "resources_server", "Environment"),
    "model_interface": ("backend", "model_interface.backends", "model_interface.backend", "Backend"),
    "agent_server": ("agent", "agent_server.agents", "agent_server.agent", "Agent"),
}
"""Room -> the key that names its plug-in, the package of short names, and the module and class of the contract."""


@dataclass(frozen=True)
class Part:
    """One section of a config that names a plug-in."""

    room: str
    path: str
    """Where it stands, such as `environments.easy`."""
    settings: Mapping[str, Any]
    """As it was written."""
    model: type[BaseModel]


def problems(part: Part) -> Iterator[tuple[str, str]]:
    """What is wrong with a plug-in's name or options: the key that says it, and a sentence.

    A section that its own model refuses has told so already; then only the name is looked up.
    """
    key, *face = FACES[part.room]
    try:
        settings = part.model.model_validate(dict(part.settings))
    except ValidationError:
        settings = None
    name = part.settings.get(key) if settings is None else getattr(settings, key)
    if not isinstance(name, str):
        return  # none named, or told already
    try:
        found = _found(name, *face)
    except UsageError as error:
        yield f"{part.path}.{key}", f"{part.path}.{key}: {error}"
        return
    try:
        if settings is not None:
            _ask(part.room, found, settings)
    except UsageError as error:
        yield f"{part.path}.options", str(error)


def _found(name: str, package: str, module: str, base: str) -> Any:
    """By name: the collector's package imports no server's modules."""
    return plugins.load(package, name, getattr(importlib.import_module(module), base))


def _ask(room: str, found: Any, settings: Any) -> None:
    """Let the class say what is wrong with its options.

    Raises:
        UsageError: something is.
    """
    if room == "resources_server":
        found.bound(settings.options)
    elif room == "agent_server":
        found(settings)
    elif found.__module__.startswith("model_interface.backends."):
        found(settings, {}, None, Metrics())
