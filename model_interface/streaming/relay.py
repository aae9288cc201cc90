"""A Responses stream from an upstream that speaks Responses itself: passed on as it is, under our id."""

from typing import Any

from model_interface.translate.errors import UpstreamError, error_sentence

ENDS = ("response.completed", "response.incomplete")


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

    def feed(self, event: Any) -> list[dict[str, Any]]:
        """The event to pass on.

        Raises:
            UpstreamError: the upstream says that it failed, or sends what is no event.
        """
        kind = event.get("type") if isinstance(event, dict) else None
        if kind in ("error", "response.failed") or (kind is None and error_sentence(event)):
            said = error_sentence(event if kind != "response.failed" else event.get("response")) or (
                "no reason given",
                None,
            )
            raise UpstreamError(
                "model_error", f"the model server ended its stream with an error: {said[0]}", upstream_code=said[1]
            )
        if not isinstance(kind, str):
            raise UpstreamError(
                "model_invalid_response", f"the model server streamed {str(event)[:200]!r} where an event belongs"
            )
        self.begun = True
        response = event.get("response")
        if isinstance(response, dict):
            event = {**event, "response": {**response, "id": self._id}}
        if kind in ENDS:
            self.response = event["response"]
        return [event]

    def finish(self, *, done: bool = False) -> list[dict[str, Any]]:
        """Nothing more to send; `done` is there for likeness.

        Raises:
            UpstreamError: the stream ended without its last event.
        """
        if not self.response:
            raise UpstreamError("model_invalid_response", "the model server's stream ended before the answer did")
        return []
