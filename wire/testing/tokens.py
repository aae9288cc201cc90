"""A toy tokenizer and chat template for the fake upstream: one id per UTF-8 byte, ChatML around each message, Hermes-style calls.

Small enough to be checked by eye, and faithful in what matters: the same messages always give the same ids, a generation is the ids of what
was said with the end-of-turn id, and the template puts a newline after it that the model did not write.
"""

from typing import Any

from wire import strict_json

START, END = 256, 257  # <|im_start|>, <|im_end|>
SPECIAL = {START: "<|im_start|>", END: "<|im_end|>"}
VOCABULARY = 258


def encode(text: str) -> list[int]:
    """The ids of a text; the names of special tokens become their ids."""
    ids: list[int] = []
    for index, piece in enumerate(text.split(SPECIAL[START])):
        ids += [START] if index else []
        for inner, part in enumerate(piece.split(SPECIAL[END])):
            ids += [END] if inner else []
            ids += part.encode("utf-8", "surrogatepass")
    return ids


def decode(ids: list[int]) -> str:
    """The text of ids, special tokens by name."""
    parts, plain = [], bytearray()
    for each in ids:
        if each in SPECIAL:
            parts += [plain.decode("utf-8", "replace"), SPECIAL[each]]
            plain = bytearray()
        else:
            plain.append(each)
    return "".join([*parts, plain.decode("utf-8", "replace")])


def prompt_ids(
    messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None, *, ask: bool = True
) -> list[int]:
    """The ids of a conversation; `ask`: with the head of the assistant's next turn."""
    ids: list[int] = []
    if tools:
        ids += [START, *encode("system\n# Tools\n" + _json(tools)), END, *encode("\n")]
    for message in messages:
        ids += [START, *encode(f"{message['role']}\n{spoken(message)}"), END, *encode("\n")]
    return ids + ([START, *encode("assistant\n")] if ask else [])


def generation_ids(message: dict[str, Any], *, ended: bool = True) -> list[int]:
    """The ids a model generates to say this message; with the end-of-turn id unless it was cut off."""
    return encode(spoken(message)) + ([END] if ended else [])


def spoken(message: dict[str, Any]) -> str:
    """A message as text: its content, then its calls in Hermes' tags."""
    content = message.get("content") or ""
    text = content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content)
    for call in message.get("tool_calls") or ():
        function = call["function"]
        arguments = function["arguments"]
        shown = arguments if isinstance(arguments, str) else _json(arguments)
        text += f'\n<tool_call>\n{{"name": {_json(function["name"])}, "arguments": {shown}}}\n</tool_call>'
    return text


def log_prob(token: int, position: int) -> float:
    """A made-up log-probability that depends on both, so that a shifted list shows."""
    return -((token * 7 + position * 3) % 89 + 1) / 100


def _json(value: Any) -> str:
    return str(strict_json.dumps(value), "utf-8")
