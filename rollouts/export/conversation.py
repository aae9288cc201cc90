"""Episodes as chat messages, the form that supervised and preference trainers read."""

import importlib
from collections.abc import Mapping
from typing import Any

from rollouts.export.reading import Line
from rollouts.export.targets import own_items
from wire import strict_json
from wire.responses import user_items

Message = dict[str, Any]


def prompt_of(line: Line) -> list[Message]:
    """What the model was given before it said anything: instructions and the row's input."""
    body = line.get("task_input", line)
    params = body.get("responses_create_params") or {}
    return _messages(user_items(params.get("input") or []), params.get("instructions"))


def completion_of(line: Line) -> list[Message]:
    """Everything after: assistant turns and what the tools answered; no message that the harness added at the end."""
    prompt = user_items((line.get("task_input", line).get("responses_create_params") or {}).get("input") or [])
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


def _messages(items: list[dict[str, Any]], instructions: str | None) -> list[Message]:
    # By name: the collector's package imports no server's modules; this one is pure.
    translate: Any = importlib.import_module("model_interface.translate")
    found: list[Message] = translate.items_to_messages(items, instructions)
    return found


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
