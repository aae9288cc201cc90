"""What strict chat servers refuse in a history, as five checks; each was met in public servers and takes a whole rollout down.

Sources: vllm-project/vllm#47761, #13978, #30648; NVIDIA-NeMo/Gym#2515; NousResearch/hermes-agent#111231; google/adk-python#231.
"""

from collections.abc import Iterator
from typing import Any

from wire import strict_json


def faults(messages: list[dict[str, Any]]) -> list[str]:
    """Every fault in a history, in order; empty where a strict server would take it.

    1. a call's arguments are not the text of a JSON object;
    2. a message has an empty list of tool calls;
    3. an assistant message has neither content nor tool calls;
    4. a tool message answers no earlier call, or a call has no answer before the next message that is no tool message;
    5. a call id occurs twice.
    """
    found: list[str] = []
    seen: set[str] = set()
    waiting: list[str] = []
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        if message.get("role") == "tool":
            found += _answer(message, waiting, path)
            continue
        found += [f"{path}: call {call_id!r} before it has no answer" for call_id in waiting]
        waiting = []
        found += _shape(message, path)
        for call in message.get("tool_calls") or ():
            found += _call(call, seen, path)
            waiting.append(call.get("id"))
    return found + [f"call {call_id!r} has no answer" for call_id in waiting]


def _shape(message: dict[str, Any], path: str) -> Iterator[str]:
    if message.get("tool_calls") == []:
        yield f"{path}.tool_calls is an empty list"
    if message.get("role") == "assistant" and not message.get("content") and not message.get("tool_calls"):
        yield f"{path}: an assistant message has neither content nor tool calls"


def _call(call: dict[str, Any], seen: set[str], path: str) -> Iterator[str]:
    call_id, arguments = call.get("id", ""), call.get("function", {}).get("arguments")
    if call_id in seen:
        yield f"{path}: call id {call_id!r} occurs twice"
    seen.add(call_id)
    if not _is_object_text(arguments):
        yield f"{path}: arguments of call {call_id!r} are not the text of a JSON object: {str(arguments)[:80]}"


def _answer(message: dict[str, Any], waiting: list[str], path: str) -> Iterator[str]:
    call_id = message.get("tool_call_id", "")
    if call_id in waiting:
        waiting.remove(call_id)
    else:
        yield f"{path}: a tool message answers {call_id!r}, which no call is waiting for"


def _is_object_text(arguments: Any) -> bool:
    if not isinstance(arguments, str):
        return False
    try:
        return isinstance(strict_json.loads(arguments), dict)
    except strict_json.JSONError:
        return False
