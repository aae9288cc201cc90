"""What the items of a Responses conversation may be. Source: OpenAI API reference, Responses.

What a caller writes is held to the fields that are known; what a model made (assistant messages, calls, thoughts) may carry its server's
own fields, since it is sent back as it came.
"""

from typing import Any

from model_interface.translate.errors import InvalidRequest
from model_interface.translate.requests import check_fields, is_one_of, json_kind

Item = dict[str, Any]

ROLES = frozenset({"user", "assistant", "system", "developer"})
MESSAGE_FIELDS = frozenset({"type", "role", "content", "id", "status", "name", "phase"})
OUTPUT_FIELDS = frozenset(
    {"type", "call_id", "output", "id", "status", "name", "namespace", "caller"}
)  # three of them the call's
CACHED = "prompt_cache_breakpoint"  # changes no answer
ITEM_TYPES = frozenset(
    {
        "message", "function_call", "function_call_output", "reasoning", "item_reference", "compaction",
        "file_search_call", "computer_call", "computer_call_output", "web_search_call", "image_generation_call",
        "code_interpreter_call", "local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output",
        "apply_patch_call", "apply_patch_call_output", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response",
        "mcp_call", "custom_tool_call", "custom_tool_call_output",
    }
)  # fmt: skip
PART_FIELDS = {
    "input_text": frozenset({"type", "text", CACHED}),
    "input_image": frozenset({"type", "image_url", "detail", "file_id", CACHED}),
    "input_file": frozenset({"type", "file_id", "file_data", "file_url", "filename", "detail", CACHED}),
    "input_audio": frozenset({"type", "input_audio", CACHED}),
    "output_text": frozenset({"type", "text", "annotations", "logprobs"}),
    "refusal": frozenset({"type", "refusal"}),
}
TEXT_FIELDS = {"input_text": "text", "output_text": "text", "refusal": "refusal"}  # part type -> where its text is


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
            raise InvalidRequest(
                f"input[{index}] is {json_kind(item)}; an item is a JSON object", param=f"input[{index}]"
            )
        elif not is_one_of(kind, ITEM_TYPES):
            raise InvalidRequest(
                f"input[{index}].type {kind!r} is unknown; known: {', '.join(sorted(ITEM_TYPES))}",
                param=f"input[{index}].type",
            )


def _check_message(item: Item, path: str) -> None:
    role = item.get("role")
    if not is_one_of(role, ROLES):
        raise InvalidRequest(f"{path}.role is {role!r}; known: {', '.join(sorted(ROLES))}", param=f"{path}.role")
    if role != "assistant":  # what a model said may carry its server's own fields; what a caller writes may not
        check_fields(item, MESSAGE_FIELDS, path)
    if "content" not in item:
        raise InvalidRequest(f"{path}.content is missing", param=f"{path}.content")
    check_content(item["content"], f"{path}.content", own_fields=role == "assistant")


def check_content(content: Any, path: str, *, own_fields: bool = False) -> None:
    """Check a message's or a tool output's content: a string or a list of known parts; `own_fields`: a model's server may add to them."""
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise InvalidRequest(f"{path} is {json_kind(content)}; it has to be a string or a list of parts", param=path)
    for index, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str) or kind not in PART_FIELDS:
            known = ", ".join(sorted(PART_FIELDS))
            raise InvalidRequest(f"{path}[{index}].type is {kind!r}; known: {known}", param=f"{path}[{index}].type")
        if not own_fields:
            check_fields(part, PART_FIELDS[kind], f"{path}[{index}]")
        field = TEXT_FIELDS.get(kind)
        if field is not None and not isinstance(part.get(field), str):
            raise InvalidRequest(f"{path}[{index}].{field} has to be a string", param=f"{path}[{index}].{field}")


def _check_call(item: Item, path: str) -> None:
    for field in ("call_id", "name", "arguments"):
        if not isinstance(item.get(field), str):
            raise InvalidRequest(
                f"{path}.{field} is {json_kind(item.get(field))}; it has to be a string", param=f"{path}.{field}"
            )


def _check_output(item: Item, path: str) -> None:
    check_fields(item, OUTPUT_FIELDS, path)
    if not isinstance(item.get("call_id"), str):
        raise InvalidRequest(
            f"{path}.call_id is {json_kind(item.get('call_id'))}; it has to be a string", param=f"{path}.call_id"
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
