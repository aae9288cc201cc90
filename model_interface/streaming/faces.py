"""Responses events as what a client asked to read: Responses events, chat chunks, or Anthropic's message events, in bytes.

Every face takes the same events, whether they come from an assembler, a relay or a finished response, so that each upstream can be streamed
to each kind of client. `feed` every event; `fail` where the answer will not come; `end` last of all.
"""

import time
from typing import Any, Literal, Protocol

from model_interface.streaming.sse import DONE_EVENT, encode
from model_interface.translate.answers import new_id
from model_interface.translate.chat_face import chat_usage, finish_of, own_field
from model_interface.translate.content import plain_arguments
from model_interface.translate.messages_face import error_body, messages_usage, stop_reason
from wire.errors import TriviumError

Event = dict[str, Any]
Dialect = Literal["responses", "chat", "messages"]
ENDS = ("response.completed", "response.incomplete")
THOUGHTS = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")


class Face(Protocol):
    """What streams an answer to one client."""

    def feed(self, event: Event) -> bytes:
        """The bytes that one event becomes; perhaps none."""

    def fail(self, error: TriviumError) -> bytes:
        """The bytes that end a stream whose answer will not come."""

    def end(self) -> bytes:
        """The bytes after the last event."""


def face(dialect: Dialect, request: dict[str, Any]) -> Face:
    """The face for a client; `request` is its own, in its own dialect."""
    if dialect == "chat":
        return ChatFace(include_usage=bool((request.get("stream_options") or {}).get("include_usage")))
    return MessagesFace(request.get("model") or "") if dialect == "messages" else ResponsesFace()


class ResponsesFace:
    """Events as they are."""

    def __init__(self) -> None:
        self._last = -1
        self._response: dict[str, Any] = {}

    def feed(self, event: Event) -> bytes:
        """The event itself."""
        self._last = event.get("sequence_number", self._last + 1)
        if event["type"] == "response.created":
            self._response = event["response"]
        return encode(event, event["type"])

    def fail(self, error: TriviumError) -> bytes:
        """`response.failed`, with code and message in the response."""
        failure = {"code": error.code, "message": str(error)}
        response = {
            "id": new_id("resp"),
            "object": "response",
            "output": [],
            **self._response,
            "status": "failed",
            "error": failure,
        }
        return encode(
            {"type": "response.failed", "sequence_number": self._last + 1, "response": response}, "response.failed"
        )

    def end(self) -> bytes:
        """Nothing: the last event is the end."""
        return b""


class ChatFace:
    """Chunks of a chat completion. Source: OpenAI API reference, Chat, streaming; thoughts as `reasoning_content`."""

    def __init__(self, *, include_usage: bool = False) -> None:
        self._include_usage = include_usage
        self._base: Event = {
            "id": new_id("chatcmpl"),
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": "",
        }
        self._calls: dict[int, int] = {}  # output index -> index among the calls
        self._told: set[int] = set()  # output items of which something was sent in pieces

    def feed(self, event: Event) -> bytes:
        """The chunks that an event becomes."""
        kind = event["type"]
        if kind == "response.created":
            self._base["model"] = event["response"].get("model") or ""
            return self._chunk({"role": "assistant", "content": ""})
        if kind.endswith(".delta"):
            return self._delta(kind, event)
        if kind == "response.output_item.added" and event["item"].get("type") == "function_call":
            return self._call(event["output_index"], event["item"])
        if kind == "response.output_item.done" and event["output_index"] not in self._told:
            return self._whole(event["output_index"], event["item"])
        return self._finish(event["response"]) if kind in ENDS else b""

    def fail(self, error: TriviumError) -> bytes:
        """An error object in place of a chunk: OpenAI's client raises it."""
        return encode(error.body())

    def end(self) -> bytes:
        """`[DONE]`."""
        return DONE_EVENT

    def _delta(self, kind: str, event: Event) -> bytes:
        index, text = event.get("output_index", -1), event["delta"]
        self._told.add(index)
        if kind == "response.output_text.delta":
            return self._chunk({"content": text}, logprobs=event.get("logprobs"))
        if kind in THOUGHTS:
            return self._chunk({"reasoning_content": text})
        if kind == "response.refusal.delta":
            return self._chunk({"refusal": text})
        if kind == "response.function_call_arguments.delta" and index in self._calls:
            return self._chunk({"tool_calls": [{"index": self._calls[index], "function": {"arguments": text}}]})
        return b""

    def _call(self, index: int, item: Event) -> bytes:
        number = self._calls[index] = len(self._calls)
        function = {"name": item["name"], "arguments": ""}
        return self._chunk(
            {"tool_calls": [{"index": number, "id": item["call_id"], "type": "function", "function": function}]}
        )

    def _whole(self, index: int, item: Event) -> bytes:
        """An item that came without deltas."""
        if item.get("type") == "function_call" and index in self._calls and item.get("arguments"):
            return self._chunk(
                {"tool_calls": [{"index": self._calls[index], "function": {"arguments": item["arguments"]}}]}
            )
        deltas = {"reasoning_text": "reasoning_content", "output_text": "content", "refusal": "refusal"}
        parts = item.get("content") if isinstance(item.get("content"), list) else []
        found = [(deltas.get(part.get("type")), part.get("text", part.get("refusal"))) for part in parts or ()]
        return b"".join(self._chunk({field: text}) for field, text in found if field and text)

    def _finish(self, response: dict[str, Any]) -> bytes:
        sent = self._chunk({}, finish=finish_of(response), **own_field(response))
        usage = chat_usage(response.get("usage"))
        if not self._include_usage or usage is None:
            return sent
        return sent + encode({**self._base, "choices": [], "usage": usage})

    def _chunk(self, delta: Event, *, finish: str | None = None, logprobs: Any = None, **own: Any) -> bytes:
        choice: Event = {
            "index": 0,
            "delta": delta,
            "logprobs": {"content": logprobs} if logprobs else None,
            "finish_reason": finish,
        }
        return encode({**self._base, "choices": [choice], **own})


