"""For clients that speak Anthropic's Messages to us: their request as a Responses request, our response as a message.

Not carried on, since it changes no answer: `cache_control`, signatures of thoughts, `betas`, `eager_input_streaming`. Redacted thoughts,
and tools that run on Anthropic's side, have no counterpart and are refused by name.
"""

from typing import Any

from model_interface.translate.answers import new_id, reasoning_item
from model_interface.translate.chat_face import own_field
from model_interface.translate.content import plain_arguments
from model_interface.translate.errors import InvalidRequest
from model_interface.translate.requests import Shapes, check_fields, check_shapes, unusual
from wire import strict_json
from wire.errors import TriviumError

Item = dict[str, Any]

SAME = ("model", "temperature", "top_p", "top_k", "stream", "extra_body", "trivium")
TRANSLATED = frozenset(
    {
        "messages", "max_tokens", "system", "tools", "tool_choice", "stop_sequences", "metadata", "thinking", "service_tier",
        "output_config", "output_format", "betas", "cache_control", "inference_geo",
    }
)  # fmt: skip
SHAPES: Shapes = {
    "messages": ((list,), "a list of messages"),
    "tools": ((list,), "a list of tools"),
    "tool_choice": ((dict,), "an object"),
    "metadata": ((dict,), "an object"),
    "thinking": ((dict,), "an object"),
    "output_config": ((dict,), "an object"),
    "output_format": ((dict,), "an object"),
    "stop_sequences": ((list,), "a list of strings"),
    "max_tokens": ((int,), "a whole number"),
}
BLOCK_FIELDS = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "image": frozenset({"type", "source", "cache_control"}),
    "document": frozenset({"type", "source", "title", "citations", "cache_control"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"}),
}
TOOL_FIELDS = frozenset(
    {"type", "name", "description", "input_schema", "strict", "cache_control", "eager_input_streaming"}
)
EFFORTS = ((2048, "low"), (8192, "medium"))  # a budget of thinking tokens below the number; more is high
STOP_REASONS = {
    "max_output_tokens": "max_tokens",
    "context_window": "model_context_window_exceeded",
    "content_filter": "refusal",
}
ERROR_TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
               413: "request_too_large", 429: "rate_limit_error", 503: "overloaded_error", 504: "timeout_error"}  # fmt: skip


def messages_request_to_responses(body: dict[str, Any]) -> dict[str, Any]:
    """A Responses request that asks the same.

    Raises:
        InvalidRequest: an unknown or untranslatable parameter, role, block or tool, by its path in the request.
    """
    check_shapes(body, SHAPES)
    for name, value in body.items():
        if name not in SAME and name not in TRANSLATED and value is not None:
            raise InvalidRequest(
                f"unknown parameter {name!r}; what only your server knows goes into `extra_body`", param=name
            )
    if not body.get("messages"):
        raise InvalidRequest("messages has to be a list with at least one message", param="messages")
    request = {name: body[name] for name in SAME if body.get(name) is not None}
    request["input"] = _items(body["messages"])
    if body.get("system"):
        request["instructions"] = _system(body["system"])
    if body.get("max_tokens") is not None:
        request["max_output_tokens"] = body["max_tokens"]
    if body.get("stop_sequences"):
        request["stop"] = body["stop_sequences"]
    user = (body.get("metadata") or {}).get("user_id")
    if user:
        request["user"] = user
    _add_tools(request, body)
    _add_output(request, body)
    return request


def response_to_messages(response: dict[str, Any]) -> dict[str, Any]:
    """A message that says the same; arguments that are no JSON object are shown under `invalid_arguments`."""
    content: list[Item] = []
    for item in response["output"]:
        kind = item.get("type")
        if kind == "reasoning":
            thoughts = "\n\n".join(part["text"] for part in item.get("content") or item.get("summary") or ())
            content.append({"type": "thinking", "thinking": thoughts, "signature": ""})
        elif kind == "message":
            texts = [part.get("text", part.get("refusal")) for part in item["content"]]
            content += [{"type": "text", "text": text} for text in texts if text]
        elif kind == "function_call":
            given = strict_json.loads(plain_arguments(item["arguments"]))
            content.append({"type": "tool_use", "id": item["call_id"], "name": item["name"], "input": given})
    return {
        "id": new_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": response.get("model") or "",
        "content": content,
        "stop_reason": stop_reason(response),
        "stop_sequence": None,
        "usage": messages_usage(response.get("usage")),
        **own_field(response),
    }


