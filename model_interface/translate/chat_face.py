"""For clients that speak Chat Completions to us: their request as a Responses request, our response as a chat completion."""

from typing import Any

from model_interface.translate.answers import new_id, reasoning_item
from model_interface.translate.errors import InvalidRequest
from model_interface.translate.parameters import LOGPROBS
from model_interface.translate.reasoning import reasoning_field
from model_interface.translate.requests import EXTRA_SAMPLING, Shapes, check_fields, check_shapes
from wire import strict_json

Item = dict[str, Any]

SAME = (
    "model", "temperature", "top_p", "parallel_tool_calls", "metadata", "store", "stream", "user", "service_tier",
    "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "top_logprobs", "extra_body", "trivium",
)  # fmt: skip
TRANSLATED = frozenset(
    {
        "messages", "tools", "tool_choice", "max_tokens", "max_completion_tokens", "response_format", "reasoning_effort", "verbosity",
        "logprobs", "stream_options", "n", "modalities",
    }
)  # fmt: skip
WITHOUT_COUNTERPART = frozenset({"functions", "function_call", "audio", "prediction", "web_search_options"})
ROLES = ("system", "developer", "user", "assistant", "tool")
MESSAGE_FIELDS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "tool": {"role", "content", "tool_call_id", "name"},
}
PART_FIELDS = {
    kind: frozenset({"type", kind, "cache_control", "prompt_cache_breakpoint"})
    for kind in ("text", "image_url", "input_audio", "file")
}
SHAPES: Shapes = {
    "messages": ((list,), "a list of messages"),
    "tools": ((list,), "a list of tools"),
    "tool_choice": ((str, dict), "auto, none, required or an object"),
    "response_format": ((dict,), "an object"),
    "stream_options": ((dict,), "an object"),
    "modalities": ((list,), "a list of names"),
    "max_tokens": ((int,), "a whole number"),
    "max_completion_tokens": ((int,), "a whole number"),
}
FINISHES = {"max_output_tokens": "length", "context_window": "length", "content_filter": "content_filter"}


def chat_request_to_responses(body: dict[str, Any]) -> dict[str, Any]:
    """A Responses request that asks the same.

    Raises:
        InvalidRequest: an unknown or untranslatable parameter, role, part or tool, by its path in the chat request.
    """
    _check(body)
    request = {name: body[name] for name in SAME if body.get(name) is not None}
    request |= {
        name: body[name]
        for name in EXTRA_SAMPLING.intersection(body)
        if body[name] is not None and name not in TRANSLATED
    }
    request["input"] = messages_to_items(body["messages"])
    limit = body["max_completion_tokens"] if body.get("max_completion_tokens") is not None else body.get("max_tokens")
    if limit is not None:
        request["max_output_tokens"] = limit
    if body.get("reasoning_effort") is not None:
        request["reasoning"] = {"effort": body["reasoning_effort"]}
    if body.get("logprobs"):
        request["include"] = [LOGPROBS]
    text = _text(body)
    if text:
        request["text"] = text
    if body.get("tools"):
        request["tools"] = [_tool(tool, f"tools[{index}]") for index, tool in enumerate(body["tools"])]
    if body.get("tool_choice") is not None:
        request["tool_choice"] = _choice(body["tool_choice"])
    return request


def messages_to_items(messages: list[dict[str, Any]]) -> list[Item]:
    """Chat messages as Responses items, in order: what `items_to_messages` turns back."""
    items: list[Item] = []
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ROLES:
            raise InvalidRequest(f"{path}.role is {role!r}; known: {', '.join(ROLES)}", param=f"{path}.role")
        for field, value in message.items():
            if role != "assistant" and field not in MESSAGE_FIELDS[role] and value is not None:
                raise InvalidRequest(f"{path} has an unknown field {field!r}", param=f"{path}.{field}")
        if role == "assistant":
            items += _assistant(message, path)
        elif role == "tool":
            items.append(_output(message, path))
        else:
            item = {"type": "message", "role": role, "content": _content(message.get("content"), f"{path}.content")}
            items.append({**item, "name": message["name"]} if message.get("name") else item)
    return items


