"""What a Responses request may hold. Source: OpenAI API reference, Responses; extra sampling parameters: vLLM's.

An unknown field, role, item or parameter is refused by name: a misspelt `max_ouput_tokens` must not be a silent default. What is known
and has no counterpart in another dialect is refused later, by the translation that cannot carry it.
"""

from typing import Any

from model_interface.translate.errors import InvalidRequest

Item = dict[str, Any]

EXTRA_SAMPLING = frozenset(
    {
        "frequency_penalty", "presence_penalty", "repetition_penalty", "length_penalty", "logit_bias", "bad_words",
        "seed", "stop", "stop_token_ids", "include_stop_str_in_output", "ignore_eos", "min_tokens", "top_k", "min_p", "typical_p",
        "top_a", "tfs_z", "mirostat", "mirostat_tau", "mirostat_eta", "dynatemp_range", "dynatemp_exponent", "repeat_penalty",
        "repeat_last_n", "samplers", "dry_multiplier", "xtc_probability", "xtc_threshold", "use_beam_search", "skip_special_tokens",
        "spaces_between_special_tokens", "truncate_prompt_tokens", "prompt_logprobs", "add_generation_prompt",
        "continue_final_message", "add_special_tokens", "documents", "chat_template", "chat_template_kwargs", "mm_processor_kwargs",
        "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "grammar", "json_schema", "priority",
        "request_id", "cache_salt", "cache_prompt", "id_slot", "return_token_ids", "return_tokens_as_token_ids", "n_probs", "logprobs",
        "thinking", "enable_thinking", "thinking_budget", "verbosity", "separate_reasoning", "include_reasoning",
    }
)  # fmt: skip
"""Sampling parameters of common servers that are neither in Responses nor in Chat: accepted by name and passed through as they are."""

PARAMETERS = EXTRA_SAMPLING | {
    "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "max_tool_calls", "temperature", "top_p",
    "top_logprobs", "max_output_tokens", "metadata", "previous_response_id", "conversation", "prompt", "reasoning", "text", "truncation",
    "include", "store", "stream", "stream_options", "background", "service_tier", "user", "safety_identifier", "prompt_cache_key",
    "prompt_cache_retention", "context_management", "extra_body", "trivium",
}  # fmt: skip
"""Every top-level field that is understood; `trivium` is ours (token ids of a resent conversation)."""

INCLUDES = frozenset(
    {
        "message.output_text.logprobs", "reasoning.encrypted_content", "message.input_image.image_url",
        "file_search_call.results", "web_search_call.results", "web_search_call.action.sources",
        "code_interpreter_call.outputs", "computer_call_output.output.image_url",
    }
)  # fmt: skip

TOKEN_FIELDS = {"prompt_token_ids", "generation_token_ids", "generation_log_probs"}
ROLES = frozenset({"user", "assistant", "system", "developer"})
MESSAGE_FIELDS = frozenset({"type", "role", "content", "id", "status", "name", "phase"})
OUTPUT_FIELDS = frozenset({"type", "call_id", "output", "id", "status"})
ITEM_TYPES = frozenset(
    {
        "message", "function_call", "function_call_output", "reasoning", "item_reference", "compaction",
        "file_search_call", "computer_call", "computer_call_output", "web_search_call", "image_generation_call",
        "code_interpreter_call", "local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output",
        "apply_patch_call", "apply_patch_call_output", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response",
        "mcp_call", "custom_tool_call", "custom_tool_call_output",
    }
)  # fmt: skip
INPUT_PARTS = frozenset({"input_text", "input_image", "input_file", "input_audio"})
OUTPUT_PARTS = frozenset({"output_text", "refusal"})
PART_TYPES = INPUT_PARTS | OUTPUT_PARTS
TEXT_FIELDS = {"input_text": "text", "output_text": "text", "refusal": "refusal"}  # part type -> where its text is
TOOL_TYPES = frozenset(
    {
        "function", "custom", "file_search", "web_search", "web_search_preview", "computer", "computer_use_preview", "mcp",
        "code_interpreter", "image_generation", "local_shell", "shell", "apply_patch", "namespace", "tool_search",
    }
)  # fmt: skip
TOOL_CHOICES = frozenset({"auto", "none", "required"})


