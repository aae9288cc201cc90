"""The parameters of a Responses request as those of a chat completion; the messages are `history`'s.

Not sent on: `metadata` (it belongs to the record), `include` other than log-probs, `reasoning.summary` (the thoughts come back whole),
`store`, `stream` (the caller decides how it asks upstream). What chat cannot do at all is refused by name.
"""

from typing import Any

from model_interface.translate.errors import InvalidRequest
from model_interface.translate.requests import EXTRA_SAMPLING, TOOL_CHOICES
from wire import strict_json

SAME = (
    "model",
    "temperature",
    "top_p",
    "user",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
)
WITHOUT_COUNTERPART = ("conversation", "prompt", "max_tool_calls", "context_management")
RESERVED = frozenset(
    {"model", "messages", "tools", "tool_choice", "stream", "stream_options", "n", "input", "functions"}
)
LOGPROBS = "message.output_text.logprobs"


def request_to_chat(params: dict[str, Any], *, max_tokens_field: str = "max_tokens") -> dict[str, Any]:
    """A chat completion's body without `messages`, from the checked parameters of a Responses request.

    Args:
        params: The request; `input`, `instructions` and `previous_response_id` are not read.
        max_tokens_field: `max_completion_tokens` for OpenAI's own newer models; every other server knows `max_tokens`.

    Raises:
        InvalidRequest: a parameter that chat completions cannot express, by name.
    """
    _refuse(params)
    body = {name: params[name] for name in SAME if params.get(name) is not None}
    for name in EXTRA_SAMPLING.intersection(params):
        if params[name] is not None:
            body[name] = params[name]
    if params.get("max_output_tokens") is not None:
        body[max_tokens_field] = params["max_output_tokens"]
    effort = (params.get("reasoning") or {}).get("effort")
    if effort is not None:
        body["reasoning_effort"] = effort
    _add_logprobs(body, params)
    _add_format(body, params.get("text") or {})
    _add_tools(body, params)
    body.update(extra_body(params))
    return body


def extra_body(params: dict[str, Any]) -> dict[str, Any]:
    """Sampling parameters that only the upstream knows: `metadata.extra_body` (a JSON string), then `extra_body`.

    Raises:
        InvalidRequest: it is no JSON object, or it holds what has a place of its own.
    """
    extra: dict[str, Any] = {}
    text = (params.get("metadata") or {}).get("extra_body")
    if text:
        try:
            extra = strict_json.loads(text) if isinstance(text, str) else text
        except strict_json.JSONError as error:
            raise InvalidRequest(f"metadata.extra_body is not JSON: {error}", param="metadata.extra_body") from None
        if not isinstance(extra, dict):
            raise InvalidRequest("metadata.extra_body has to be the text of a JSON object", param="metadata.extra_body")
    extra = {**extra, **(params.get("extra_body") or {})}
    for name in RESERVED.intersection(extra):
        raise InvalidRequest(f"extra_body.{name}: {name} has its own place in the request", param=f"extra_body.{name}")
    return extra


def _refuse(params: dict[str, Any]) -> None:
    for name in WITHOUT_COUNTERPART:
        if params.get(name):
            raise InvalidRequest(f"{name} has no counterpart in Chat Completions", param=name)
    if params.get("background"):
        raise InvalidRequest("background: true has no counterpart in Chat Completions", param="background")
    if params.get("truncation") not in (None, "disabled"):
        raise InvalidRequest(
            f"truncation {params['truncation']!r} has no counterpart in Chat Completions", param="truncation"
        )


def _add_logprobs(body: dict[str, Any], params: dict[str, Any]) -> None:
    if params.get("top_logprobs") is not None:
        body["logprobs"], body["top_logprobs"] = True, params["top_logprobs"]
    elif LOGPROBS in (params.get("include") or ()):
        body["logprobs"] = True


def _add_format(body: dict[str, Any], text: dict[str, Any]) -> None:
    if text.get("verbosity") is not None:
        body["verbosity"] = text["verbosity"]
    wanted = text.get("format")
    if wanted is None or (isinstance(wanted, dict) and wanted.get("type") == "text"):
        return
    kind = wanted.get("type") if isinstance(wanted, dict) else wanted
    if kind == "json_object":
        body["response_format"] = {"type": "json_object"}
    elif kind == "json_schema" and isinstance(wanted.get("schema"), dict):
        schema = {
            key: wanted[key] for key in ("name", "description", "schema", "strict") if wanted.get(key) is not None
        }
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", **schema}}
    else:
        raise InvalidRequest(
            f"text.format {kind!r}: known are text, json_object and json_schema (with name and schema)",
            param="text.format",
        )


def _add_tools(body: dict[str, Any], params: dict[str, Any]) -> None:
    tools = params.get("tools") or []
    choice = params.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        tools, choice = _allowed(tools, choice)
    chosen = _choice(choice, [tool.get("name") for tool in tools])
    if not tools:
        return
    body["tools"] = [_tool(tool, f"tools[{index}]") for index, tool in enumerate(tools)]
    if chosen is not None:
        body["tool_choice"] = chosen
    if params.get("parallel_tool_calls") is not None:
        body["parallel_tool_calls"] = params["parallel_tool_calls"]


def _tool(tool: dict[str, Any], path: str) -> dict[str, Any]:
    if tool["type"] != "function":
        raise InvalidRequest(
            f"{path}: a tool of type {tool['type']!r} has no counterpart in Chat Completions", param=f"{path}.type"
        )
    function = {key: tool[key] for key in ("name", "description", "parameters", "strict") if tool.get(key) is not None}
    function.setdefault("parameters", {"type": "object", "properties": {}})
    return {"type": "function", "function": function}


def _allowed(tools: list[dict[str, Any]], choice: dict[str, Any]) -> tuple[list[dict[str, Any]], Any]:
    """`allowed_tools` by offering only those: few chat servers know the form itself."""
    listed = choice.get("tools") if isinstance(choice.get("tools"), list) else []
    names = [each.get("name") for each in listed or () if isinstance(each, dict)]
    for name in names:
        if name not in [tool.get("name") for tool in tools]:
            raise InvalidRequest(f"tool_choice allows {name!r}, which is not in tools", param="tool_choice")
    return [tool for tool in tools if tool.get("name") in names], choice.get("mode", "auto")


def _choice(choice: Any, names: list[Any]) -> Any:
    if choice is None:
        return None
    if isinstance(choice, str) and choice in TOOL_CHOICES:
        if choice == "required" and not names:
            raise InvalidRequest("tool_choice is 'required' and there are no tools", param="tool_choice")
        return choice
    if not isinstance(choice, dict) or choice.get("type") != "function":
        shown = choice.get("type") if isinstance(choice, dict) else choice
        raise InvalidRequest(
            f"tool_choice {shown!r} has no counterpart in Chat Completions; known: auto, none, required, allowed_tools,"
            " {type: function, name}",
            param="tool_choice",
        )
    if choice.get("name") not in names:
        raise InvalidRequest(
            f"tool_choice names {choice.get('name')!r}, which is not in tools", param="tool_choice.name"
        )
    return {"type": "function", "function": {"name": choice["name"]}}
