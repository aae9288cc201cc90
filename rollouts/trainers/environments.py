"""One of our environments as the class that TRL's `environment_factory` wants: tools are its methods, the verdict its `get_reward`.

TRL plays the episode itself; each instance is a session of the resources server, which runs beside the trainer.
"""

import inspect
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Union

from rollouts import stack as stacks
from rollouts import token as tokens
from rollouts.launcher import launched
from rollouts.trainers.background import Background
from rollouts.trainers.keys import KEY, read_key
from rollouts.trainers.tasks import Tasks
from wire import strict_json
from wire.client import CallError, Client, Reply, Retry
from wire.deadline import Deadline
from wire.errors import TriviumError, UsageError

TAKEN = frozenset({"reset", "get_reward"})
TYPES: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "object": dict, "array": list}
CALL_S = 600.0  # for one call of a server
CONNECTIONS = 256


class World:
    """One environment's server and rows, shared by the instances of the class made for it."""

    def __init__(self, config: str, *overrides: str) -> None:
        stack = stacks.read([config], overrides)
        if len(stack.environments) != 1:
            names = ", ".join(each.name for each in stack.environments)
            raise UsageError(f"{config} has several environments ({names}); give TRL a factory for each, by name")
        self.environment = stack.environments[0]
        self._tasks: dict[str, Tasks] = {}
        self._stack = stack
        self._background = Background("trivium-environment")
        try:
            self._client = self._start()
            reply = self._background.run(self._client.get(self.environment.server, "/tools", deadline=Deadline(CALL_S)))
            self.tools: list[dict[str, Any]] = _read(reply)["tools"]
        except BaseException:
            self._background.close()
            raise

    def row(self, key: str) -> dict[str, Any]:
        """The row that a prompt's key names."""
        file, task = read_key(key)
        if file not in self._tasks:
            self._tasks[file] = Tasks(self._stack, Path(file) if file else None)
        return self._tasks[file].row(task)

    def post(self, path: str, body: bytes, session: str, call: str | None = None) -> Reply:
        """One call of the server.

        Raises:
            CallError: no answer came.
        """
        headers = {"X-Session-Id": session, **({"X-Call-Id": call} if call else {})}
        return self._background.run(
            self._client.post(
                self.environment.server, path, body, headers, deadline=Deadline(CALL_S), retry=Retry.REPLAY
            )
        )

    def close(self) -> None:
        """Stop the server."""
        self._background.close()

    def _start(self) -> Client:
        token = tokens.for_stack(self._stack.config.auth)
        servers = self._stack.servers([self.environment.server])
        running = self._background.hold(launched(servers, token=token))
        return self._background.hold(Client(running.urls, token=token, connections=CONNECTIONS))


class Session:
    """An instance per rollout; TRL makes it once and resets it for each. What it does is in `World`."""

    _world: World

    def __init__(self) -> None:
        self._id: str | None = None
        self._row: dict[str, Any] = {}
        self._items: list[dict[str, Any]] = []
        self._failure: str | None = None

    def reset(self, **row: Any) -> str | None:
        """Begin the task of a row of `dataset`; the world's first observation, where it has one."""
        self._close()
        self._id, self._items, self._failure = secrets.token_hex(16), [], None
        self._row = self._world.row(_key_of(row))
        seeded = _read(self._world.post("/seed_session", strict_json.dumps(self._row), self._id))
        observation = seeded.get("observation")
        return None if observation is None else _text(observation)

    def get_reward(self) -> float | None:
        """The verdict on what the tools did; None where the environment failed, so that the rollout does not count.

        TRL does not tell the environment what the model said at last: a world that judges the answer needs `rollout_func`.
        """
        if self._id is None or self._failure:
            return None
        try:
            body = strict_json.dumps({**self._row, "response": {"output": self._items}})
            return float(_read(self._world.post("/verify", body, self._id))["reward"])
        except (CallError, WorldError):
            return None
        finally:
            self._close()

    def _call(self, name: str, arguments: dict[str, Any]) -> str:
        if self._id is None:
            raise WorldError("there is no episode: reset first")
        text = strict_json.dumps(arguments)
        call_id = f"0.{len(self._items) // 2}"
        try:
            reply = self._world.post(f"/{name}", text, self._id, call_id)
        except CallError as error:
            self._failure = str(error)
            raise
        output = reply.body.decode(errors="replace")
        self._items += [
            {"type": "function_call", "name": name, "arguments": text.decode(), "call_id": call_id},
            {"type": "function_call_output", "call_id": call_id, "output": output},
        ]
        if reply.status >= 500 or reply.status in (401, 410):
            self._failure = reply.quote()
        if not reply.ok:
            raise WorldError(output)  # TRL tells it to the model
        return output

    def _close(self) -> None:
        if self._id is None:
            return
        session, self._id = self._id, None
        try:
            self._world.post("/close_session", b"{}", session)
        except CallError:
            return  # the server forgets sessions by itself, later