def response_to_chat(response: dict[str, Any]) -> dict[str, Any]:
    """A chat completion that says the same."""
    text, refusal, thoughts = "", "", ""
    calls: list[Item] = []
    logprobs: list[Any] = []
    for item in response["output"]:
        kind = item.get("type")
        if kind == "function_call":
            function = {"name": item["name"], "arguments": item["arguments"]}
            calls.append({"id": item["call_id"], "type": "function", "function": function})
        elif kind == "reasoning":
            thoughts += "\n\n".join(part["text"] for part in item.get("content") or item.get("summary") or ())
        elif kind == "message":
            for part in item["content"]:
                text += part.get("text", "")
                refusal += part.get("refusal", "")
                logprobs += part.get("logprobs") or ()
    absent = None if calls or refusal or thoughts else ""
    message: dict[str, Any] = {"role": "assistant", "content": text or absent, "refusal": refusal or None}
    if thoughts:
        message["reasoning_content"] = thoughts
    if calls:
        message["tool_calls"] = calls
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": finish_of(response),
        "logprobs": {"content": logprobs} if logprobs else None,
    }
    return {
        "id": new_id("chatcmpl"),
        "object": "chat.completion",
        "created": int(response.get("created_at") or 0),
        "model": response.get("model") or "",
        "choices": [choice],
        "usage": chat_usage(response.get("usage")),
        **own_field(response),
    }


def own_field(response: dict[str, Any]) -> dict[str, Any]:
    """Our own field of a response (token ids, times), which every dialect carries on; empty where there is none."""
    return {"trivium": response["trivium"]} if "trivium" in response else {}


def finish_of(response: dict[str, Any]) -> str:
    """The finish reason of a response."""
    reason = (response.get("incomplete_details") or {}).get("reason")
    if reason:
        return FINISHES.get(reason, "length")
    return "tool_calls" if any(item.get("type") == "function_call" for item in response["output"]) else "stop"


def chat_usage(usage: dict[str, Any] | None) -> dict[str, Any] | None:
    """Chat usage from Responses usage."""
    if not usage:
        return None
    prompt, completion = usage.get("input_tokens", 0), usage.get("output_tokens", 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": usage.get("total_tokens", prompt + completion),
        "prompt_tokens_details": {"cached_tokens": (usage.get("input_tokens_details") or {}).get("cached_tokens", 0)},
        "completion_tokens_details": {
            "reasoning_tokens": (usage.get("output_tokens_details") or {}).get("reasoning_tokens", 0)
        },
    }


def _check(body: dict[str, Any]) -> None:
    check_shapes(body, SHAPES)
    for name, value in body.items():
        if name in WITHOUT_COUNTERPART and value is not None:
            raise InvalidRequest(f"{name} is not supported here; use tools, text and images", param=name)
        if (
            name not in SAME
            and name not in TRANSLATED
            and name not in EXTRA_SAMPLING
            and name not in WITHOUT_COUNTERPART
        ):
            raise InvalidRequest(
                f"unknown parameter {name!r}; what only your server knows goes into `extra_body`", param=name
            )
    if body.get("n") not in (None, 1):
        raise InvalidRequest(f"n is {body['n']}; one answer per request, ask again for more", param="n")
    if any(each != "text" for each in body.get("modalities") or ()):
        raise InvalidRequest("modalities: only text comes back", param="modalities")
    if not body.get("messages"):
        raise InvalidRequest("messages has to be a list with at least one message", param="messages")


def _assistant(message: dict[str, Any], path: str) -> list[Item]:
    items: list[Item] = []
    thoughts = reasoning_field(message)
    if thoughts:
        items.append(reasoning_item(thoughts))
    if message.get("function_call") or message.get("audio"):
        field = "function_call" if message.get("function_call") else "audio"
        raise InvalidRequest(f"{path}.{field} is not supported here; calls are in tool_calls", param=f"{path}.{field}")
    content = _said(message, path)
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, list | tuple):
        raise InvalidRequest(f"{path}.tool_calls has to be a list", param=f"{path}.tool_calls")
    if content or not (calls or thoughts):
        items.append({"type": "message", "role": "assistant", "content": content})
    return items + [_call(call, f"{path}.tool_calls[{index}]") for index, call in enumerate(calls)]


def _said(message: dict[str, Any], path: str) -> str | list[Item]:
    content, refusal = message.get("content"), message.get("refusal")
    if refusal is not None and not isinstance(refusal, str):
        raise InvalidRequest(f"{path}.refusal has to be a string", param=f"{path}.refusal")
    if isinstance(content, list):
        parts = [_said_part(part, f"{path}.content[{index}]") for index, part in enumerate(content)]
        return parts + ([{"type": "refusal", "refusal": refusal}] if refusal else [])
    if content is not None and not isinstance(content, str):
        raise InvalidRequest(f"{path}.content has to be a string, a list of parts or null", param=f"{path}.content")
    if not refusal:
        return content or ""
    return [*([{"type": "output_text", "text": content}] if content else []), {"type": "refusal", "refusal": refusal}]


