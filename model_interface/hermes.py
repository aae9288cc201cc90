"""Tool calls as many open models write them: `<tool_call>{"name": …, "arguments": …}</tool_call>` in the text. Pure.

Source: the Hermes function calling format of Nous Research, which the chat templates of Qwen and others speak.
"""

import json
import re
from typing import Any

from wire import strict_json

_BLOCK = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[\s,:]*")


def read_calls(text: str) -> tuple[str, list[dict[str, Any]]]:
    """(the text before the calls, the calls in chat's form); a call's arguments are the model's own text.

    A block that is no such call stays in the text, and so do all of them: half understood is not understood.
    """
    calls: list[dict[str, Any]] = []
    for block in _BLOCK.finditer(text):
        call = _call(block.group(1))
        if call is None:
            return text, []
        calls.append(call)
    if not calls:
        return text, []
    return text[: text.index("<tool_call>")].strip(), calls


def _call(block: str) -> dict[str, Any] | None:
    try:
        value = strict_json.loads(block)
    except strict_json.JSONError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = raw_members(block).get("arguments", "{}")
    return {"type": "function", "function": {"name": value["name"], "arguments": arguments}}


def raw_members(text: str) -> dict[str, str]:
    """The members of a JSON object as the texts of their values; the text has been found to be one."""
    members: dict[str, str] = {}
    position = _skip(text, text.index("{") + 1)
    while text[position] != "}":
        name, position = _DECODER.raw_decode(text, position)
        start = _skip(text, position)
        _, position = _DECODER.raw_decode(text, start)
        members[name] = text[start:position]
        position = _skip(text, position)
    return members


def _skip(text: str, position: int) -> int:
    """Past white space and the punctuation between members."""
    found = _BETWEEN.match(text, position)
    return found.end() if found else position