def stop_reason(response: dict[str, Any]) -> str:
    """Why the message ends, in Anthropic's words."""
    reason = (response.get("incomplete_details") or {}).get("reason")
    if reason:
        return STOP_REASONS.get(reason, "max_tokens")
    kinds = {item.get("type") for item in response["output"]}
    if "function_call" in kinds:
        return "tool_use"
    parts = [part for item in response["output"] if item.get("type") == "message" for part in item["content"]]
    return "refusal" if any(part.get("type") == "refusal" for part in parts) else "end_turn"


def messages_usage(usage: dict[str, Any] | None) -> dict[str, Any]:
    """Anthropic's usage: `input_tokens` are those that did not come from the cache."""
    usage = usage or {}
    cached = (usage.get("input_tokens_details") or {}).get("cached_tokens", 0)
    return {
        "input_tokens": max(usage.get("input_tokens", 0) - cached, 0),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.get("output_tokens", 0),
    }


def error_body(error: TriviumError) -> dict[str, Any]:
    """An error as Anthropic's clients read it; the code and the parameter are in the sentence."""
    kind = ERROR_TYPES.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": str(error), "code": error.code, "param": error.param}}


def _items(messages: list[Any]) -> list[Item]:
    items: list[Item] = []
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ("user", "assistant", "system"):
            raise InvalidRequest(f"{path}.role is {role!r}; known: user, assistant", param=f"{path}.role")
        for field in message:
            if field not in ("role", "content"):
                raise InvalidRequest(f"{path} has an unknown field {field!r}", param=f"{path}.{field}")
        content = message.get("content")
        if isinstance(content, str):
            items.append({"type": "message", "role": role, "content": content})
        elif isinstance(content, list):
            items += _assistant(content, path) if role == "assistant" else _user(role, content, path)
        else:
            raise InvalidRequest(f"{path}.content has to be a string or a list of blocks", param=f"{path}.content")
    return items


def _user(role: str, blocks: list[Any], path: str) -> list[Item]:
    """Tool results first, as they stand, then what the user says."""
    items: list[Item] = []
    parts: list[Item] = []
    for index, block in enumerate(blocks):
        where = f"{path}.content[{index}]"
        _check_block(block, where)
        if isinstance(block, dict) and block.get("type") == "tool_result":
            items.append(_result(block, where))
        else:
            parts.append(_part(block, where))
    if parts or not items:
        items.append({"type": "message", "role": role, "content": parts})
    return items


def _check_block(block: Any, path: str) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    if isinstance(kind, str) and kind in BLOCK_FIELDS:
        check_fields(block, BLOCK_FIELDS[kind], path)


def _assistant(blocks: list[Any], path: str) -> list[Item]:
    items: list[Item] = []
    for index, block in enumerate(blocks):
        kind, where = block.get("type") if isinstance(block, dict) else None, f"{path}.content[{index}]"
        _check_block(block, where)
        if kind == "text" and isinstance(block.get("text"), str):
            part = {"type": "output_text", "text": block["text"]}
            if items and items[-1]["type"] == "message":
                items[-1]["content"].append(part)
            else:
                items.append({"type": "message", "role": "assistant", "content": [part]})
        elif kind == "thinking" and isinstance(block.get("thinking"), str):
            items.append(reasoning_item(block["thinking"]))
        elif kind == "tool_use":
            items.append(_use(block, where))
        else:
            raise InvalidRequest(
                f"{where}: a block of type {kind!r} is not supported here; known: text, thinking, tool_use", param=where
            )
    return items


def _use(block: dict[str, Any], path: str) -> Item:
    if (
        not isinstance(block.get("id"), str)
        or not isinstance(block.get("name"), str)
        or not isinstance(block.get("input"), dict)
    ):
        raise InvalidRequest(f"{path} has to be {{type: tool_use, id, name, input: an object}}", param=path)
    arguments = str(strict_json.dumps(block["input"]), "utf-8")
    return {"type": "function_call", "call_id": block["id"], "name": block["name"], "arguments": arguments}


