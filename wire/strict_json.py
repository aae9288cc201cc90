"""JSON that never lies: what RFC 8259 allows, whole numbers kept exact, no NaN, one exception class.

orjson is the fast path out; pydantic-core's parser the fast path in, since orjson reads a 30-digit integer as a float. The
standard library serves what they refuse but the RFC allows (lone surrogates in escapes, integers past 64 bits).
"""

import json
from typing import Any, NoReturn

import orjson
from pydantic_core import from_json

QUOTED_CHARACTERS = 80  # of the offending text, in a message


class JSONError(ValueError):
    """The text is not strict JSON, or the value has no JSON form. The message says where."""


def loads(data: bytes | bytearray | str) -> Any:
    """The value of one JSON text.

    Raises:
        JSONError: for anything RFC 8259 does not allow, NaN and infinities, and what goes over the parser's own bounds: some 200
            levels of nesting, 4300 digits of an integer.
    """
    try:
        return from_json(data, allow_inf_nan=False)
    except ValueError as error:
        if "surrogate" in str(error) or "hex escape" in str(error):
            return _loads_slowly(data)
        raise JSONError(_shorten(str(error))) from None
    except TypeError:  # a str that holds a lone surrogate itself: no UTF-8 for that parser, but text all the same
        if not isinstance(data, str):
            raise
        return _loads_slowly(data)


def loads_numbers(data: bytes) -> Any:
    """The same in half the time, for texts that are mostly token ids and log-probs: a whole number past 64 bits becomes a float here."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return loads(data)


def refuse_overflow(value: Any) -> None:
    """Raise JSONError, naming the path, where `loads` made an infinity of a number such as 1e999, which could not be written again.

    It looks at every number, so it is for rows and arguments, not for each call's body.
    """
    _refuse_non_finite(value, "$")


def dumps(value: Any, *, trusted: bool = False) -> bytes:
    """UTF-8 JSON text of plain dicts, lists, strings, numbers, booleans and None; no spaces, keys in order.

    Args:
        value: What to write.
        trusted: Every float in it came out of `loads`, so the search for NaN is left out (hot paths).

    Raises:
        JSONError: NaN or an infinity (named by its path), a key that is no string, or a type without a JSON form.
    """
    try:
        text = orjson.dumps(value)
    except (orjson.JSONEncodeError, RecursionError):
        return _dumps_slowly(value)
    if (
        not trusted and b"null" in text
    ):  # orjson writes NaN and infinities as null: look closer only where one might hide
        _refuse_non_finite(value, "$")
    return text


def _loads_slowly(data: bytes | bytearray | str) -> Any:
    """The standard library's reading, for lone surrogates, which RFC 8259 lets through and UTF-8 parsers refuse."""
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise JSONError(_shorten(str(error))) from None


def _dumps_slowly(value: Any) -> bytes:
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except ValueError as error:
        if "Circular" in str(error):
            raise JSONError("the value refers to itself") from None
        _refuse_non_finite(value, "$")
        raise JSONError(_shorten(str(error))) from None
    except RecursionError:
        raise JSONError("the value is nested too deeply") from None
    except TypeError as error:
        raise JSONError(_shorten(str(error))) from None
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate: keep it as the escape it came from
        return json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":")).encode()


def _refuse_non_finite(value: Any, path: str) -> None:
    try:
        _look_for_non_finite(value, path)
    except RecursionError:
        raise JSONError("the value is nested too deeply") from None


def _look_for_non_finite(value: Any, path: str) -> None:
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise JSONError(f"{path} is {value}, which JSON cannot hold")
    elif isinstance(value, dict):
        for key, each in value.items():
            _look_for_non_finite(each, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            _look_for_non_finite(each, f"{path}[{index}]")


def _refuse_constant(name: str) -> NoReturn:
    raise JSONError(f"{name} is not JSON")


def _shorten(message: str) -> str:
    return message if len(message) <= 300 else f"{message[:QUOTED_CHARACTERS]}…"
