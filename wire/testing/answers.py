"""What the fake upstream can be told to answer: good completions, and every way of failing that was met in the field.

An answer is a JSON object (sent as 200), a `Reply` for anything else, or a function from the request's body to one of these.
"""

import gzip
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from wire import strict_json

JSON = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """One HTTP answer, made to order.

    Attributes:
        body: A JSON object, or the bytes as they are.
        status: HTTP status.
        headers: More headers; `content-type` here wins over the one for JSON.
        delay_s: Seconds before the status line.
        cut_after: Bytes of the body (events, where the answer is streamed) after which the connection is closed; the
            Content-Length promises all of it.
        fate: `answer`; `never` (accepts, and says nothing until the caller leaves); `drop` (closes without a word).
        stream: How it is streamed, where the caller asks for that.
    """

    body: JSON | bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut_after: int | None = None
    fate: str = "answer"
    stream: "Streaming | None" = None


@dataclass(frozen=True)
class Streaming:
    """How a streamed answer leaves, its oddities included.

    Attributes:
        piece: Characters of text per event.
        chunk_bytes: Bytes per write: 1 splits lines, events and UTF-8 characters.
        newline: `\\n`, `\\r\\n` or `\\r`, all of which the standard allows.
        comments: Put `: keep-alive` comments, `retry:` and `id:` lines and empty events between the events.
        done: Whether `data: [DONE]` comes at the end.
        error_after: Events after which an error event ends the stream.
    """

    piece: int = 3
    chunk_bytes: int | None = None
    newline: str = "\n"
    comments: bool = False
    done: bool = True
    error_after: int | None = None


Answer = JSON | Reply | Callable[[JSON], "JSON | Reply"]


def TC(  # noqa: N802  # the cases call it so
    *calls: tuple[Any, str, Any], text: Any = None, finish: str = "tool_calls", ctok: int = 16, **extra: Any
) -> JSON:
    """A completion that calls tools; `calls` are (id, name, arguments)."""
    tool_calls = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in calls]
    return _completion({"role": "assistant", "content": text, "tool_calls": tool_calls, **extra}, finish, ctok)


def MSG(text: Any, finish: str | None = "stop", **extra: Any) -> JSON:  # noqa: N802  # the cases call it so
    """A completion that answers in words; `extra` are further fields of the message (`refusal`, `reasoning_content`)."""
    return _completion({"role": "assistant", "content": text, **extra}, finish, 5)


def RESPONSE(*items: JSON, **fields: Any) -> JSON:  # noqa: N802  # beside the other two
    """A Responses object, for an upstream that is asked at /v1/responses."""
    usage = {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25}
    response = {
        "id": "resp_up",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": list(items),
    }
    return {**response, "usage": usage, "error": None, "incomplete_details": None, **fields}


def refused(status: int, body: JSON | bytes | None = None, **headers: str) -> Reply:
    """An HTTP error; header names are given with underscores: `refused(429, Retry_After="2")`."""
    error = {"error": {"message": f"scripted {status}", "type": "scripted_error", "code": None, "param": None}}
    return Reply(
        error if body is None else body, status, {key.replace("_", "-"): value for key, value in headers.items()}
    )


def html(status: int = 502, text: str = "<html>bad gateway</html>") -> Reply:
    """A gateway's page in place of an answer."""
    return Reply(text.encode(), status, {"content-type": "text/html"})


def error_inside(message: str = "overloaded", **fields: Any) -> JSON:
    """200, and the body is an error."""
    return {"error": {"message": message, **fields}}


def as_text(body: JSON) -> Reply:
    """A good answer under the wrong content type."""
    return Reply(strict_json.dumps(body), 200, {"content-type": "text/plain"})


def gzipped(body: JSON) -> Reply:
    """A good answer, compressed although nobody asked."""
    return Reply(
        gzip.compress(strict_json.dumps(body)), 200, {"content-encoding": "gzip", "content-type": "application/json"}
    )


def cut(answer: JSON | Reply, after: int = 40) -> Reply:
    """A body of which only the first bytes come; events, where it is streamed."""
    return replace(_reply(answer), cut_after=after)


def slowly(answer: JSON | Reply, delay_s: float) -> Reply:
    """The same answer, later."""
    return replace(_reply(answer), delay_s=delay_s)


def streamed(answer: JSON | Reply, **how: Any) -> Reply:
    """The same answer, streamed in another manner: the fields of `Streaming`."""
    return replace(_reply(answer), stream=Streaming(**how))


def never() -> Reply:
    """The request is accepted and never answered."""
    return Reply(fate="never")


def dropped() -> Reply:
    """The connection is closed after the request has been read, without a byte of an answer."""
    return Reply(fate="drop")


def _reply(answer: JSON | Reply) -> Reply:
    return answer if isinstance(answer, Reply) else Reply(answer)


def _completion(message: JSON, finish: str | None, completion_tokens: int) -> JSON:
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": 20, "completion_tokens": completion_tokens, "total_tokens": 20 + completion_tokens},
    }