def check_request(body: dict[str, Any]) -> None:
    """Check every top-level parameter of a Responses request, but not the items of `input` (`check_items`).

    Raises:
        InvalidRequest: naming the parameter, its value and what would be right.
    """
    check_shapes(body, _SHAPES)
    for name in body:
        if name not in PARAMETERS:
            raise InvalidRequest(
                f"unknown parameter {name!r}; a sampling parameter that only your server knows goes into `extra_body`",
                param=name,
            )
    _check_numbers(body)
    for index, name in enumerate(body.get("include") or ()):
        if not _in(name, INCLUDES):
            raise InvalidRequest(
                f"include[{index}] is {name!r}; known: {', '.join(sorted(INCLUDES))}", param=f"include[{index}]"
            )
    _check_tools(body.get("tools") or ())


def check_shapes(body: Any, shapes: "Shapes") -> None:
    """Check that a request is an object whose parameters have the types they should; null is absent.

    Raises:
        InvalidRequest: naming the parameter.
    """
    if not isinstance(body, dict):
        raise InvalidRequest(f"a request is a JSON object, not {_kind(body)}")
    for name, (types, wanted) in shapes.items():
        value = body.get(name)
        if value is not None and (not isinstance(value, types) or (isinstance(value, bool) and bool not in types)):
            raise InvalidRequest(f"{name} is {_kind(value)}; it has to be {wanted}", param=name)


Shapes = dict[str, tuple[tuple[type, ...], str]]
"""Parameter -> (types, the same in words)."""

_SHAPES: Shapes = {
    "model": ((str,), "a name"),
    "input": ((str, list), "a string or a list of items"),
    "instructions": ((str,), "a string"),
    "tools": ((list,), "a list of tools"),
    "tool_choice": ((str, dict), "auto, none, required or an object"),
    "parallel_tool_calls": ((bool,), "true or false"),
    "temperature": ((int, float), "a number"),
    "top_p": ((int, float), "a number"),
    "top_logprobs": ((int,), "a whole number"),
    "max_output_tokens": ((int,), "a whole number"),
    "metadata": ((dict,), "an object of strings"),
    "previous_response_id": ((str,), "a string"),
    "reasoning": ((dict,), "an object"),
    "text": ((dict,), "an object"),
    "truncation": ((str,), "auto or disabled"),
    "include": ((list,), "a list of names"),
    "stream": ((bool,), "true or false"),
    "store": ((bool,), "true or false"),
    "background": ((bool,), "true or false"),
    "extra_body": ((dict,), "an object"),
    "trivium": ((dict,), "an object"),
}


def _check_numbers(body: dict[str, Any]) -> None:
    for name, low, high in (
        ("temperature", 0, 2),
        ("top_p", 0, 1),
        ("max_output_tokens", 1, None),
        ("top_logprobs", 0, 20),
    ):
        value = body.get(name)
        if value is not None and (value < low or (high is not None and value > high)):
            wanted = f"{low} to {high}" if high is not None else f"at least {low}"
            raise InvalidRequest(f"{name} is {value}; it has to be {wanted}", param=name)


def _check_tools(tools: Any) -> None:
    names: set[str] = set()
    for index, tool in enumerate(tools):
        path = f"tools[{index}]"
        kind = tool.get("type") if isinstance(tool, dict) else None
        if not _in(kind, TOOL_TYPES):
            raise InvalidRequest(
                f"{path}.type is {kind!r}; known: {', '.join(sorted(TOOL_TYPES))}", param=f"{path}.type"
            )
        if kind != "function":
            continue
        name = tool.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidRequest(
                f"{path}.name is missing (a function tool has type, name, description, parameters)",
                param=f"{path}.name",
            )
        if name in names:
            raise InvalidRequest(f"{path}.name {name!r} is there twice", param=f"{path}.name")
        names.add(name)
        parameters = tool.get("parameters")
        if parameters is not None and not isinstance(parameters, dict):
            raise InvalidRequest(
                f"{path}.parameters is {_kind(parameters)}; it has to be a JSON schema", param=f"{path}.parameters"
            )