class WorldError(TriviumError):
    """The environment refused; its words are for the model."""


def environment_factory(config: str, *overrides: str) -> type[Session]:
    """The class of a config's environment for `GRPOTrainer(environment_factory=…)`; starts its server, which ends with the program.

    Args:
        config: A config file or the name of a bundled one, with one environment.
        overrides: `key=value`.

    Raises:
        UsageError: the config is wrong, has several environments, or a tool whose name TRL needs for itself.
    """
    world = World(config, *overrides)
    methods = {tool["name"]: method(tool) for tool in world.tools}
    if bad := [name for name in methods if name in TAKEN or not name.isidentifier() or name.startswith("_")]:
        world.close()
        raise UsageError(f"{config}: TRL cannot have a tool called {bad[0]!r}")
    name = "".join(part.capitalize() for part in world.environment.name.replace("-", "_").split("_")) or "World"
    return type(name, (Session,), {**methods, "_world": world, "__doc__": f"The environment {world.environment.name}."})


def method(tool: dict[str, Any]) -> Callable[..., str]:
    """A tool's schema as a typed, documented method: what TRL makes its own schema of."""
    schema = tool.get("parameters") or {}
    properties, required = schema.get("properties") or {}, set(schema.get("required") or ())
    ordered = sorted(properties, key=lambda each: each not in required)
    hints = {each: python_type(properties[each], schema.get("$defs") or {}) for each in ordered}

    def called(self: Session, *args: Any, **kwargs: Any) -> str:
        bound = signature.bind(self, *args, **kwargs).arguments
        return self._call(tool["name"], {key: value for key, value in bound.items() if key != "self"})

    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for each in ordered:
        default = inspect.Parameter.empty if each in required else properties[each].get("default")
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(inspect.Parameter(each, kind, default=default, annotation=hints[each]))
    signature = inspect.Signature(parameters, return_annotation=str)
    called.__name__ = called.__qualname__ = tool["name"]
    called.__annotations__ = {**hints, "return": str}
    called.__signature__ = signature  # type: ignore[attr-defined]  # what `inspect` reads
    called.__doc__ = _docstring(tool, properties, ordered)
    return called


def python_type(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """The annotation whose JSON schema is this one, as nearly as annotations can say it."""
    if "$ref" in schema:
        return python_type(definitions.get(schema["$ref"].rpartition("/")[2], {}), {})
    if "const" in schema:
        return Literal[schema["const"]]
    if schema.get("enum"):
        return Literal[tuple(schema["enum"])]
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        kinds = [type(None) if each.get("type") == "null" else python_type(each, definitions) for each in choices]
        return Union[tuple(kinds)]  # noqa: UP007 - made of values
    kind = schema.get("type")
    if kind == "array" and isinstance(schema.get("items"), dict):
        return list[python_type(schema["items"], definitions)]  # type: ignore[misc]  # made of values
    return TYPES.get(kind, str) if isinstance(kind, str) else str


def _docstring(tool: dict[str, Any], properties: dict[str, Any], ordered: list[str]) -> str:
    told = str(tool.get("description") or tool["name"]).strip()
    if not ordered:
        return told
    lines = [f"    {each}: {' '.join(str(properties[each].get('description') or each).split())}" for each in ordered]
    return told + "\n\nArgs:\n" + "\n".join(lines) + "\n"


def _key_of(row: dict[str, Any]) -> str:
    if isinstance(row.get(KEY), str):
        return str(row[KEY])
    raise UsageError(
        f"a row does not say which task it is ({KEY}); take train_dataset from rollouts.trainers.trl.dataset"
    )


def _read(reply: Reply) -> dict[str, Any]:
    if not reply.ok:
        raise WorldError(reply.quote())
    value: dict[str, Any] = strict_json.loads(reply.body)
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else strict_json.dumps(value).decode()
