"""JSON schemas as a model is to see them: without noise, and marked `strict` only where they are."""

from typing import Any


def without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema less the titles that pydantic makes out of names; a property that is called `title` stays."""
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key in ("properties", "$defs", "patternProperties") and isinstance(value, dict):
            kept[key] = {name: without_titles(each) for name, each in value.items()}
        elif key in ("default", "const", "enum", "examples"):
            kept[key] = value
        else:
            kept[key] = _without_titles_in(value)
    return kept


def _without_titles_in(value: Any) -> Any:
    if isinstance(value, dict):
        return without_titles(value)
    if isinstance(value, list):
        return [_without_titles_in(each) for each in value]
    return value


def is_strict(schema: Any) -> bool:
    """Whether OpenAI takes the schema as `strict`: every object closed and every property required, all the way down.

    Source: OpenAI API guide, Structured Outputs, supported schemas.
    """
    if not isinstance(schema, dict):
        return True
    if not ({"type", "anyOf", "$ref", "enum", "const", "allOf", "oneOf"} & schema.keys()):
        return False  # anything at all
    if schema.get("type") == "object" and not _is_closed(schema):
        return False
    parts = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    parts += [each for key in ("anyOf", "allOf", "oneOf", "prefixItems") for each in schema.get(key, [])]
    parts += [schema["items"]] if "items" in schema else []
    return all(is_strict(each) for each in parts)


def _is_closed(schema: dict[str, Any]) -> bool:
    properties = schema.get("properties", {})
    return schema.get("additionalProperties") is False and set(schema.get("required", [])) == set(properties)
