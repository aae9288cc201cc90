"""A Responses stream from an upstream that speaks Responses itself: passed on as it is, under our id and with what it left out.

llama.cpp's events have no `output_index`, `content_index` and `sequence_number`, and its first response no `output`; OpenAI's client
counts on all of them.
"""

import time
from typing import Any

from model_interface.translate.answers import DEFAULTS
from model_interface.translate.errors import UpstreamError, error_sentence, raise_if_error

ENDS = ("response.completed", "response.incomplete")
PARTS = ("response.content_part.", "response.output_text.", "response.refusal.", "response.reasoning_text.")


class ResponsesRelay:
    """Feed it every event of the upstream, then `finish` it; the counterpart of `ChatStreamAssembler`.

    Args:
        response_id: The id under which the response is known here.
    """

    def __init__(self, response_id: str) -> None:
        self.response: dict[str, Any] = {}
        """The finished response, after its last event; the upstream's own but for the id."""
        self.begun = False
        self._id = response_id
        self._sent = 0
        self._created_at = int(time.time())
        self._places: dict[Any, int] = {}  # item id -> output index

    def feed(self, event: Any) -> list[dict[str, Any]]:
        """The event to pass on.

        Raises:
            UpstreamError: the upstream says that it failed, or sends what is no event.
        """
        kind = event.get("type") if isinstance(event, dict) else None
        if kind in ("error", "response.failed") or (kind is None and error_sentence(event)):
            what = "the model server ended its stream with an error"
            raise_if_error(event if kind != "response.failed" else event.get("response"), what)
            raise UpstreamError("model_error", f"{what}: no reason given")
        if not isinstance(kind, str):
            raise UpstreamError(
                "model_invalid_response", f"the model server streamed {str(event)[:200]!r} where an event belongs"
            )
        self.begun = True
        event = {**event, "sequence_number": self._sent}
        self._sent += 1
        if isinstance(event.get("response"), dict):
            base = {"object": "response", "created_at": self._created_at, "model": "", "output": [], **DEFAULTS}
            event["response"] = {**base, **event["response"], "id": self._id}
        elif kind.startswith("response."):
            self._place(event, kind)
        if kind in ENDS:
            self.response = event["response"]
        return [event]

    def _place(self, event: dict[str, Any], kind: str) -> None:
        """Say of which item, and of which part of it, an event is."""
        item = event.get("item")
        item_id = item.get("id") if isinstance(item, dict) else event.get("item_id")
        if kind == "response.output_item.added":
            self._places[item_id] = event.setdefault("output_index", len(self._places))
        elif item_id is not None or isinstance(item, dict):
            event.setdefault("output_index", self._places.get(item_id, max(len(self._places) - 1, 0)))
        if kind.startswith(PARTS):
            event.setdefault("content_index", 0)
        if kind in ("response.output_text.delta", "response.output_text.done"):
            event.setdefault("logprobs", [])

    def finish(self, *, done: bool = False) -> list[dict[str, Any]]:
        """Nothing more to send; `done` is there for likeness.

        Raises:
            UpstreamError: the stream ended without its last event.
        """
        if not self.response:
            raise UpstreamError("model_invalid_response", "the model server's stream ended before the answer did")
        return []
