"""Tool calls from a model that cannot be trusted to make them: each answer is one JSON object, "one of these calls, or a final answer".

The server holds the text to a JSON schema (llama.cpp by a grammar, vLLM by structured outputs), the prompt says what the tools are in a
form that a very small model can follow, and the text is taken apart into items again. Pure functions, and the history in that form.
"""

import re
from collections.abc import Sequence
from typing import Any

from model_interface.translate import InvalidRequest
from model_interface.translate.answers import call_item, message_item
from model_interface.translate.content import assistant_text, chat_content
from model_interface.translate.history import Message
from wire import strict_json
from wire.responses import Item, message_text

_CALL = re.compile(r'\s*\{\s*"tool"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*')
_ENDING = re.compile(r"\s*\}\s*\Z")
COMPACT = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""As models write JSON in one line; for grammars made by llguidance (`x-guidance` of a schema)."""
DESCRIPTION_CHARACTERS = 160  # of a tool, in the prompt: the first sentence is what a small model reads
REPLY = (
    'Reply with JSON only. To use a tool: {"tool": "name of the tool", "arguments": {...}}. '
    'After the tool has answered and the task is done: {"answer": "Done."}'
)
EXAMPLES: list[Message] = [
    {"role": "user", "content": "Set the alarm to 7."},
    {"role": "assistant", "content": '{"tool": "set_alarm", "arguments": {"hour": 7}}'},
    {"role": "user", "content": "Result: ok"},
    {"role": "assistant", "content": '{"answer": "Done."}'},
    {"role": "user", "content": "Remove note 12."},
    {"role": "assistant", "content": '{"tool": "remove_note", "arguments": {"note": "12"}}'},
    {"role": "user", "content": "Result: removed"},
    {"role": "assistant", "content": '{"answer": "Done."}'},
    {"role": "user", "content": "Write to bob@y.org that I am late."},
    {
        "role": "assistant",
        "content": '{"tool": "write_message", "arguments": {"to": "bob@y.org", "text": "I am late."}}',
    },
    {"role": "user", "content": "Result: ok"},
    {"role": "assistant", "content": '{"answer": "Done."}'},
]
"""Tried with SmolLM2 135M: without them it calls for ever, with one of them it never calls."""
TYPE_NAMES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}


def answer_schema(params: dict[str, Any]) -> dict[str, Any] | None:
    """The JSON schema of the next answer, or None where nothing constrains it.

    Args:
        params: The Responses parameters: `tools`, `tool_choice`, `text.format`.

    Raises:
        InvalidRequest: `tool_choice` names a tool that is not offered.
    """
    tools = offered(params)
    wanted = (params.get("text") or {}).get("format") or {}
    final = wanted.get("schema") if wanted.get("type") == "json_schema" else None
    if not tools:
        return final or ({"type": "object"} if wanted.get("type") == "json_object" else None)
    definitions: dict[str, Any] = {}
    branches = [_call_schema(tool, definitions) for tool in tools]
    if not must_call(params.get("tool_choice")):
        answer = _hoist(final, "answer", definitions) if final else {"type": "string"}
        branches.append(_object({"answer": answer}))
    schema: dict[str, Any] = {"anyOf": branches} if len(branches) > 1 else branches[0]
    return {**schema, "$defs": definitions} if definitions else schema


def offered(params: dict[str, Any]) -> list[dict[str, Any]]:
    """The function tools that may be called now, as `tool_choice` narrows them."""
    tools = [tool for tool in params.get("tools") or () if tool.get("type") == "function"]
    choice = params.get("tool_choice")
    if choice == "none":
        return []
    if not isinstance(choice, dict):
        return tools
    names = (
        [choice.get("name")]
        if choice.get("type") == "function"
        else [each.get("name") for each in choice.get("tools") or ()]
    )
    chosen = [tool for tool in tools if tool["name"] in names]
    if not chosen:
        raise InvalidRequest(f"tool_choice names {names}, which is not in tools", param="tool_choice")
    return chosen


def must_call(choice: Any) -> bool:
    """Whether a final answer is not allowed."""
    if isinstance(choice, dict):
        return choice.get("type") == "function" or choice.get("mode") == "required"
    return bool(choice == "required")


def guide(tools: Sequence[dict[str, Any]]) -> str:
    """What the prompt says about the tools."""
    if not tools:
        return ""
    lines = ["You have these tools:"]
    lines += [f"- {tool['name']}({_signature(tool)}){_summary(tool)}" for tool in tools]
    lines.append(REPLY)
    return "\n".join(lines)


def read_answer(
    text: str, params: dict[str, Any], *, call_id: str, reason: str | None, log_probs: list[Any]
) -> list[Item]:
    """The items of an answer; one that was cut off, or was not constrained, is a message as it stands.

    A call's argument text is the model's own, byte for byte.
    """
    if offered(params) and reason is None:
        call = _CALL.match(text)
        ending = _ENDING.search(text)
        if call and ending:
            return [call_item(call_id, strict_json.loads(call.group(1)), text[call.end() : ending.start()])]
        try:
            value = strict_json.loads(text)
        except strict_json.JSONError:
            value = None
        if isinstance(value, dict) and set(value) == {"answer"}:
            answer = value["answer"]
            said = answer if isinstance(answer, str) else strict_json.dumps(answer).decode()
            return [message_item(said, "", log_probs, None)]
    return [message_item(text, "", log_probs, reason)]


class PlainHistory:
    """A conversation as messages without tool roles: calls are the JSON the model wrote, outputs are told to it by the user.

    Args:
        instructions: The system prompt, if any.
        tools: Function tools, described after the system prompt.
        examples: Show three short exchanges first: a very small model needs to see that a call is followed by an answer.
    """

    def __init__(self, instructions: str | None, tools: Sequence[dict[str, Any]], *, examples: bool = False) -> None:
        self.messages: list[Message] = []
        self._examples: list[Message] = EXAMPLES if examples and tools else []
        self._guide = guide(tools)
        self._names: dict[str, str] = {}  # call id -> tool
        self.call_ids: set[str] = set()
        if instructions or self._guide:
            self.messages.append({"role": "system", "content": self._with_guide(instructions or "")})
        self.messages += self._examples

    @property
    def beginning(self) -> list[Message]:
        """The messages that other conversations with this system prompt and these tools begin with, too."""
        if not self.messages or self.messages[0]["role"] != "system":
            return []
        return self.messages[: 1 + len(self._examples)]

    def append(self, items: Sequence[Item]) -> None:
        """Add items that `check_items` has passed.

        Raises:
            InvalidRequest: an item has no counterpart here.
        """
        for index, item in enumerate(items):
            kind = item.get("type", "message")
            if kind == "function_call":
                self._note(item)
                call = strict_json.dumps({"tool": item["name"]})[:-1].decode()
                self._say("assistant", f'{call}, "arguments": {item["arguments"]}}}')
            elif kind == "function_call_output":
                self._output(item, index)
            elif kind == "message":
                self._message(item, index)
            elif kind != "reasoning":
                raise InvalidRequest(
                    f"an item of type {kind!r} has no counterpart in a chat", param=f"input[{index}].type"
                )

    def take(self) -> list[Message]:
        """All messages so far."""
        return self.messages

    def append_answer(self, message: Message, items: Sequence[Item]) -> None:
        """Add the model's answer as it wrote it."""
        text = message.get("content") or ""
        for item in items:
            if item.get("type") == "function_call":
                self._note(item)
        self._say("assistant", text)

    def _note(self, item: Item) -> None:
        self._names[item["call_id"]] = item["name"]
        self.call_ids.add(item["call_id"])

    def _output(self, item: Item, index: int) -> None:
        if self._names.pop(item["call_id"], None) is None:
            path = f"input[{index}].call_id"
            raise InvalidRequest(f"{path} is {item['call_id']!r}; no such call waits for an output", param=path)
        content = item["output"]
        text = content if isinstance(content, str) else message_text({"content": content})
        self._say("user", f"Result: {text}")

    def _message(self, item: Item, index: int) -> None:
        path = f"input[{index}].content"
        if item["role"] == "assistant":
            self._say("assistant", assistant_text(item["content"], path))
            return
        content = chat_content(item["content"], path)
        if item["role"] in ("system", "developer"):
            self._system(content if isinstance(content, str) else message_text(item))
        elif isinstance(content, str):
            self._say("user", content)
        else:
            self.messages.append({"role": "user", "content": content})

    def _system(self, text: str) -> None:
        if self._guide and len(self.messages) == 1 + len(self._examples):
            # The guide stands once, behind all that the caller says first
            before = self.messages[0]["content"].removesuffix(self._guide).rstrip()
            self.messages[0] = {"role": "system", "content": self._with_guide(f"{before}\n\n{text}".strip())}
        else:
            self._say("system", text)

    def _say(self, role: str, text: str) -> None:
        self.messages.append({"role": role, "content": text})

    def _with_guide(self, text: str) -> str:
        return f"{text}\n\n{self._guide}".strip()


