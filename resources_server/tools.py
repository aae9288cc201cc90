"""From a typed method to a tool the model can call.

A tool is a method marked with `@tool`. Its signature is the argument schema and its docstring the description, so a tool is written
down once. What the model sends is checked here, and what is wrong with it is said here in sentences for the model.
"""

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from resources_server.docstrings import describe
from resources_server.mistakes import Mistake, sentences
from resources_server.schemas import is_strict, without_titles
from wire import strict_json
from wire.rollout import NOT_TOOLS

F = TypeVar("F", bound=Callable[..., Any])
NAME = re.compile(r"^[A-Za-z0-9_-]{1,64}$")  # what OpenAI and vLLM accept as a function's name
_UNFIT_NUMBER = re.compile(rb"NaN|Infinity|[eE]\+?[0-9]{3}")
ROUTES = NOT_TOOLS | {"reset", "step", "close", "run", "v1", "redoc", "openapi"}
"""Paths of the server itself, ours or one that it may stand behind: no tool may be reached under one of these names."""


class ToolError(Exception):
    """The model asked for something that it cannot have.

    The message is sent to the model as the tool's output and the rollout goes on; any other exception ends the rollout as
    `environment_error`, without a reward.
    """


@dataclass(frozen=True)
class Mark:
    """What `@tool` says about a method."""

    read_only: bool


@overload
def tool(method: F) -> F: ...
@overload
def tool(*, read_only: bool = False) -> Callable[[F], F]: ...
def tool(method: F | None = None, *, read_only: bool = False) -> F | Callable[[F], F]:
    """Mark a method as callable by the model, under the method's own name.

    Args:
        method: The method, when the decorator is used without arguments.
        read_only: It changes no state, so calls of it within one turn may run together.
    """

    def mark(marked: F) -> F:
        marked.__tool__ = Mark(read_only)  # type: ignore[attr-defined]
        return marked

    return mark if method is None else mark(method)


class Toolkit(BaseModel):
    """A part of an environment's state with tools of its own, for worlds too big for one class.

    As the field `calendar: Calendar`, its tool `create` reaches the model as `calendar_create`.
    """

    model_config = ConfigDict(validate_assignment=True, extra="forbid")


@dataclass(frozen=True)
class Tool:
    """One tool of an environment class."""

    name: str
    description: str
    arguments: type[BaseModel]  # checks the model's arguments; unknown ones are refused
    parameters: tuple[str, ...]  # the method's own names for them, in order
    path: tuple[str, ...]  # attributes from the environment instance to the method
    read_only: bool
    is_async: bool
    schema: dict[str, Any] = field(repr=False)  # JSON schema of the arguments, as the model sees it

    @functools.cached_property
    def doing(self) -> str:
        """What goes on while it runs, for messages."""
        return f"tool {self.name}"

    @functools.cached_property
    def _fields(self) -> list[tuple[str, str]]:
        return [(name, _field(name)) for name in self.parameters]

    def bind(self, world: object) -> Callable[..., Any]:
        """The method itself, on one rollout's world."""
        if len(self.path) == 1:
            return getattr(world, self.path[0])  # type: ignore[no-any-return]
        return functools.reduce(getattr, self.path, world)  # type: ignore[return-value]

    def check(self, arguments: bytes) -> dict[str, Any]:
        """Arguments for the method, typed and with defaults filled in, from the model's own JSON text.

        Whole numbers are exact at any length. An empty text means no arguments.

        Raises:
            Mistake: The text is no JSON object, or an argument is missing, unknown or of the wrong type.
        """
        values = self._values(arguments or b"{}").__dict__
        if _UNFIT_NUMBER.search(arguments):  # the fast parser takes these for numbers; JSON or a float does not
            try:
                strict_json.refuse_overflow(strict_json.loads(arguments))
            except strict_json.JSONError as error:
                raise Mistake([f"the arguments are not valid JSON: {error}"]) from None
        return {name: values[each] for name, each in self._fields}

    def accepted(self, arguments: bytes) -> dict[str, Any]:
        """The same arguments as plain JSON values, for the record of accepted calls."""
        return self._values(arguments or b"{}").model_dump(mode="json", by_alias=True)

    def _values(self, arguments: bytes) -> BaseModel:
        """The arguments as a model. Types are JSON's own: `"10"` and `true` are no numbers, `10.0` is the whole number 10."""
        validator = self.arguments.__pydantic_validator__
        try:
            try:
                found = validator.validate_json(arguments, strict=True)
            except ValidationError as error:
                if not all(_is_whole(each) for each in error.errors(include_url=False, include_context=False)):
                    raise
                found = validator.validate_json(arguments)  # which has its own bounds: 1e19 is no integer to it
        except ValidationError as error:
            raise Mistake(sentences(error, self.name, self.parameters, arguments)) from None
        assert isinstance(found, BaseModel)
        return found

    @functools.cached_property
    def definition(self) -> dict[str, Any]:
        """The entry for `tools` in a Responses API request."""
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": self.schema,
            "strict": is_strict(self.schema),
        }


