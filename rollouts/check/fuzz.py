"""Arguments that a JSON schema allows, and some that it does not, drawn from dice."""

import itertools
import string
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from rollouts.check.world import ACT, Move

WORDS = ("harbour", "violet", "engine", "quarter", "meadow", "signal", "copper", "window", "granite", "lantern")
DEPTH = 4  # of generated values; deeper ones are left empty


def gibberish(dice: Random, words: int = 8) -> str:
    """Words and made-up ones that answer nothing."""
    made = ("".join(dice.choices(string.ascii_lowercase, k=dice.randint(3, 9))) for _ in range(words))
    return " ".join(dice.choice((each, dice.choice(WORDS))) for each in made)


def value(schema: Mapping[str, Any], dice: Random, root: Mapping[str, Any] | None = None, depth: int = 0) -> Any:
    """Some value of a schema; patterns and formats are not looked at."""
    root = schema if root is None else root
    if "$ref" in schema:
        return value(_resolved(schema["$ref"], root), dice, root, depth)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return dice.choice(schema["enum"])
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return value(dice.choice(choices), dice, root, depth)
    kind = schema.get("type", "string")
    kind = dice.choice(kind) if isinstance(kind, list) else kind
    return _of_kind(str(kind), schema, dice, root, depth)


def moves(tools: Mapping[str, Mapping[str, Any]], dice: Random, count: int) -> tuple[Move, ...]:
    """Random valid calls of random tools."""
    if not tools:
        return ()
    names = sorted(tools)
    return tuple(Move(name, value(tools[name], dice)) for name in dice.choices(names, k=count))


def explorer(
    tools: Mapping[str, Mapping[str, Any]], dice: Random, known: Sequence[Any] = (), each: int = 2
) -> list[Move]:
    """Calls that show what there is to see: every tool with few arguments, with random ones, with known ones, and with wrong ones.

    Args:
        tools: Name -> argument schema.
        dice: For the random ones.
        known: Texts and numbers that name things in the world; an argument of their type takes one of them.
        each: Random calls of each tool.
    """
    by_tool = [_exploring(name, schema, dice, known, each) for name, schema in tools.items()]
    return [move for together in itertools.zip_longest(*by_tool) for move in together if move is not None]


def _exploring(name: str, schema: Mapping[str, Any], dice: Random, known: Sequence[Any], each: int) -> list[Move]:
    """The calls of one tool, no two alike."""
    required = {key: schema["properties"][key] for key in schema.get("required") or ()}
    found = [Move(name, value({**schema, "properties": required}, dice)), Move(name, value(schema, dice))]
    if name != ACT:
        found += [Move(name, {"no_such_argument": 1}), Move(name, None, b"{")]
        found.append(Move(name, {key: {} for key in required}))
    found += [Move(name, _naming(value(schema, dice), thing)) for thing in known]
    found += [Move(name, value(schema, dice)) for _ in range(each - 1)]
    return [move for index, move in enumerate(found) if move not in found[:index]]


def _naming(arguments: Any, thing: Any) -> Any:
    """The arguments with the thing in place of each of its type."""
    if not isinstance(arguments, dict):
        return arguments
    return {key: thing if type(each) is type(thing) else each for key, each in arguments.items()}


def _of_kind(kind: str, schema: Mapping[str, Any], dice: Random, root: Mapping[str, Any], depth: int) -> Any:
    match kind:
        case "object":
            names = schema.get("properties") or {}
            return {key: value(each, dice, root, depth + 1) for key, each in names.items()} if depth < DEPTH else {}
        case "array":
            least = int(schema.get("minItems", 0))
            count = dice.randint(least, min(int(schema.get("maxItems", least + 3)), least + 3)) if depth < DEPTH else 0
            return [value(schema.get("items") or {}, dice, root, depth + 1) for _ in range(count)]
        case "integer":
            return dice.randint(*_bounds(schema))
        case "number":
            return round(dice.uniform(*_bounds(schema)), 3)
        case "boolean":
            return dice.random() < 0.5
        case "null":
            return None
        case _:
            text = gibberish(dice, dice.randint(1, 3))
            longest = schema.get("maxLength")
            return text if longest is None else text[: int(longest)]


def _bounds(schema: Mapping[str, Any]) -> tuple[int, int]:
    least = schema.get("minimum", schema.get("exclusiveMinimum"))
    most = schema.get("maximum", schema.get("exclusiveMaximum"))
    low = (
        int(least) + ("exclusiveMinimum" in schema) if least is not None else -999 if most is None else int(most) - 999
    )
    high = int(most) - ("exclusiveMaximum" in schema) if most is not None else max(low, 0) + 999
    return low, max(low, high)


def _resolved(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found  # type: ignore[no-any-return]