class MessagesFace:
    """Anthropic's message events. Source: Anthropic API reference, Messages, streaming.

    A call's input is sent in one piece when it is whole: the client parses it as it comes, and raises at what is no JSON.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._blocks = 0  # content blocks begun so far
        self._open: tuple[int, str] | None = None  # (output index, block type) of the open one
        self._told: set[int] = set()

    def feed(self, event: Event) -> bytes:
        """The events that an event becomes."""
        kind = event["type"]
        if kind == "response.created":
            return self._start(event["response"])
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            return self._piece(event["output_index"], "text", event["delta"])
        if kind in THOUGHTS:
            return self._piece(event["output_index"], "thinking", event["delta"])
        if kind == "response.output_item.done":
            return self._item(event["output_index"], event["item"])
        return self._finish(event["response"]) if kind in ENDS else b""

    def fail(self, error: TriviumError) -> bytes:
        """An error event: Anthropic's client raises it."""
        return encode(error_body(error), "error")

    def end(self) -> bytes:
        """Nothing: `message_stop` is the end."""
        return b""

    def _start(self, response: dict[str, Any]) -> bytes:
        message: Event = {
            "id": new_id("msg"), "type": "message", "role": "assistant", "model": response.get("model") or self._model, "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 0, "output_tokens": 0},
        }  # fmt: skip
        return self._send("message_start", message=message)

    def _piece(self, output_index: int, block: str, text: str) -> bytes:
        self._told.add(output_index)
        sent = b""
        if self._open != (output_index, block):
            empty = (
                {"type": "text", "text": ""}
                if block == "text"
                else {"type": "thinking", "thinking": "", "signature": ""}
            )
            sent = self._close() + self._begin(output_index, empty)
        delta = (
            {"type": "text_delta", "text": text} if block == "text" else {"type": "thinking_delta", "thinking": text}
        )
        return sent + self._send("content_block_delta", index=self._blocks - 1, delta=delta)

    def _item(self, output_index: int, item: Event) -> bytes:
        kind = item.get("type")
        if kind == "function_call":
            block = {"type": "tool_use", "id": item["call_id"], "name": item["name"], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": plain_arguments(item["arguments"])}
            begun = self._close() + self._begin(output_index, block)
            return begun + self._send("content_block_delta", index=self._blocks - 1, delta=delta) + self._close()
        if output_index in self._told:
            return self._close() if self._open is not None and self._open[0] == output_index else b""
        texts = [part.get("text", part.get("refusal")) for part in item.get("content") or () if isinstance(part, dict)]
        block_type = "thinking" if kind == "reasoning" else "text"
        return b"".join(self._piece(output_index, block_type, text) for text in texts if text) + self._close()

    def _finish(self, response: dict[str, Any]) -> bytes:
        delta = {"stop_reason": stop_reason(response), "stop_sequence": None}
        closed = self._close() + self._send(
            "message_delta", delta=delta, usage=messages_usage(response.get("usage")), **own_field(response)
        )
        return closed + self._send("message_stop")

    def _begin(self, output_index: int, block: Event) -> bytes:
        self._open = (output_index, block["type"])
        self._blocks += 1
        return self._send("content_block_start", index=self._blocks - 1, content_block=block)

    def _close(self) -> bytes:
        if self._open is None:
            return b""
        self._open = None
        return self._send("content_block_stop", index=self._blocks - 1)

    def _send(self, kind: str, **fields: Any) -> bytes:
        return encode({"type": kind, **fields}, kind)
