"""What configs describe: environments, one agent, one model interface; and the servers that this takes.

Nothing is started here. Several configs make one stack: each brings its environments, and they must agree on everything else.
"""

import importlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from rollouts import parts
from rollouts.launcher import Server
from rollouts.sockets import authority
from wire import config as configs
from wire.config import ENVIRONMENT_KEYS, Config
from wire.errors import UsageError
from wire.plugins import short_name

RESOURCES, MODEL, AGENT = "resources_server", "model_interface", "agent_server"
ROOMS = (RESOURCES, MODEL, AGENT)
SECTIONS = {
    MODEL: "ModelInterfaceSettings",
    RESOURCES: "ResourcesServerSettings",
    AGENT: "AgentServerSettings",
    "rollouts": "RolloutsSettings",
}
LARGEST = ("agent_server.max_steps", "agent_server.timeout_s", "rollouts.timeout_s", "rollouts.concurrency")
"""Bounds that each config sets for its own tasks: of several the largest holds."""
MAY_DIFFER = (
    *LARGEST,
    RESOURCES,
    "environments",
    "rollouts.dataset",
    "rollouts.repeats",
    "rollouts.limit",
    "rollouts.output",
)


@dataclass(frozen=True)
class Environment:
    """One environment of a stack.

    Attributes:
        name: As rows and `--mix` call it.
        server: Name of its resources server.
        settings: The section of that server, resolved.
        config: The whole config that its server gets.
        dataset: Path of its rows as configured.
        repeats: Rollouts per task, where the config says so for this environment.
        limit: Rows, likewise.
        share: Its weight in the mix, likewise.
    """

    name: str
    server: str
    settings: dict[str, Any]
    config: Config
    dataset: str | None = None
    repeats: int | None = None
    limit: int | None = None
    share: float = 1.0


