"""Streams: server-sent events parsed and written, chat chunks put together, Responses events told in three dialects. No I/O.

upstream bytes -> SSEParser -> ChatStreamAssembler or ResponsesRelay -> Responses events -> face(...) -> client bytes
"""

from model_interface.streaming.assemble import ChatStreamAssembler
from model_interface.streaming.emit import ResponsesEmitter, response_events
from model_interface.streaming.faces import Dialect, Face, face
from model_interface.streaming.relay import ResponsesRelay
from model_interface.streaming.sse import DONE_EVENT, KEEP_ALIVE, Event, SSEParser, encode, without_preface

__all__ = [
    "DONE_EVENT",
    "KEEP_ALIVE",
    "ChatStreamAssembler",
    "Dialect",
    "Event",
    "Face",
    "ResponsesEmitter",
    "ResponsesRelay",
    "SSEParser",
    "encode",
    "face",
    "response_events",
    "without_preface",
]
