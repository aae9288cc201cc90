"""Responses API objects as far as we read them. Source: OpenAI API reference, Responses.

Items stay plain JSON objects: they are carried from hop to hop far more often than they are read, and a trainer must find them as the
model made them. The helpers here are the one place that knows how to read them.
"""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict

Item = dict[str, Any]
"""One item of a conversation: a message, a function_call, a function_call_output, a reasoning item, …"""

TOKEN_FIELDS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
"""All three or none. Log-probabilities are natural logarithms, one per generated token."""


class Response(BaseModel):
    """The items the model and the tools produced in one episode, in order."""

    model_config = ConfigDict(extra="allow")

    id: str | None = None
    object: str = "response"
    output: list[Item] = []
    status: str | None = None
    incomplete_details: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """Text of the last assistant message, or "" if the model never answered in words."""
        return last_text(self.output)

    @property
    def calls(self) -> list[Item]:
        """The function_call items, in order, with the model's own argument text."""
        return function_calls(self.output)


def message_text(item: Item) -> str:
    """The text of a message item; refusals and images have none."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def last_text(items: Iterable[Item]) -> str:
    """Text of the last assistant message, or ""."""
    for item in reversed(list(items)):
        if item.get("type", "message") == "message" and item.get("role") == "assistant":
            return message_text(item)
    return ""


def function_calls(items: Iterable[Item]) -> list[Item]:
    """The function_call items, in order."""
    return [item for item in items if item.get("type") == "function_call"]


def user_items(text_or_items: str | list[Item]) -> list[Item]:
    """`input` as a list of items, whichever form it came in."""
    return [{"role": "user", "content": text_or_items}] if isinstance(text_or_items, str) else list(text_or_items)


def add_usage(total: dict[str, Any] | None, more: dict[str, Any] | None) -> dict[str, Any] | None:
    """Usage of two calls together, counters in nested details included; None where neither said anything."""
    if not more:
        return total
    if not total:
        return _numbers(more)
    summed = dict(total)
    for key, value in more.items():
        if isinstance(value, dict):
            summed[key] = add_usage(total.get(key) or {}, value) or {}
        elif isinstance(value, int) and not isinstance(value, bool):
            summed[key] = (total.get(key) or 0) + value
    return summed


def _numbers(usage: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in usage.items():
        if isinstance(value, dict):
            kept[key] = _numbers(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            kept[key] = value
    return kept
