"""What is wrong with a tool call's arguments, in sentences for the model that made it."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

QUOTED_CHARACTERS = 80  # of a wrong value; a model that floods its arguments is not answered with the flood
MAX_SENTENCES = 10

TYPES: dict[str, str] = {
    "int_parsing": "an integer",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "int_parsing_size": "an integer of fewer digits",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a string",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "none_required": "null",
}
"""pydantic's error type -> what the value should have been."""


class Mistake(Exception):
    """The arguments of a call are wrong: the model's doing, told to the model."""

    def __init__(self, told: list[str]) -> None:
        super().__init__("; ".join(told))
        self.sentences = told


def sentences(error: ValidationError, tool: str, parameters: Sequence[str], text: bytes) -> list[str]:
    """One sentence per thing that is wrong, each beginning with the argument's name."""
    told = [_sentence(each, tool, parameters, text) for each in error.errors(include_url=False, include_context=True)]
    rest = len(told) - MAX_SENTENCES
    return told[:MAX_SENTENCES] + ([f"and {rest} more"] if rest > 0 else [])


def _sentence(error: ErrorDetails, tool: str, parameters: Sequence[str], text: bytes) -> str:
    where = ".".join(str(part) for part in error["loc"])
    kind, value = error["type"], error["input"]
    if kind == "json_invalid":
        return _not_json(str(error.get("ctx", {}).get("error", error["msg"])), text)
    if not where:
        return f"the arguments should be a JSON object, got {quoted(value)}"
    if kind == "missing":
        return f"{where}: is missing"
    if kind == "extra_forbidden":
        takes = ", ".join(parameters) or "no arguments"
        return f"{where}: is not an argument of {tool} (it takes {takes})"
    special = _SPECIAL.get(kind)
    if special:
        return f"{where}: {special(error)}"
    if kind in TYPES:
        return f"{where}: should be {TYPES[kind]}, got {quoted(value)}"
    return f"{where}: {_lowered(error['msg'])}, got {quoted(value)}"


def _not_json(reason: str, text: bytes) -> str:
    if "recursion" in reason:
        return "the arguments are nested too deeply"
    if "number out of range" in reason:
        return "the arguments hold a number of too many digits"
    return f"the arguments are not valid JSON: {reason}; got {quoted(text.decode(errors='replace'))}"


def _choice(error: ErrorDetails) -> str:
    return f"should be {error.get('ctx', {}).get('expected')}, got {quoted(error['input'])}"


def _value_error(error: ErrorDetails) -> str:
    return f"{error.get('ctx', {}).get('error')}, got {quoted(error['input'])}"


_SPECIAL: dict[str, Callable[[ErrorDetails], str]] = {
    "literal_error": _choice,
    "enum": _choice,
    "value_error": _value_error,
    "assertion_error": _value_error,
}


def _lowered(message: str) -> str:
    """pydantic's own sentence, to follow the argument's name: `should be greater than 0`."""
    message = message.removeprefix("Input ")
    return message[:1].lower() + message[1:]


def quoted(value: Any) -> str:
    """The value as the model wrote it, cut where it is long."""
    text = repr(value) if len(str(value)) <= QUOTED_CHARACTERS else repr(str(value)[:QUOTED_CHARACTERS]) + "…"
    return text if isinstance(value, str) else {"None": "null", "True": "true", "False": "false"}.get(text, text)
