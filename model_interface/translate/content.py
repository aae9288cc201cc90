"""The small pieces of a conversation in chat's form: content parts, call names, arguments, thoughts."""

import json
import re
from typing import Any

from model_interface.translate.errors import InvalidRequest
from wire import strict_json

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
INVALID = "invalid_arguments"  # key under which arguments that are no JSON object are shown to the model again


def wire_name(name: str) -> str:
    """A call's name as servers accept it: other characters become `_`, at most 64 are kept."""
    if NAME.fullmatch(name):
        return name
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"


def wire_arguments(text: str) -> str:
    """A call's arguments as servers accept them: the text of a JSON object, byte for byte the model's own where it is one."""
    try:
        if isinstance(strict_json.loads(text), dict):
            return text
    except strict_json.JSONError:
        pass
    return strict_json.dumps({INVALID: text}).decode() if text.strip() else "{}"


def plain_arguments(text: str) -> str:
    """The same for a client that parses them: what it could not send again, an infinity or half a character, is invalid too."""
    wire = wire_arguments(text)
    try:
        json.dumps(strict_json.loads(wire), allow_nan=False, ensure_ascii=False).encode()
    except ValueError:
        return strict_json.dumps({INVALID: text.encode(errors="backslashreplace").decode()}).decode()
    return wire


def chat_content(content: Any, path: str) -> str | list[dict[str, Any]]:
    """A message's content: one string where it is all text, chat parts otherwise."""
    if isinstance(content, str):
        return content
    if all("text" in part for part in content):
        return "".join(part["text"] for part in content)
    return [_chat_part(part, f"{path}[{index}]") for index, part in enumerate(content)]


def assistant_text(content: Any, path: str) -> str:
    """What an assistant message says, refusals included: chat's assistant messages are text."""
    if isinstance(content, str):
        return content
    said: list[str] = []
    for index, part in enumerate(content):
        text = part.get("text", part.get("refusal"))
        if not isinstance(text, str):
            where = f"{path}[{index}]"
            raise InvalidRequest(
                f"{where}: a part of type {part.get('type')!r} cannot be in an assistant message", param=where
            )
        said.append(text)
    return "".join(said)


def item_thoughts(item: dict[str, Any], path: str) -> str:
    """The text of a reasoning item: its content where there is one, else its summary."""
    for parts in (item.get("content"), item.get("summary")):
        if parts:
            return "\n\n".join(part["text"] for part in parts)
    if item.get("encrypted_content"):
        raise InvalidRequest(
            f"{path}.encrypted_content has no counterpart in Chat Completions", param=f"{path}.encrypted_content"
        )
    return ""


def _chat_part(part: dict[str, Any], path: str) -> dict[str, Any]:
    kind = part["type"]
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        image = {"url": part["image_url"]}
        if part.get("detail"):
            image["detail"] = part["detail"]
        return {"type": "image_url", "image_url": image}
    if kind == "input_audio" and isinstance(part.get("input_audio"), dict):
        return {"type": "input_audio", "input_audio": part["input_audio"]}
    if kind == "input_file" and not part.get("file_url"):
        return {
            "type": "file",
            "file": {key: part[key] for key in ("file_id", "file_data", "filename") if part.get(key)},
        }
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    if kind == "refusal":
        return {"type": "text", "text": part["refusal"]}
    fields = sorted(key for key, value in part.items() if value and key != "type")
    raise InvalidRequest(f"{path}: {kind} with {', '.join(fields)} has no counterpart in Chat Completions", param=path)