@dataclass(frozen=True)
class Stack:
    """One model interface, one agent server, and a resources server for each environment."""

    config: Config
    environments: list[Environment]

    def section(self, name: str) -> dict[str, Any]:
        """A section as plain values, the defaults of its model included.

        The agent server caps a caller's budget: it lets through what a rollout of this config may take.
        """
        filled = _filled(self.config.data.get(name), name)
        if name == AGENT:
            filled["timeout_s"] = max(filled["timeout_s"], self.section("rollouts")["timeout_s"])
        return filled

    @property
    def names(self) -> list[str]:
        """The servers' names, in the order in which a request meets the end of the chain first."""
        return [*(each.server for each in self.environments), MODEL, AGENT]

    def servers(self, wanted: Sequence[str] = ()) -> list[Server]:
        """The servers to start; all of them, or those named.

        Raises:
            UsageError: a name that is none of the stack's, or a resources server without an environment.
        """
        chosen = _chosen(self.names, wanted)
        for each in self.environments:
            if each.server in chosen and not each.settings.get("environment"):
                raise UsageError(
                    f"{each.config.source}: resources_server.environment is missing: a bundled one, or my_package.world:MyWorld"
                )
        found = [_server(each.server, RESOURCES, each.config, each.settings) for each in self.environments]
        found += [_server(room, room, self.config, self.section(room)) for room in (MODEL, AGENT)]
        return [each for each in found if each.name in chosen]

    def elsewhere(self, servers: Sequence[Server]) -> dict[str, str]:
        """Where the servers are that are not among those to start, as far as the config says.

        Raises:
            UsageError: the agent server is started and the config does not say where one that it calls is.
        """
        started = {each.name for each in servers}
        others = {name: _url(settings) for name, settings in self._settings() if name not in started}
        unknown = [name for name, url in others.items() if url is None and name != AGENT]
        if AGENT in started and unknown:
            keys = " ".join(f"{name}.url=http://host:port" for name in unknown)
            raise UsageError(f"{AGENT} calls {' and '.join(unknown)}, not served here: say where with {keys}")
        return {name: url for name, url in others.items() if url is not None}

    def _settings(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for each in self.environments:
            yield each.server, each.settings
        for room in (MODEL, AGENT):
            yield room, self.section(room)


def read(sources: Sequence[str], overrides: Sequence[str] = (), *, starting: Collection[str] = ()) -> Stack:
    """The stack that config files (or bundled names) and `key=value` pairs describe.

    Args:
        sources: Files or bundled names.
        overrides: `key.path=value` pairs.
        starting: Rooms whose servers are about to be started: their plug-ins are looked for, and asked about their options.

    Raises:
        UsageError: a config is wrong, or several do not go together; everything that is wrong is told.
    """
    models = sections()
    loaded, problems = [], []
    for source in dict.fromkeys(sources):
        try:
            loaded.append(configs.load(source, overrides, models, partial(_wrong_parts, models, starting)))
        except UsageError as error:
            problems += str(error).splitlines()
    if problems:
        raise UsageError("\n".join(dict.fromkeys(problems)))
    _agree(loaded)
    shared = _with_largest_bounds(loaded)
    entries = [entry for each in loaded for entry in _environments(each)]
    if len(entries) > 1:
        entries = _apart(entries)
    return Stack(shared, [_environment(*entry, alone=len(entries) == 1) for entry in entries])


def sections() -> dict[str, type[BaseModel]]:
    """Section name -> its model, loaded by name: the collector imports no server's modules."""
    return {room: getattr(importlib.import_module(f"{room}.settings"), name) for room, name in SECTIONS.items()}


def _wrong_parts(
    models: Mapping[str, type[BaseModel]], starting: Collection[str], data: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """What is wrong with the plug-ins of the rooms to start, in resolved values of which nothing else is known."""
    found = {room: data.get(room) or {} for room in ROOMS}
    sections = [(room, room, found[room]) for room in ROOMS]
    several = data.get("environments")
    if isinstance(several, dict) and several and isinstance(found[RESOURCES], dict):
        config = Config(
            "",
            {
                RESOURCES: found[RESOURCES],
                "environments": {k: v for k, v in several.items() if isinstance(v, dict | None)},
            },
        )
        worlds = [(RESOURCES, f"environments.{name}", _own(entry)) for name, entry, _ in _environments(config)]
        sections = [*worlds, *sections[1:]]
    for room, path, settings in sections:
        if room in starting and isinstance(settings, dict):
            yield from parts.problems(parts.Part(room, path, settings, models[room]))


def _own(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of `environments` without what it says of its rows."""
    return {key: value for key, value in entry.items() if key not in ENVIRONMENT_KEYS}


def _environments(config: Config) -> Iterator[tuple[str, dict[str, Any], Config]]:
    """Name, settings (with an entry's own keys still in) and config of each environment of one config."""
    shared = config.data.get(RESOURCES) or {}
    if not (several := config.data.get("environments")):
        rollouts = config.data.get("rollouts") or {}
        own = {key: rollouts[key] for key in ENVIRONMENT_KEYS if rollouts.get(key) is not None}
        yield short_name(str(shared.get("environment") or Path(config.source).stem)), {**shared, **own}, config
        return
    for name, entry in several.items():
        yield (
            name,
            {"environment": name, **{k: v for k, v in shared.items() if k != "environment"}, **(entry or {})},
            config,
        )


def _apart(entries: list[tuple[str, dict[str, Any], Config]]) -> list[tuple[str, dict[str, Any], Config]]:
    """Entries with names of their own: where two files play one environment, the files' names tell them apart."""
    names = [name for name, _, _ in entries]
    named = [(Path(c.source).stem if names.count(name) > 1 else name, s, c) for name, s, c in entries]
    again = [name for name, _, _ in named]
    if twice := sorted({name for name in again if again.count(name) > 1}):
        raise UsageError(f"two environments are called {twice[0]!r}: name them apart in `environments:`")
    return named


def _environment(name: str, entry: dict[str, Any], config: Config, *, alone: bool) -> Environment:
    own = {key: entry[key] for key in ENVIRONMENT_KEYS if key in entry}
    settings = _filled(_own(entry), RESOURCES)
    data = {key: value for key, value in config.data.items() if key != "environments"} | {RESOURCES: settings}
    if (config.data.get(MODEL) or {}).get("backend") == "reference":
        settings["solutions"] = True  # the one backend that asks for them, over a control route
    server = RESOURCES if alone else f"{RESOURCES}.{name}"
    return Environment(name, server, settings, Config(config.source, data), **own)


def _agree(loaded: list[Config]) -> None:
    first, *others = loaded
    for other in others:
        if key := _difference(first.data, other.data):
            raise UsageError(
                f"{first.source} and {other.source} differ in {key}, and one stack has one: say which on the command line ({key}=…)"
            )


def _with_largest_bounds(loaded: list[Config]) -> Config:
    """The first config, with what the others ask for beyond it."""
    data = {key: dict(value) if isinstance(value, dict) else value for key, value in loaded[0].data.items()}
    for path in LARGEST:
        section, _, key = path.partition(".")
        said = [value for each in loaded if (value := (each.data.get(section) or {}).get(key)) is not None]
        if len(loaded) > 1 and said:
            data.setdefault(section, {})[key] = max(said)
    return Config(loaded[0].source, data)


def _difference(one: Any, other: Any, path: str = "") -> str | None:
    """The first key in which two configs differ and may not."""
    if path in MAY_DIFFER or one == other:
        return None
    if not (isinstance(one, Mapping) and isinstance(other, Mapping)):
        return path
    keys = dict.fromkeys([*one, *other])
    found = (_difference(one.get(key), other.get(key), f"{path}.{key}" if path else str(key)) for key in keys)
    return next((each for each in found if each), None)


def _filled(section: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    """A section with its model's defaults for whatever it leaves out; what it says stays as it was written."""
    model = sections()[name]
    defaults = {
        key: each.get_default(call_default_factory=True)
        for key, each in model.model_fields.items()
        if not each.is_required()
    }
    plain = {key: value.model_dump() if isinstance(value, BaseModel) else value for key, value in defaults.items()}
    return {**plain, **(section or {})}


def _server(name: str, room: str, config: Config, settings: Mapping[str, Any]) -> Server:
    return Server(
        name=name,
        room=room,
        source=config.source,
        config=config.data,
        host=str(settings["host"]),
        port=_port(settings),
        workers=int(settings["workers"] or 1) if "workers" in settings else 1,
        url=settings.get("url"),
    )


def _port(settings: Mapping[str, Any]) -> int:
    return 0 if settings["port"] == "auto" else int(settings["port"])


def _url(settings: Mapping[str, Any]) -> str | None:
    if settings.get("url"):
        return str(settings["url"])
    return f"http://{authority(settings['host'], _port(settings))}" if _port(settings) else None


def _chosen(known: Sequence[str], wanted: Sequence[str]) -> set[str]:
    """`resources_server` stands for all of them."""
    for name in wanted:
        if name not in known and name != RESOURCES:
            raise UsageError(f"there is no server {name!r} (have: {', '.join(known)})")
    return {each for each in known if not wanted or each in wanted or each.partition(".")[0] in wanted}
