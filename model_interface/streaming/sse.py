"""Server-sent events, in and out. Source: HTML Living Standard, "Server-sent events"; where servers differ from it, servers win.

The parser takes bytes as the network cuts them: in the middle of a line, of a line end, of a UTF-8 character. Comments, `id:` and
empty events pass unseen; `retry:` is kept. A last event without its blank line counts: some servers end so, and a torn one does not
parse as JSON.
"""

import re
from dataclasses import dataclass
from typing import Any

from model_interface.translate.errors import UpstreamError
from model_interface.translate.raw_calls import calls_as_text
from wire import strict_json

MAX_EVENT_BYTES = 16 << 20  # of one event; a server that never ends a line must not fill our memory
LINE_END = re.compile(rb"\r\n|\n|\r")
BOM = b"\xef\xbb\xbf"
DONE = b"[DONE]"
_PREFACE = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|:[^\r\n]*[\r\n])*")


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name ("message" where the server gave none) and its data lines, joined by newlines."""

    name: str
    data: bytes

    @property
    def done(self) -> bool:
        """Whether this is the end mark of OpenAI's streams."""
        return self.data.strip() == DONE

    def json(self) -> Any:
        """The data as JSON.

        Raises:
            UpstreamError: `model_invalid_response`, with the first 200 characters.
        """
        try:
            return self._parsed()
        except strict_json.JSONError as error:
            shown = self.data[:200].decode("utf-8", "replace")
            raise UpstreamError(
                "model_invalid_response", f"the model server streamed what is not JSON ({error}): {shown}"
            ) from None

    def _parsed(self) -> Any:
        try:
            return strict_json.loads(self.data)
        except strict_json.JSONError:
            text = calls_as_text(self.data)
            if text == self.data:
                raise
            return strict_json.loads(text)


class SSEParser:
    """Bytes in, events out; one per stream."""

    def __init__(self) -> None:
        self.retry_ms: int | None = None
        """What the server last asked for with `retry:`."""
        self._rest = b""  # of an unfinished line
        self._name, self._data = "", list[bytes]()
        self._size = 0
        self._begun = False

    def feed(self, data: bytes) -> list[Event]:
        """The events that are complete with these bytes.

        Raises:
            UpstreamError: one event is larger than `MAX_EVENT_BYTES`.
        """
        buffer = self._rest + data if self._rest else data
        if not self._begun:
            if len(buffer) < len(BOM) and BOM.startswith(buffer):
                self._rest = buffer
                return []
            buffer, self._begun = buffer.removeprefix(BOM), True
        lines = LINE_END.split(buffer)
        self._rest = lines.pop()
        if buffer.endswith(b"\r"):  # perhaps half of a line end: wait for the next byte
            self._rest = lines.pop() + b"\r"
        self._bound(len(data))
        return [event for event in map(self._line, lines) if event is not None]

    def close(self) -> list[Event]:
        """What the stream ended on, without its blank line."""
        lines = [self._rest.removesuffix(b"\r"), b""]
        self._rest = b""
        return [event for event in map(self._line, lines) if event is not None]

    def _line(self, line: bytes) -> Event | None:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_ms = int(value)
        return None

    def _dispatch(self) -> Event | None:
        event = Event(self._name or "message", b"\n".join(self._data)) if self._data else None
        self._name, self._data, self._size = "", [], 0
        return event if event is not None and event.data else None

    def _bound(self, more: int) -> None:
        self._size += more
        if self._size > MAX_EVENT_BYTES and (self._data or self._rest):
            raise UpstreamError(
                "model_invalid_response", f"the model server streamed an event of over {MAX_EVENT_BYTES >> 20} MiB"
            )


def without_preface(raw: bytes) -> bytes:
    """A body without the byte order mark, blank lines and comment lines (`: keep-alive`) before its text."""
    found = _PREFACE.match(raw)
    return raw[found.end() :] if found else raw


def encode(payload: Any, name: str | None = None) -> bytes:
    """One event on the wire."""
    head = b"event: " + name.encode() + b"\n" if name else b""
    return head + b"data: " + strict_json.dumps(payload) + b"\n\n"


DONE_EVENT = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"
"""A comment, for a caller that waits long."""