def _result(block: dict[str, Any], path: str) -> Item:
    content, call_id = block.get("content", ""), block.get("tool_use_id")
    if not isinstance(call_id, str):
        raise InvalidRequest(f"{path}.tool_use_id has to be a string", param=f"{path}.tool_use_id")
    if content is not None and not isinstance(content, str | list):
        raise InvalidRequest(f"{path}.content has to be a string or a list of blocks", param=f"{path}.content")
    output = (
        content
        if isinstance(content, str)
        else [_part(part, f"{path}.content[{index}]") for index, part in enumerate(content or ())]
    )
    item: Item = {"type": "function_call_output", "call_id": call_id, "output": output}
    return {**item, "status": "incomplete"} if block.get("is_error") else item


def _part(block: Any, path: str) -> Item:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text" and isinstance(block.get("text"), str):
        return {"type": "input_text", "text": block["text"]}
    source = block.get("source") if kind in ("image", "document") else None
    if isinstance(source, dict):
        url = _url(source)
        if kind == "image" and url:
            return {"type": "input_image", "image_url": url}
        if kind == "document" and source.get("type") == "text":
            return {"type": "input_text", "text": source.get("data", "")}
        if kind == "document" and source.get("type") == "base64":
            return {"type": "input_file", "filename": block.get("title") or "document.pdf", "file_data": url}
        if kind == "document" and url:
            return {"type": "input_file", "file_url": url}
    raise InvalidRequest(
        f"{path}: a block of type {kind!r} is not supported here; known: text, image, document, tool_result", param=path
    )


def _url(source: dict[str, Any]) -> str | None:
    if source.get("type") == "base64":
        return f"data:{source.get('media_type')};base64,{source.get('data')}"
    return source.get("url") if source.get("type") == "url" else None


def _system(system: Any) -> str:
    if isinstance(system, str):
        return system
    blocks: list[Any] = system if isinstance(system, list) else [None]
    for index, block in enumerate(blocks):
        if not isinstance(block, dict) or block.get("type") != "text" or not isinstance(block.get("text"), str):
            raise InvalidRequest(f"system[{index}] has to be a text block", param=f"system[{index}]")
    return "\n\n".join(block["text"] for block in blocks)


def _add_tools(request: dict[str, Any], body: dict[str, Any]) -> None:
    if body.get("tools"):
        request["tools"] = [_tool(tool, f"tools[{index}]") for index, tool in enumerate(body["tools"])]
    choice = body.get("tool_choice")
    if choice is None:
        return
    kind = choice.get("type")
    known = {"auto": "auto", "any": "required", "none": "none"}
    if kind == "tool":
        request["tool_choice"] = {"type": "function", "name": choice.get("name")}
    elif isinstance(kind, str) and kind in known:
        request["tool_choice"] = known[kind]
    else:
        raise InvalidRequest(f"tool_choice.type is {kind!r}; known: auto, any, tool, none", param="tool_choice.type")
    if choice.get("disable_parallel_tool_use") is not None:
        request["parallel_tool_calls"] = not choice["disable_parallel_tool_use"]


def _tool(tool: Any, path: str) -> Item:
    kind = tool.get("type", "custom") if isinstance(tool, dict) else None
    if kind not in ("custom", None) or not isinstance(tool, dict) or not isinstance(tool.get("input_schema"), dict):
        raise InvalidRequest(
            f"{path}: a tool of type {kind!r} is not supported here; it has name, description, input_schema", param=path
        )
    check_fields(unusual(tool), TOOL_FIELDS, path)
    made = {"type": "function", "name": tool.get("name"), "parameters": tool["input_schema"]}
    return made | {key: tool[key] for key in ("description", "strict") if tool.get(key) is not None}


def _add_output(request: dict[str, Any], body: dict[str, Any]) -> None:
    thinking, config = body.get("thinking") or {}, body.get("output_config") or {}
    effort = config.get("effort")
    if effort is None and thinking.get("type") == "enabled":
        budget = thinking.get("budget_tokens")
        budget = budget if isinstance(budget, int) else 0
        effort = next((name for limit, name in EFFORTS if budget < limit), "high")
    if effort is not None:
        request["reasoning"] = {"effort": effort}
    wanted = config.get("format") or body.get("output_format")
    if wanted is None:
        return
    if (
        not isinstance(wanted, dict)
        or wanted.get("type") != "json_schema"
        or not isinstance(wanted.get("schema"), dict)
    ):
        raise InvalidRequest("output_config.format has to be {type: json_schema, schema}", param="output_config.format")
    request["text"] = {"format": {"type": "json_schema", "name": "answer", "schema": wanted["schema"]}}