def check_items(items: Any, *, start: int = 0) -> None:
    """Check the items of an `input`; only those given, so that a step costs what is new in it.

    Args:
        items: New items.
        start: Index of the first one in the caller's list, for messages.

    Raises:
        InvalidRequest: naming `input[i]` and the field.
    """
    for index, item in enumerate(items, start):
        kind = item.get("type", "message") if isinstance(item, dict) else None
        check = _ITEM_CHECKS.get(kind) if isinstance(kind, str) else None
        if check is not None:
            check(item, f"input[{index}]")
        elif not isinstance(item, dict):
            raise InvalidRequest(f"input[{index}] is {_kind(item)}; an item is a JSON object", param=f"input[{index}]")
        elif not _in(kind, ITEM_TYPES):
            raise InvalidRequest(
                f"input[{index}].type {kind!r} is unknown; known: {', '.join(sorted(ITEM_TYPES))}",
                param=f"input[{index}].type",
            )


def _check_message(item: Item, path: str) -> None:
    role = item.get("role")
    if not _in(role, ROLES):
        raise InvalidRequest(f"{path}.role is {role!r}; known: {', '.join(sorted(ROLES))}", param=f"{path}.role")
    if role != "assistant":  # what a model said may carry its server's own fields; what a caller writes may not
        _check_fields(item, MESSAGE_FIELDS, path)
    if "content" not in item:
        raise InvalidRequest(f"{path}.content is missing", param=f"{path}.content")
    check_content(item["content"], f"{path}.content")


def check_content(content: Any, path: str) -> None:
    """Check a message's or a tool output's content: a string or a list of known parts."""
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise InvalidRequest(f"{path} is {_kind(content)}; it has to be a string or a list of parts", param=path)
    for index, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str) or kind not in PART_TYPES:
            known = ", ".join(sorted(PART_TYPES))
            raise InvalidRequest(f"{path}[{index}].type is {kind!r}; known: {known}", param=f"{path}[{index}].type")
        field = TEXT_FIELDS.get(kind)
        if field is not None and not isinstance(part.get(field), str):
            raise InvalidRequest(f"{path}[{index}].{field} has to be a string", param=f"{path}[{index}].{field}")


def _check_call(item: Item, path: str) -> None:
    for field in ("call_id", "name", "arguments"):
        if not isinstance(item.get(field), str):
            raise InvalidRequest(
                f"{path}.{field} is {_kind(item.get(field))}; it has to be a string", param=f"{path}.{field}"
            )


def _check_output(item: Item, path: str) -> None:
    _check_fields(item, OUTPUT_FIELDS, path)
    if not isinstance(item.get("call_id"), str):
        raise InvalidRequest(
            f"{path}.call_id is {_kind(item.get('call_id'))}; it has to be a string", param=f"{path}.call_id"
        )
    if "output" not in item:
        raise InvalidRequest(f"{path}.output is missing", param=f"{path}.output")
    check_content(item["output"], f"{path}.output")


def _check_reasoning(item: Item, path: str) -> None:
    for field in ("summary", "content"):
        parts = item.get(field)
        if parts is None:
            continue
        if not isinstance(parts, list) or not all(
            isinstance(each, dict) and isinstance(each.get("text"), str) for each in parts
        ):
            raise InvalidRequest(f"{path}.{field} has to be a list of parts with a text", param=f"{path}.{field}")


_ITEM_CHECKS = {
    "message": _check_message,
    "function_call": _check_call,
    "function_call_output": _check_output,
    "reasoning": _check_reasoning,
}


def _check_fields(item: Item, known: frozenset[str], path: str) -> None:
    if item.keys() <= known:
        return
    for field, value in item.items():
        if field not in known and field not in TOKEN_FIELDS and value is not None:
            raise InvalidRequest(
                f"{path} has an unknown field {field!r}; known: {', '.join(sorted(known))}", param=f"{path}.{field}"
            )


def _in(value: Any, names: frozenset[str]) -> bool:
    """Whether a value from outside, of whatever type, is one of the names."""
    return isinstance(value, str) and value in names


def _kind(value: Any) -> str:
    """What a value is, in the words of JSON."""
    if value is None:
        return "missing"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)
