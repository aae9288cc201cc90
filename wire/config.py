"""Configuration in three layers: `base.yaml` < the file < `key=value` from the command line.

A file names what it extends (`extends: base.yaml`); OmegaConf merges and resolves `${oc.env:NAME}`. Each section is checked against the
model that stands beside the code it configures, and everything that is wrong is told at once, each with its file and path.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from wire.errors import UsageError

ModelT = TypeVar("ModelT", bound=BaseModel)
Port = Annotated[int, BeforeValidator(lambda value: 0 if value == "auto" else value), Field(ge=0, le=65535)]
"""A port to bind; 0 or `auto` is any free one."""


class EnvironmentBounds(BaseModel):
    """What one entry of `environments` says of its rows, beside a resources server's own keys."""

    model_config = ConfigDict(allow_inf_nan=False)

    dataset: str | None = None
    limit: int | None = Field(None, ge=1)
    repeats: int | None = Field(None, ge=1, le=10_000)
    share: float = Field(1.0, gt=0)


TOP_LEVEL = ("auth", "environments", "extends")  # keys that are no section
ENVIRONMENT_KEYS = tuple(EnvironmentBounds.model_fields)
SECRET_KEY = re.compile(r"(?i)(api_?key|secret|password|authorization|(^|_)token$)")
URL_PASSWORD = re.compile(r"(://[^/\s:@]+:)[^@\s/]+@")
URL_USER = re.compile(r"(://)[^/\s@]+@")  # in what is refused even a bare user may be somebody's key
COMMAND_LINE = "command line"
MAX_EXTENDS = 8
UNRESOLVED = object()  # in place of a value that could not be had; its problem has been told


@dataclass(frozen=True)
class Config:
    """A resolved configuration, checked."""

    source: str
    """What the user named: a file or a bundled config."""
    data: dict[str, Any] = field(default_factory=dict)
    """Plain values; no interpolation is left."""

    def section(self, name: str, model: type[ModelT]) -> ModelT:
        """One section as its model; defaults where the config says nothing.

        Raises:
            UsageError: a key is unknown or a value is wrong.
        """
        given = self.data.get(name) or {}
        try:
            read = model.model_validate(given)
        except ValidationError as error:
            problems = [_describe(each, name, model) for each in error.errors()]
            raise UsageError(f"{self.source}: " + "; ".join(problems)) from None
        if problems := [f"{name}.{each}" for each in booleans_for_numbers(read, given)]:
            raise UsageError(f"{self.source}: " + "; ".join(problems))
        return read

    @property
    def auth(self) -> str:
        """`token`, or `none` where control routes ask for no token."""
        return str(self.data.get("auth", "token"))


def load(
    source: str | Path,
    overrides: Sequence[str],
    sections: Mapping[str, type[BaseModel]],
    also: Callable[[dict[str, Any]], Iterable[tuple[str, str]]] = lambda _: (),
) -> Config:
    """Read, merge, resolve and check a configuration.

    Args:
        source: A YAML file, or the name of a bundled config (`workplace`).
        overrides: `key.path=value` pairs; the value is read as YAML.
        sections: Section name to the model it is checked against.
        also: Finds more that is wrong in the resolved values, which may hold anything: the path of a key, and a sentence.

    Raises:
        UsageError: everything that is wrong, in one message: unreadable files, unknown keys with the nearest right one,
            values of the wrong kind, undefined references and environment variables.
    """
    layers = _layers(_find(str(source)))
    for override in overrides:
        layers.append((COMMAND_LINE, _override(override)))
    merged = _merge(str(source), layers)
    problems: list[str] = []
    data = _resolve(merged, layers, problems)
    data.pop("extends", None)
    problems += _check(data, layers, sections)
    problems += [f"{_origin(layers, path)}: {sentence}" for path, sentence in also(data)]
    if problems:
        raise UsageError("\n".join(dict.fromkeys(problems)))
    return Config(str(source), data)


def bundled(*parts: str) -> Path:
    """A folder or file that is shipped: beside the packages in a checkout, inside `wire` when installed."""
    checkout = Path(__file__).parent.parent.joinpath(*parts)
    return checkout if checkout.exists() else Path(__file__).parent.joinpath("bundled", *parts)


def bundled_configs() -> list[str]:
    """Names of the configs that are shipped."""
    return sorted(each.stem for each in bundled("configs").glob("*.yaml") if each.stem != "base")


def masked(value: Any, key: str = "") -> Any:
    """A copy for printing: keys, tokens and passwords as `***`."""
    if isinstance(value, dict):
        inside = key == "headers"
        return {each: masked(item, "api_key" if inside else str(each)) for each, item in value.items()}
    if isinstance(value, list):
        return [masked(item, key) for item in value]
    if isinstance(value, str) and value:
        return "***" if SECRET_KEY.search(key) else URL_PASSWORD.sub(r"\1***@", value)
    return value