def _call_schema(tool: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    parameters = tool.get("parameters") or {"type": "object", "properties": {}}
    return _object({"tool": {"const": tool["name"]}, "arguments": _hoist(parameters, tool["name"], definitions)})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _hoist(schema: dict[str, Any], prefix: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema with its own definitions moved to the root, where its references are read from."""
    own = {**(schema.get("definitions") or {}), **(schema.get("$defs") or {})}
    for name, each in own.items():
        definitions[f"{prefix}.{name}"] = _moved(each, prefix)
    moved: dict[str, Any] = _moved(
        {key: each for key, each in schema.items() if key not in ("$defs", "definitions")}, prefix
    )
    return moved


def _moved(value: Any, prefix: str) -> Any:
    if isinstance(value, list):
        return [_moved(each, prefix) for each in value]
    if not isinstance(value, dict):
        return value
    moved = {key: _moved(each, prefix) for key, each in value.items()}
    reference = moved.get("$ref")
    if isinstance(reference, str):
        for root in ("#/$defs/", "#/definitions/"):
            if reference.startswith(root):
                moved["$ref"] = f"#/$defs/{prefix}.{reference.removeprefix(root)}"
    return moved


def _signature(tool: dict[str, Any]) -> str:
    parameters = tool.get("parameters") or {}
    required = parameters.get("required") or ()
    shown = []
    for name, schema in (parameters.get("properties") or {}).items():
        shown.append(f"{name}{'' if name in required else '?'}: {_type(schema)}")
    return ", ".join(shown)


def _type(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "any"
    if schema.get("enum"):
        return " | ".join(strict_json.dumps(each).decode() for each in schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, str):
        return TYPE_NAMES.get(kind, kind)
    inner = [each for each in schema.get("anyOf") or () if isinstance(each, dict) and each.get("type") != "null"]
    return _type(inner[0]) if inner else "any"


def _summary(tool: dict[str, Any]) -> str:
    text = " ".join(str(tool.get("description") or "").split())
    first = text.partition(". ")[0].rstrip(".")
    return f": {first[:DESCRIPTION_CHARACTERS]}" if first else ""
