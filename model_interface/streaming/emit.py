"""An answer as it grows, as the events of a Responses stream. Source: OpenAI API reference, Responses, streaming events.

The order is the one OpenAI's client counts on: `response.created`, `response.in_progress`; per item `output_item.added`, per part
`content_part.added`, deltas, the part's `done`, `content_part.done`; `output_item.done`; at the end `response.completed`, `.incomplete` or
`.failed` with the whole object. `sequence_number` counts all of them.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from model_interface.translate.answers import call_item, new_id, response_object
from wire.errors import TriviumError

Event = dict[str, Any]
Item = dict[str, Any]

PART_KINDS: dict[
    str, tuple[str, str, dict[str, Any]]
] = {  # part type -> (event names begin with, where the text is, the rest of the part)
    "reasoning_text": ("response.reasoning_text", "text", {}),
    "output_text": ("response.output_text", "text", {"annotations": [], "logprobs": []}),
    "refusal": ("response.refusal", "refusal", {}),
}


class ResponsesEmitter:
    """Builds a response from pieces and tells each piece as events; every method returns the events to send now.

    Args:
        request: Parameters that the response echoes.
        response_id: Its id; a new one unless given.
    """

    def __init__(self, request: dict[str, Any], response_id: str | None = None) -> None:
        self.output: list[Item] = []
        self.response: dict[str, Any] = {}
        """The finished response, after `end`."""
        self._request = request
        self._id = response_id or new_id("resp")
        self._created_at = int(time.time())
        self._sent = 0
        self._item: _Growing | None = None  # the reasoning item or message that is open
        self._calls: dict[int, _Call] = {}  # open calls by output index

    def start(self, model: str | None = None) -> list[Event]:
        """The two events before anything is known."""
        response = response_object([], self._request, model=model, response_id=self._id, created_at=self._created_at)
        response |= {"status": "in_progress"}
        return [
            self._event("response.created", response=response),
            self._event("response.in_progress", response=response),
        ]

    def think(self, text: str) -> list[Event]:
        """More of the model's thoughts."""
        return self._more("reasoning", "reasoning_text", text)

    def say(self, text: str, logprobs: Sequence[Any] = ()) -> list[Event]:
        """More of the answer's text; with the log-probs of its tokens where the caller asked for them."""
        return self._more("message", "output_text", text, logprobs)

    def refuse(self, text: str) -> list[Event]:
        """More of a refusal."""
        return self._more("message", "refusal", text)

    def call(self, call_id: str, name: str) -> tuple[int, list[Event]]:
        """A call begins; returns its output index, by which `arguments` and `end_call` know it."""
        events = self._close_item()
        index = len(self.output)
        item = call_item(call_id, name, "", "in_progress")
        self.output.append(item)
        self._calls[index] = _Call(item)
        return index, [*events, self._event("response.output_item.added", output_index=index, item=dict(item))]

    def arguments(self, index: int, text: str) -> list[Event]:
        """More of a call's arguments, the model's own characters."""
        call = self._calls[index]
        call.pieces.append(text)
        return [
            self._event(
                "response.function_call_arguments.delta", item_id=call.item["id"], output_index=index, delta=text
            )
        ]

    def end_call(self, index: int, status: str = "completed") -> list[Event]:
        """A call's arguments are whole, or will never be."""
        call = self._calls.pop(index)
        item = call.item
        item["arguments"], item["status"] = "".join(call.pieces), status
        done = {"item_id": item["id"], "output_index": index, "name": item["name"], "arguments": item["arguments"]}
        return [
            self._event("response.function_call_arguments.done", **done),
            self._event("response.output_item.done", output_index=index, item=dict(item)),
        ]

    def end(
        self, reason: str | None = None, usage: dict[str, Any] | None = None, model: str | None = None
    ) -> list[Event]:
        """Closes what is open and tells the whole response; `reason` says why it is incomplete."""
        events: list[Event] = []
        for index in sorted(self._calls):
            events += self.end_call(index, "incomplete" if reason and index == len(self.output) - 1 else "completed")
        events += self._close_item("incomplete" if reason else "completed")
        self.response = response_object(
            self.output,
            self._request,
            reason=reason,
            usage=usage,
            model=model,
            response_id=self._id,
            created_at=self._created_at,
        )
        return [*events, self._event(f"response.{self.response['status']}", response=self.response)]

    def fail(self, error: TriviumError) -> list[Event]:
        """The answer will not come: `response.failed`, with what there is of it."""
        response = response_object(list(self.output), self._request, response_id=self._id, created_at=self._created_at)
        response |= {"status": "failed", "error": {"code": error.code, "message": str(error)}}
        return [self._event("response.failed", response=response)]

    def _more(self, item_type: str, part_type: str, text: str, logprobs: Sequence[Any] = ()) -> list[Event]:
        events = self._open(item_type) + self._open_part(part_type)
        assert self._item is not None
        if not text:
            return events
        self._item.pieces.append(text)
        self._item.logprobs += logprobs
        extra = {"logprobs": list(logprobs)} if part_type == "output_text" else {}
        return [*events, self._event(f"{PART_KINDS[part_type][0]}.delta", **self._item.place, delta=text, **extra)]

    def _open(self, item_type: str) -> list[Event]:
        if self._item is not None and self._item.item["type"] == item_type:
            return []
        events = self._close_item()
        item: Item = {
            "type": item_type,
            "id": new_id("rs" if item_type == "reasoning" else "msg"),
            "status": "in_progress",
        }
        item |= {"summary": [], "content": []} if item_type == "reasoning" else {"role": "assistant", "content": []}
        self._item = _Growing(item, len(self.output))
        self.output.append(item)
        return [
            *events,
            self._event("response.output_item.added", output_index=self._item.index, item={**item, "content": []}),
        ]

    def _open_part(self, part_type: str) -> list[Event]:
        assert self._item is not None
        if self._item.part == part_type:
            return []
        events = self._close_part()
        self._item.part, self._item.pieces = part_type, []
        _, field, rest = PART_KINDS[part_type]
        return [
            *events,
            self._event("response.content_part.added", **self._item.place, part={"type": part_type, field: "", **rest}),
        ]

    def _close_part(self) -> list[Event]:
        growing = self._item
        if growing is None or growing.part is None:
            return []
        prefix, field, rest = PART_KINDS[growing.part]
        text = "".join(growing.pieces)
        logprobs = {"logprobs": growing.logprobs} if growing.part == "output_text" else {}
        part = {"type": growing.part, field: text, **rest, **logprobs}
        done = self._event(f"{prefix}.done", **growing.place, **{field: text}, **logprobs)
        events = [done, self._event("response.content_part.done", **growing.place, part=part)]
        growing.item["content"].append(part)
        growing.part = None
        return events

    def _close_item(self, status: str = "completed") -> list[Event]:
        if self._item is None:
            return []
        events = self._close_part()
        item, index = self._item.item, self._item.index
        item["status"] = status
        self._item = None
        return [*events, self._event("response.output_item.done", output_index=index, item=dict(item))]

    def _event(self, kind: str, **fields: Any) -> Event:
        self._sent += 1
        return {"type": kind, "sequence_number": self._sent - 1, **fields}