def _is_whole(error: Any) -> bool:
    """Whether all that is wrong is a whole number written with a point."""
    value = error["input"]
    return error["type"] == "int_type" and isinstance(value, float) and value.is_integer()


def tools_of(model: type[BaseModel], prefix: str = "", path: tuple[str, ...] = ()) -> dict[str, Tool]:
    """The tools of a class and of its toolkits, by name, in the order in which they are written.

    Raises:
        TypeError: A tool cannot be told to a model in full; the message names the tool and the argument.
    """
    found: dict[str, Tool] = {}
    for name, method in _marked(model).items():
        found[prefix + name] = _tool(f"{model.__name__}.{name}", prefix + name, method, (*path, name))
    for name, info in model.model_fields.items():
        kit = info.annotation
        if inspect.isclass(kit) and issubclass(kit, Toolkit):
            found |= tools_of(kit, f"{prefix}{name}_", (*path, name))
    return found


def _marked(model: type[BaseModel]) -> dict[str, Callable[..., Any]]:
    """Methods with the mark, base classes first; an override without the mark takes the tool away."""
    found: dict[str, Callable[..., Any]] = {}
    for cls in reversed(model.__mro__):
        for name, member in vars(cls).items():  # not getattr(): it would set off pydantic's deprecated properties
            if hasattr(member, "__tool__"):
                found[name] = member
            else:
                found.pop(name, None)
    return found


def _tool(where: str, name: str, method: Callable[..., Any], path: tuple[str, ...]) -> Tool:
    if not NAME.match(name) or name in ROUTES:
        why = "is a route of the server" if name in ROUTES else f"does not match {NAME.pattern}"
        raise TypeError(f"tool {where}: its name {name!r} {why}; rename the method")
    if not (method.__doc__ or "").strip():
        raise TypeError(f"tool {where} has no docstring; the model reads it as the tool's description")
    mark: Mark = method.__tool__  # type: ignore[attr-defined]
    return tool_like(where, name, method, path, read_only=mark.read_only)


def tool_like(
    where: str, name: str, method: Callable[..., Any], path: tuple[str, ...], *, read_only: bool = False
) -> Tool:
    """A tool with the arguments and description of `method`, which calls what is at `path`.

    Raises:
        TypeError: The method cannot be told to a model in full.
    """
    doc = describe(method.__doc__ or "")
    parameters = _parameters(where, method)
    unknown = doc.arguments.keys() - parameters.keys()
    if unknown:
        raise TypeError(f"tool {where}: its docstring describes {sorted(unknown)[0]!r}, which is no argument of it")
    arguments = _model(where, name, parameters, doc.arguments)
    return Tool(
        name=name,
        description=doc.summary,
        arguments=arguments,
        parameters=tuple(parameters),
        path=path,
        read_only=read_only,
        is_async=inspect.iscoroutinefunction(method),
        schema=without_titles(arguments.model_json_schema(by_alias=True)),
    )


def _parameters(where: str, method: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The method's arguments after `self`, each with a type and each to be given by name."""
    try:
        signature = inspect.signature(method, eval_str=True)
    except NameError as error:
        raise TypeError(f"tool {where}: a type in its signature cannot be found: {error}") from None
    parameters = dict(list(signature.parameters.items())[1:])
    for name, each in parameters.items():
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY):
            raise TypeError(f"tool {where}: argument {name!r} must be a plain named one (no *, ** or /)")
        if each.annotation is each.empty:
            raise TypeError(f"tool {where}: argument {name!r} has no type")
    return parameters


def _model(
    where: str, name: str, parameters: dict[str, inspect.Parameter], described: dict[str, str]
) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for argument, each in parameters.items():
        default = ... if each.default is each.empty else each.default
        info = Field(default, alias=argument, description=described.get(argument))
        fields[_field(argument)] = (each.annotation, info)
    config = ConfigDict(extra="forbid")
    try:
        return create_model(f"{name}_arguments", __config__=config, **fields)
    except Exception as error:  # pydantic raises many classes for a type that has no schema
        raise TypeError(f"tool {where}: its arguments have no JSON schema: {error}") from error


def _field(argument: str) -> str:
    """The argument's field in the model: prefixed, so that no name (`copy`, `json`, `_x`) collides with pydantic's own."""
    return f"arg_{argument}"
