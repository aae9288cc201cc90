"""How one model call is read: does the episode end here, does the model want tools, or did it say nothing? Pure."""

from typing import Any

from wire.responses import Item, message_text

STALLED_TURNS = 2  # in a row, with neither text nor a call: then the episode ends
INCOMPLETE = {"context_window": "context_window", "content_filter": "content_filter"}
"""Reasons in `incomplete_details` with an outcome of their own; every other one is a length limit."""


def cut_off(reply: dict[str, Any]) -> str | None:
    """The outcome of an episode whose last model call did not come to its own end, or None.

    Calls in such a reply are never executed: the token limit may have cut them.
    """
    if reply.get("status") != "incomplete":
        return None
    details = reply.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return INCOMPLETE.get(str(reason), "max_output_tokens")


def is_answer(made: list[Item]) -> bool:
    """Whether the model said something in a turn without calls.

    Text or a refusal is an answer; an empty text is one too, unless there is reasoning beside it.
    """
    messages = [item for item in made if item.get("type", "message") == "message"]
    if any(message_text(item).strip() or _refused(item) for item in messages):
        return True
    return bool(messages) and not any(item.get("type") == "reasoning" for item in made)


def _refused(item: Item) -> bool:
    content = item.get("content")
    return isinstance(content, list) and any(
        isinstance(part, dict) and part.get("type") == "refusal" for part in content
    )