class _Growing:
    """A reasoning item or a message, and the part of it that grows."""

    __slots__ = ("index", "item", "logprobs", "part", "pieces")

    def __init__(self, item: Item, index: int) -> None:
        self.item, self.index = item, index
        self.part: str | None = None
        self.pieces: list[str] = []
        self.logprobs: list[Any] = []

    @property
    def place(self) -> dict[str, Any]:
        return {"item_id": self.item["id"], "output_index": self.index, "content_index": len(self.item["content"])}


class _Call:
    """A call whose arguments grow."""

    __slots__ = ("item", "pieces")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.pieces: list[str] = []


def response_events(response: dict[str, Any]) -> Iterator[Event]:
    """A finished response as the events of its stream, for a backend that does not stream; one delta per part."""
    for number, event in enumerate(_whole(response)):
        yield {"type": event.pop("type"), "sequence_number": number, **event}


def _whole(response: dict[str, Any]) -> Iterator[Event]:
    begun = {
        **response,
        "status": "in_progress",
        "output": [],
        "usage": None,
        "incomplete_details": None,
        "error": None,
    }
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(response["output"]):
        yield from _whole_item(index, item)
    yield {"type": f"response.{response.get('status') or 'completed'}", "response": response}


def _whole_item(index: int, item: Item) -> Iterator[Event]:
    kind, place = item.get("type"), {"item_id": item.get("id"), "output_index": index}
    empty: Item = (
        {"content": []} if kind in ("message", "reasoning") else {"arguments": ""} if kind == "function_call" else {}
    )
    yield {
        "type": "response.output_item.added",
        "output_index": index,
        "item": {**item, **empty, "status": "in_progress"},
    }
    if kind == "function_call":
        if item["arguments"]:
            yield {"type": "response.function_call_arguments.delta", **place, "delta": item["arguments"]}
        done = {"name": item["name"], "arguments": item["arguments"]}
        yield {"type": "response.function_call_arguments.done", **place, **done}
    elif isinstance(item.get("content"), list):
        for number, part in enumerate(item["content"]):
            yield from _whole_part({**place, "content_index": number}, part)
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _whole_part(place: dict[str, Any], part: Item) -> Iterator[Event]:
    if part["type"] not in PART_KINDS:
        return
    prefix, field, rest = PART_KINDS[part["type"]]
    text = part[field]
    logprobs = {"logprobs": part.get("logprobs") or []} if part["type"] == "output_text" else {}
    yield {"type": "response.content_part.added", **place, "part": {"type": part["type"], field: "", **rest}}
    if text:
        yield {"type": f"{prefix}.delta", **place, "delta": text, **logprobs}
    yield {"type": f"{prefix}.done", **place, field: text, **logprobs}
    yield {"type": "response.content_part.done", **place, "part": part}
