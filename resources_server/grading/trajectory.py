"""Are these the expected tool calls? Compared as the tools' own schemas mean them.

Defaults are filled in on both sides, so an omitted optional argument equals its default. Key order and spacing
never matter. 10.0 is 10; "10" is not, and the reason says so. An argument that the schema does not know, and the
expected call does not have, makes the call a wrong one. Each expected call counts once: repeating a right call is
no second right call.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from resources_server.grading.forms import EXACT, Form
from resources_server.grading.grade import Grade, right, short, wrong
from wire import strict_json

Mode = Literal["unordered", "ordered", "subset", "f1"]
MODES = ("unordered", "ordered", "subset", "f1")
SEPARATORS = re.compile(r"(?:__|[./:])")  # mcp__mail__send, mail.send, mail/send, mail:send
TYPES = {
    "string": str,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


@dataclass(frozen=True)
class Call:
    """One call, ready to compare: `arguments` with defaults filled in, None when they are no JSON object."""

    name: str
    arguments: Mapping[str, Any] | None
    key: Any = field(compare=False)

    def __str__(self) -> str:
        return f"{self.name}({short(self.arguments, 120)})"


def match(
    produced: Sequence[Any],
    expected: Sequence[Any],
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    mode: Mode = "unordered",
    namespaces: bool = False,
    optional: Collection[str] = (),
    text: Form | Mapping[str, Form] = EXACT,
) -> Grade:
    """1 when `produced` are the `expected` calls, else 0; in mode `f1` the harmonic mean of precision and recall.

    A call is an `AcceptedCall`, a Responses `function_call` or `{name, arguments}` with an object or JSON text; a list
    of calls in its place is a turn, whose members have no order among themselves. Calls whose `status` says that
    the tool refused or failed do not count. `tools` are Responses (or chat) function tools.

    - `unordered`: the same calls, each as often, in any order.
    - `ordered`: the same, in the expected order, turns of parallel calls aside.
    - `subset`: every expected call was made, other calls cost nothing; repeats of an expected one do. Only for tasks
      whose other calls change nothing: it can be sprayed.

    `optional` names tools whose calls never matter (searches). `namespaces` lets `mail.send` stand for `send` where
    that is unambiguous. `text` says which forms of string arguments are the same, for all or by argument name.
    An `expected` of None raises ValueError: a row without its truth is no zero.
    """
    if expected is None or isinstance(expected, str | Mapping):
        raise ValueError(f"the expected calls are a list, not {short(expected)}")
    if mode not in MODES:
        raise ValueError(f"trajectory mode {mode!r} is none of {', '.join(MODES)}")
    reader = _Reader(tools, namespaces, text)
    wanted = reader.turns(expected, "expected")
    made = [[call for call in turn if call.name not in optional] for turn in reader.turns(produced, "produced")]
    if mode == "ordered":
        return _ordered(made, wanted)
    return _unordered(
        [call for turn in made for call in turn], [call for turn in wanted for call in turn], mode, reader
    )


class _Reader:
    """Makes comparable calls of what rows, models and servers call a call."""

    def __init__(self, tools: Sequence[Mapping[str, Any]], namespaces: bool, text: Form | Mapping[str, Form]) -> None:
        specs = [tool.get("function", tool) if isinstance(tool.get("function"), Mapping) else tool for tool in tools]
        self.schemas = {str(spec["name"]): spec.get("parameters") or {} for spec in specs if "name" in spec}
        self.namespaces = namespaces
        self.text = text

    def turns(self, calls: Sequence[Any], side: str) -> list[list[Call]]:
        """Turns of calls; a call outside any list is a turn of its own."""
        turns = [list(each) if isinstance(each, list | tuple) else [each] for each in calls]
        return [[self.call(each, side) for each in turn if _counts(each)] for turn in turns]

    def call(self, each: Any, side: str) -> Call:
        name, arguments = _get(each, "name"), _get(each, "arguments")
        if not isinstance(name, str):
            raise ValueError(f"{side} call {short(each)} has no name")
        name = self.name(name)
        if isinstance(arguments, str | bytes):
            arguments = _parsed(arguments)
        if arguments is None and side == "expected":
            arguments = {}
        if not isinstance(arguments, Mapping):
            return Call(name, None, key=(name, object()))  # equal to nothing, itself apart
        schema = self.schemas.get(name, {})
        filled = _filled(arguments, schema, schema)
        return Call(name, filled, key=(name, self.canonical(filled)))

    def name(self, name: str) -> str:
        """The declared name that `name` stands for, when it differs by namespaces only."""
        if not self.namespaces or name in self.schemas:
            return name
        last = SEPARATORS.split(name)[-1]
        same = [known for known in self.schemas if SEPARATORS.split(known)[-1] == last]
        return same[0] if len(same) == 1 else last if not self.schemas else name

    def canonical(self, value: Any, argument: str = "") -> Any:
        """Hashable and equal for what means the same: JSON has one kind of number, and true is none."""
        if isinstance(value, bool) or value is None:
            return ("literal", value)
        if isinstance(value, int | float):
            return ("number", int(value) if math.isfinite(value) and value == int(value) else value)
        if isinstance(value, str):
            form = self.text if isinstance(self.text, Form) else self.text.get(argument, EXACT)
            return ("text", form.of(value))
        if isinstance(value, Mapping):
            return ("object", frozenset((str(name), self.canonical(each, str(name))) for name, each in value.items()))
        return ("array", tuple(self.canonical(each, argument) for each in value))


def _unordered(made: list[Call], wanted: list[Call], mode: Mode, reader: _Reader) -> Grade:
    left, extra = list(wanted), []
    for call in made:
        hit = next((each for each in left if each.key == call.key), None)
        if hit is None:
            extra.append(call)
        else:
            left.remove(hit)
    hits = len(wanted) - len(left)
    if mode == "f1":
        score = 2 * hits / (len(made) + len(wanted)) if made or wanted else 1.0
        return Grade(score, f"{hits} of {len(wanted)} expected calls among {len(made)}")
    repeats = [call for call in extra if any(call.key == each.key for each in wanted)]
    if not left and not (repeats if mode == "subset" else extra):
        return right()
    return wrong(_explained(left, extra, repeats, reader))


def _ordered(made: list[list[Call]], wanted: list[list[Call]]) -> Grade:
    """Both sides are sequences of turns; walk them together, taking what both have next."""
    ours, theirs = [list(turn) for turn in made if turn], [list(turn) for turn in wanted if turn]
    position = 0
    while ours and theirs:
        common = _take_common(ours[0], theirs[0])
        if not common:
            return wrong(f"call {position + 1} was {ours[0][0]}, expected {theirs[0][0]}")
        position += common
        ours, theirs = ours[0 if ours[0] else 1 :], theirs[0 if theirs[0] else 1 :]
    if theirs:
        return wrong(f"missing: {theirs[0][0]}")
    return wrong(f"one call too many: {ours[0][0]}") if ours else right()


def _take_common(ours: list[Call], theirs: list[Call]) -> int:
    """Removes from both the calls that both have; how many that were."""
    count = 0
    for call in list(ours):
        hit = next((each for each in theirs if each.key == call.key), None)
        if hit is not None:
            theirs.remove(hit)
            ours.remove(call)
            count += 1
    return count


def _explained(missing: list[Call], extra: list[Call], repeats: list[Call], reader: _Reader) -> str:
    if repeats:
        return f"made more often than expected: {repeats[0]}"
    if not missing:
        return f"not expected: {extra[0]}"
    near = next((call for call in extra if call.name == missing[0].name), None)
    if near is None:
        return f"missing: {missing[0]}" + (f"; instead {extra[0]}" if extra else "")
    return _difference(near, missing[0], reader)


def _difference(call: Call, wanted: Call, reader: _Reader) -> str:
    """The first argument in which two calls of one tool differ, in words."""
    if call.arguments is None or wanted.arguments is None:
        return f"{call.name}: the arguments are no JSON object"
    known = reader.schemas.get(call.name, {}).get("properties")
    for name in {**wanted.arguments, **call.arguments}:
        if name not in wanted.arguments:
            what = "unknown" if known is not None and name not in known else "not expected"
            return f"{call.name}: argument {name!r} is {what}"
        if name not in call.arguments:
            return f"{call.name}: argument {name!r} is missing, expected {short(wanted.arguments[name])}"
        got, want = call.arguments[name], wanted.arguments[name]
        if reader.canonical(got, name) != reader.canonical(want, name):
            kinds = (_kind(got), _kind(want))
            types = f" (type differs: {kinds[0]}, not {kinds[1]})" if kinds[0] != kinds[1] else ""
            return f"{call.name}: argument {name!r} is {short(got)}, expected {short(want)}{types}"
    return f"{call.name}: differs"


def _kind(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return next((name for name, kind in TYPES.items() if isinstance(value, kind)), "object")


def _filled(arguments: Mapping[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """`arguments` with the defaults that the schema gives for what is left out, nested objects too. An optional
    argument without a default that is null equals one left out, when the schema lets it be null."""
    filled = dict(arguments)
    for name, spec in _properties(schema, root):
        if name not in filled and "default" in spec:
            filled[name] = spec["default"]
        if filled.get(name, 0) is None and name not in schema.get("required", ()) and spec.get("default") is None:
            del filled[name]
        elif isinstance(filled.get(name), Mapping):
            filled[name] = _filled(filled[name], spec, root)
        elif isinstance(filled.get(name), list) and isinstance(spec.get("items"), Mapping):
            items = _resolved(spec["items"], root)
            filled[name] = [_filled(each, items, root) if isinstance(each, Mapping) else each for each in filled[name]]
    return filled


def _properties(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    properties = schema.get("properties")
    for name, spec in properties.items() if isinstance(properties, Mapping) else ():
        if isinstance(spec, Mapping):
            yield name, _resolved(spec, root)


def _resolved(spec: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follows one local `$ref` (`#/$defs/Name`), as pydantic writes them."""
    reference = spec.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = root
        for part in reference[2:].split("/"):
            target = target.get(part, {}) if isinstance(target, Mapping) else {}
        return {**target, **{name: value for name, value in spec.items() if name != "$ref"}}
    return spec


def _counts(each: Any) -> bool:
    return _get(each, "status") in (None, "ok", "completed", "in_progress")


def _get(each: Any, name: str) -> Any:
    return each.get(name) if isinstance(each, Mapping) else getattr(each, name, None)


def _parsed(text: str | bytes) -> Any:
    try:
        return strict_json.loads(text)
    except strict_json.JSONError:
        return None
