"""What a Responses request may hold. Source: OpenAI API reference, Responses; extra sampling parameters: vLLM's.

An unknown field, role, item or parameter is refused by name: a misspelt `max_ouput_tokens` must not be a silent default. What is known
and has no counterpart in another dialect is refused later, by the translation that cannot carry it.
"""

from typing import Any

from model_interface.translate.errors import InvalidRequest

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
    "prompt_cache_retention", "prompt_cache_options", "context_management", "extra_body", "trivium",
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
TOOL_FIELDS = frozenset({"type", "name", "description", "parameters", "strict"})
USUAL = {"defer_loading": False, "allowed_callers": ["direct"], "async": False}
NESTED_FIELDS = {
    "reasoning": frozenset({"effort", "summary", "generate_summary"}),
    "text": frozenset({"format", "verbosity"}),
}
TOOL_TYPES = frozenset(
    {
        "function", "custom", "file_search", "web_search", "web_search_preview", "computer", "computer_use_preview", "mcp",
        "code_interpreter", "image_generation", "local_shell", "shell", "apply_patch", "namespace", "tool_search",
    }
)  # fmt: skip
TOOL_CHOICES = frozenset({"auto", "none", "required"})


def check_request(body: dict[str, Any]) -> None:
    """Check every top-level parameter of a Responses request, but not the items of `input` (`items.check_items`).

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
    for name, known in NESTED_FIELDS.items():
        if body.get(name):
            check_fields(body[name], known, name)
    _check_numbers(body)
    for index, name in enumerate(body.get("include") or ()):
        if not is_one_of(name, INCLUDES):
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
        raise InvalidRequest(f"a request is a JSON object, not {json_kind(body)}")
    for name, (types, wanted) in shapes.items():
        value = body.get(name)
        if value is not None and (not isinstance(value, types) or (isinstance(value, bool) and bool not in types)):
            raise InvalidRequest(f"{name} is {json_kind(value)}; it has to be {wanted}", param=name)


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
        if not is_one_of(kind, TOOL_TYPES):
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
        check_fields(unusual(tool), TOOL_FIELDS, path)
        parameters = tool.get("parameters")
        if parameters is not None and not isinstance(parameters, dict):
            raise InvalidRequest(
                f"{path}.parameters is {json_kind(parameters)}; it has to be a JSON schema", param=f"{path}.parameters"
            )


def check_fields(item: dict[str, Any], known: frozenset[str], path: str) -> None:
    """Refuse a field that is not known and says something; token ids may ride anywhere."""
    if item.keys() <= known:
        return
    for field, value in item.items():
        if field not in known and field not in TOKEN_FIELDS and value is not None:
            raise InvalidRequest(
                f"{path} has an unknown field {field!r}; known: {', '.join(sorted(known))}", param=f"{path}.{field}"
            )


def unusual(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool's definition without the fields that say what is so anyway; clients write them out."""
    return {field: value for field, value in tool.items() if field not in USUAL or value != USUAL[field]}


def is_one_of(value: Any, names: frozenset[str]) -> bool:
    """Whether a value from outside, of whatever type, is one of the names."""
    return isinstance(value, str) and value in names


def json_kind(value: Any) -> str:
    """What a value is, in the words of JSON."""
    if value is None:
        return "missing"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)
