"""Episodes as chat messages, the form that supervised and preference trainers read."""

import importlib
from collections.abc import Mapping
from typing import Any

from rollouts.export.reading import Line
from rollouts.export.targets import own_items
from wire import strict_json
from wire.errors import UsageError
from wire.responses import user_items

Message = dict[str, Any]


def prompt_of(line: Line) -> list[Message]:
    """What the model was given before it said anything: instructions and the row's input.

    Raises:
        UsageError: an item has no form as a chat message; `completion_of` too.
    """
    params = _asked(line)
    return _messages(user_items(params.get("input") or []), params.get("instructions"))


def completion_of(line: Line) -> list[Message]:
    """Everything after: assistant turns and what the tools answered; no message that the harness added at the end."""
    prompt = user_items(_asked(line).get("input") or [])
    both = _messages([*prompt, *own_items(line)], None)
    return both[len(_messages(prompt, None)) :]


def tools_of(line: Line) -> list[dict[str, Any]]:
    """The tools as Chat Completions knows them: those that the response or the row names."""
    found = (line.get("response") or {}).get("tools") or (line.get("responses_create_params") or {}).get("tools") or []
    return [_chat_tool(each) for each in found if each.get("type") == "function"]


def with_objects(messages: list[Message]) -> list[Message]:
    """Tool calls with their arguments as objects, as chat templates of open models want them."""
    return [_objects(message) for message in messages]


def without_reasoning(messages: list[Message]) -> list[Message]:
    """Messages as OpenAI's fine-tuning takes them: no reasoning beside the content."""
    return [
        {key: value for key, value in message.items() if key not in {"reasoning_content", "reasoning"}}
        for message in messages
    ]


def ends_with_assistant(messages: list[Message]) -> bool:
    """Whether the policy had the last word, as supervised trainers ask."""
    return bool(messages) and messages[-1].get("role") == "assistant"


def _asked(line: Line) -> dict[str, Any]:
    return (line.get("task_input") or line).get("responses_create_params") or {}


def _messages(items: list[dict[str, Any]], instructions: str | None) -> list[Message]:
    # By name: the collector's package imports no server's modules; this one is pure.
    translate: Any = importlib.import_module("model_interface.translate")
    try:
        found: list[Message] = translate.items_to_messages([_with_text(item) for item in items], instructions)
    except (
        TypeError,
        KeyError,
        AttributeError,
    ) as error:  # another maker's items: the record keeps what the wire would refuse
        raise UsageError(f"an item is not one of the Responses API ({type(error).__name__}: {error})") from error
    return found


def _with_text(item: dict[str, Any]) -> dict[str, Any]:
    """A call with its arguments as text, where a harness wrote them as an object, or none."""
    if item.get("type") != "function_call" or isinstance(item.get("arguments"), str):
        return item
    return {**item, "arguments": strict_json.dumps(item.get("arguments") or {}).decode()}


def _chat_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = {key: tool[key] for key in ("name", "description", "parameters", "strict") if tool.get(key) is not None}
    return {"type": "function", "function": function}


def _objects(message: Message) -> Message:
    if not message.get("tool_calls"):
        return message
    return {**message, "tool_calls": [_object(call) for call in message["tool_calls"]]}


def _object(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    try:
        arguments = strict_json.loads(function["arguments"] or "{}")
    except strict_json.JSONError:
        arguments = {}
    return {**call, "function": {**function, "arguments": arguments}}
