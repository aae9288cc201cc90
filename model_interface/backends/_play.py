"""Items of a model that is none: what the scripted and the reference backend say."""

from typing import Any

from wire import strict_json
from wire.responses import Item


def message_item(text: str) -> Item:
    """An assistant's message."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_played", "role": "assistant", "status": "completed", "content": [part]}


def call_item(name: str, arguments: Any, call_id: str) -> Item:
    """A function call; arguments that are no text are written as JSON."""
    text = arguments if isinstance(arguments, str) else strict_json.dumps(arguments).decode()
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": text,
        "status": "completed",
    }