def booleans_for_numbers(read: Any, given: Any, path: str = "") -> list[str]:
    """Where `true` or `false` was given and a number was read of it, as pydantic does: `max_steps=true` is nobody's 1.

    Args:
        read: What a model made of it.
        given: What stood in the config.
        path: Of both, for the sentences.
    """
    if isinstance(given, bool):
        return [f"{path} is {given}: a number is wanted"] if type(read) in (int, float) else []
    if isinstance(given, Mapping):
        pairs = [(key, _part(read, key), value) for key, value in given.items()]
    elif isinstance(given, list) and isinstance(read, list | tuple) and len(read) == len(given):
        pairs = list(zip(range(len(given)), read, given, strict=True))
    else:
        pairs = []
    return [
        each
        for key, part, value in pairs
        for each in booleans_for_numbers(part, value, f"{path}.{key}" if path else str(key))
    ]


def _part(read: Any, key: Any) -> Any:
    """One field of a model under its own name or its alias, or one value of a mapping."""
    if isinstance(read, Mapping):
        return read.get(key)
    if isinstance(read, BaseModel):
        aliased = (
            name for name, field in type(read).model_fields.items() if key in (field.alias, field.validation_alias)
        )
        return getattr(read, next(aliased, str(key)), None)
    return None


def _find(source: str) -> Path:
    path = Path(source)
    if path.is_file():
        return path
    if (
        path.suffix in {"", ".yaml"}
        and path.parent == Path()
        and (shipped := bundled("configs", f"{path.stem}.yaml")).is_file()
    ):
        return shipped
    close = difflib.get_close_matches(path.stem, bundled_configs(), 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise UsageError(f"there is no config {source!r}{hint} (bundled: {', '.join(bundled_configs())})")


def _layers(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """The file and what it extends, the most basic first."""
    layers: list[tuple[str, dict[str, Any]]] = []
    following: Path | None = path
    while following is not None:
        content = _read(following)
        layers.insert(0, (str(following), content))
        if len(layers) > MAX_EXTENDS:
            raise UsageError(f"{path}: `extends` goes round in a circle, or over {MAX_EXTENDS} files")
        following = _extended(following, content)
    return layers


def _extended(path: Path, content: dict[str, Any]) -> Path | None:
    name = content.get("extends")
    if name is None:
        return None
    for candidate in (path.parent / str(name), bundled("configs", str(name))):
        if candidate.is_file():
            return candidate
    raise UsageError(f"{path}: extends {name!r}, and there is no such file beside it or among the bundled configs")


class _Loader(yaml.SafeLoader):
    """YAML forbids a key that stands twice in one mapping; its parser lets the last win, and the first is silently not applied."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        """As the parser's own, once no key is there twice."""
        node = super().compose_mapping_node(anchor)
        seen = set[str]()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                problem = f"key {key.value!r} stands twice in one mapping"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else "")
        return node


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{path}{line}: not YAML: {error.problem}") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UsageError(f"{path}: a config is a mapping of sections, this is a {type(content).__name__}")
    return content


def _override(text: str) -> dict[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"{text!r}: an override is key.path=value")
    try:
        parsed = yaml.safe_load(value) if value else ""
    except yaml.YAMLError:
        parsed = value
    nested: Any = parsed
    for part in reversed(key.split(".")):
        nested = {part: nested}
    return nested  # type: ignore[no-any-return]  # a dict: `key` has at least one part


def _merge(source: str, layers: list[tuple[str, dict[str, Any]]]) -> DictConfig:
    merged: Any = OmegaConf.create({})
    for origin, content in layers:
        try:
            merged = OmegaConf.merge(merged, OmegaConf.create(content))
        except (OmegaConfBaseException, ValueError, TypeError) as error:
            raise UsageError(f"{origin}: {_first_line(error)}") from error
    if not isinstance(merged, DictConfig):
        raise UsageError(f"{source}: a config is a mapping of sections")
    return merged


def _resolve(merged: DictConfig, layers: list[tuple[str, dict[str, Any]]], problems: list[str]) -> dict[str, Any]:
    """Plain values; each leaf that cannot be resolved is a problem of its own, so that all are told at once."""

    def plain(node: Any, path: str) -> Any:
        if OmegaConf.is_dict(node):
            read_all = {str(key): read(node, key, f"{path}.{key}" if path else str(key)) for key in node}
            return {key: value for key, value in read_all.items() if value is not UNRESOLVED}
        if OmegaConf.is_list(node):
            return [read(node, index, f"{path}.{index}") for index in range(len(node))]
        return node

    def read(node: Any, key: Any, path: str) -> Any:
        try:
            if OmegaConf.is_missing(node, key):
                problems.append(
                    f"{_origin(layers, path)}: {path} has no value (it is ???): set it in the file or as {path}=…"
                )
                return UNRESOLVED
            return plain(node[key], path)
        except OmegaConfBaseException as error:
            problems.append(f"{_origin(layers, path)}: {path}: {_unresolved(error)}")
            return UNRESOLVED

    resolved = plain(merged, "")
    assert isinstance(resolved, dict)
    return resolved


def _unresolved(error: Exception) -> str:
    text = _first_line(error)
    if found := re.search(r"Environment variable '([^']+)' not found", text):
        return f"the environment variable {found.group(1)} is not set"
    if found := re.search(r"Interpolation key '([^']+)' not found", text):
        name = found.group(1)
        return f"${{{name}}} is not defined: set {name} in the file or as {name}=…"
    return text


def _check(
    data: dict[str, Any], layers: list[tuple[str, dict[str, Any]]], sections: Mapping[str, type[BaseModel]]
) -> list[str]:
    known = [*sections, *TOP_LEVEL]
    problems = [
        f"{_origin(layers, name)}: unknown key {name!r}{_did_you_mean(name, known)}"
        for name in data
        if name not in known
    ]
    if data.get("auth", "token") not in ("token", "none"):
        problems.append(f"{_origin(layers, 'auth')}: auth is {data['auth']!r}; it is `token` or `none`")
    for name, model in sections.items():
        problems += _check_section(data.get(name), name, model, layers)
    environments = data.get("environments")
    if environments is not None and not isinstance(environments, dict):
        problems.append(f"{_origin(layers, 'environments')}: environments is a mapping of names, not {environments!r}")
    elif environments and "resources_server" in sections:
        for name, entry in environments.items():
            problems += _check_environment(f"environments.{name}", entry or {}, sections["resources_server"], layers)
    return problems


def _check_environment(
    path: str, entry: Any, model: type[BaseModel], layers: list[tuple[str, dict[str, Any]]]
) -> list[str]:
    if not isinstance(entry, dict):
        return [f"{_origin(layers, path)}: {path} is a mapping of a resources server's keys, not {entry!r}"]
    bounds = {key: value for key, value in entry.items() if key in ENVIRONMENT_KEYS}
    own = {key: value for key, value in entry.items() if key not in ENVIRONMENT_KEYS}
    return _check_section(own, path, model, layers) + _check_section(bounds, path, EnvironmentBounds, layers)


def _check_section(
    value: Any, path: str, model: type[BaseModel], layers: list[tuple[str, dict[str, Any]]]
) -> list[str]:
    try:
        read = model.model_validate(value or {})
    except ValidationError as error:
        return [
            f"{_origin(layers, '.'.join(map(str, (path, *each['loc']))))}: {_describe(each, path, model)}"
            for each in error.errors()
        ]
    wrong = [f"{path}.{each}" for each in booleans_for_numbers(read, value or {})]
    return [f"{_origin(layers, each.partition(' ')[0])}: {each}" for each in wrong]


def _describe(error: ErrorDetails, path: str, model: type[BaseModel]) -> str:
    where = ".".join(map(str, (path, *error["loc"])))
    if error["type"] == "extra_forbidden":
        return f"unknown key {where!r}{_did_you_mean(str(error['loc'][-1]), _fields(model, error['loc'][:-1]))}"
    if error["type"] == "missing":
        return f"{where} is missing"
    secret = SECRET_KEY.search(where) or "headers" in error["loc"]
    shown = "***" if secret else URL_USER.sub(r"\1***@", repr(error["input"]))[:80]
    return f"{where} is {shown}: {error['msg'].removeprefix('Value error, ')}"


def _fields(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    for part in path:
        found = model.model_fields.get(str(part))
        inner = found.annotation if found else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        model = inner
    return list(model.model_fields)


def _did_you_mean(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    if close:
        return f" (did you mean {close[0]!r}?)"
    return f" (known: {', '.join(known)})" if known else ""


def _origin(layers: list[tuple[str, dict[str, Any]]], path: str) -> str:
    """The last layer that says anything about a path, or about the nearest thing above it."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        for origin, content in reversed(layers):
            if _says(content, parts[:length]):
                return str(origin)
    return layers[-1][0]


def _says(content: Any, parts: list[str]) -> bool:
    for part in parts:
        if not isinstance(content, dict) or part not in content:
            return False
        content = content[part]
    return True


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