def _said_part(part: Any, path: str) -> Item:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return {"type": "output_text", "text": part["text"]}
    if kind == "refusal" and isinstance(part.get("refusal"), str):
        return {"type": "refusal", "refusal": part["refusal"]}
    raise InvalidRequest(
        f"{path}.type is {kind!r}; an assistant message has text and refusal parts", param=f"{path}.type"
    )


def _call(call: Any, path: str) -> Item:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise InvalidRequest(f"{path} has to be {{id, type: function, function: {{name, arguments}}}}", param=path)
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        raise InvalidRequest(f"{path}.function.arguments has to be a string", param=f"{path}.function.arguments")
    return {
        "type": "function_call",
        "call_id": str(call.get("id") or ""),
        "name": function["name"],
        "arguments": arguments,
    }


def _output(message: dict[str, Any], path: str) -> Item:
    call_id = message.get("tool_call_id")
    if not isinstance(call_id, str):
        raise InvalidRequest(f"{path}.tool_call_id has to be a string", param=f"{path}.tool_call_id")
    return {
        "type": "function_call_output",
        "call_id": call_id,
        "output": _content(message.get("content"), f"{path}.content"),
    }


def _content(content: Any, path: str) -> str | list[Item]:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise InvalidRequest(f"{path} has to be a string or a list of parts", param=path)
    return [_part(part, f"{path}[{index}]") for index, part in enumerate(content)]


def _part(part: Any, path: str) -> Item:
    kind = part.get("type") if isinstance(part, dict) else None
    if isinstance(kind, str) and kind in PART_FIELDS:
        check_fields(part, PART_FIELDS[kind], path)
    if kind == "text" and isinstance(part.get("text"), str):
        return {"type": "input_text", "text": part["text"]}
    if kind == "image_url":
        image = part.get("image_url")
        image = {"url": image} if isinstance(image, str) else image
        if isinstance(image, dict) and isinstance(image.get("url"), str):
            return {
                "type": "input_image",
                "image_url": image["url"],
                **({"detail": image["detail"]} if image.get("detail") else {}),
            }
    if kind == "input_audio" and isinstance(part.get("input_audio"), dict):
        return {"type": "input_audio", "input_audio": part["input_audio"]}
    if kind == "file" and isinstance(part.get("file"), dict):
        return {"type": "input_file", **part["file"]}
    raise InvalidRequest(
        f"{path}: a part of type {kind!r}; known: text, image_url, input_audio, file, each with its content", param=path
    )


def _tool(tool: Any, path: str) -> Item:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or tool.get("type", "function") != "function":
        raise InvalidRequest(f"{path} has to be {{type: function, function: {{name, …}}}}", param=path)
    return {"type": "function", **function}


def _choice(choice: Any) -> Any:
    if isinstance(choice, dict) and choice.get("type") == "function" and isinstance(choice.get("function"), dict):
        return {"type": "function", "name": choice["function"].get("name")}
    if (
        isinstance(choice, dict)
        and choice.get("type") == "allowed_tools"
        and isinstance(choice.get("allowed_tools"), dict)
    ):
        allowed = choice["allowed_tools"]
        listed = allowed.get("tools") if isinstance(allowed.get("tools"), list) else []
        functions = [each.get("function") for each in listed or () if isinstance(each, dict)]
        tools = [{"type": "function", "name": each.get("name")} for each in functions if isinstance(each, dict)]
        return {"type": "allowed_tools", "mode": allowed.get("mode", "auto"), "tools": tools}
    if isinstance(choice, str):
        return choice
    raise InvalidRequest(
        f"tool_choice is {str(strict_json.dumps(choice), 'utf-8')[:80]}; known: auto, none, required, function, allowed_tools",
        param="tool_choice",
    )


def _text(body: dict[str, Any]) -> dict[str, Any]:
    text: dict[str, Any] = {"verbosity": body["verbosity"]} if body.get("verbosity") is not None else {}
    wanted = body.get("response_format")
    if wanted is None:
        return text
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind == "json_schema" and isinstance(wanted.get("json_schema"), dict):
        return {**text, "format": {"type": "json_schema", **wanted["json_schema"]}}
    if kind in ("text", "json_object"):
        return {**text, "format": {"type": kind}}
    raise InvalidRequest(
        f"response_format.type is {kind!r}; known: text, json_object, json_schema", param="response_format"
    )
