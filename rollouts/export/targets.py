"""What of an episode a supervised or preference trainer may imitate: what the model said, not what its harness put behind it."""

from typing import Any

from rollouts.export.reading import Line
from wire.responses import Item, message_text

NOTHING_SAID = "no_generation: no text and no call, at most reasoning"
ONLY_REASONING = "the last turn is only reasoning"
ENDED_BY_ITSELF = (None, "completed", "max_output_tokens")
"""Outcomes whose last words may be the model's after others of its own."""


def own_items(line: Line) -> list[Item]:
    """The items of an episode without the message that its harness added at the end, such as "Stopped: step limit reached"."""
    items = list(line["response"].get("output") or [])
    while items and _says_text(items[-1]) and _is_added(items, line):
        items.pop()
    return items


def silence_of(line: Line) -> str | None:
    """Why nothing in the episode is worth imitating; None where something is."""
    return None if any(_is_said(item) for item in own_items(line)) else NOTHING_SAID


def ends_in_thought(line: Line) -> bool:
    """Whether the model's last turn is reasoning with neither text nor call, as where an episode stalled."""
    items = own_items(line)
    return bool(items) and items[-1].get("type") == "reasoning"


def _is_added(items: list[Item], line: Line) -> bool:
    """Whether the last item, an assistant's text, is no model call's."""
    outcome, before = line.get("outcome"), items[-2] if len(items) > 1 else {}
    if outcome not in ENDED_BY_ITSELF and _says_text(before):
        return True  # a text is an answer: the episode was over, or went on with somebody else's turn
    if (calls := _model_calls(line)) is not None:
        return _turns(items) > calls
    if any(item.get("generation_token_ids") is not None for item in items):
        return items[-1].get("generation_token_ids") is None  # ids stand on the last item of each call
    return outcome == "max_steps" and before.get("type") == "function_call_output"  # that text would have completed it


def _model_calls(line: Line) -> int | None:
    """How often the model was asked, as far as the line says."""
    steps = line.get("steps")
    known = isinstance(steps, list) and (steps or line.get("outcome") not in ENDED_BY_ITSELF)
    return len(steps) if known else None  # type: ignore[arg-type]  # a list, as checked


def _turns(items: list[Item]) -> int:
    """Runs of the model's items, parted by what tools and users said; a call that answered nothing has none."""
    made = [_is_made(item) for item in items]
    return sum(now and not before for before, now in zip([False, *made], made, strict=False))


def _is_made(item: Item) -> bool:
    return item.get("type") != "function_call_output" and item.get("role") in (None, "assistant")


def _says_text(item: Item) -> bool:
    return item.get("type", "message") == "message" and item.get("role") == "assistant"


def _is_said(item: Item) -> bool:
    return item.get("type") == "function_call" or (_says_text(item) and bool(message_text(item) or _refusal(item)))


def _refusal(item: Item) -> Any:
    parts = item.get("content")
    return isinstance(parts, list) and any(isinstance(part, dict) and part.get("refusal") for part in parts)
