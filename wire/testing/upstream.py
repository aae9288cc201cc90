"""A model server that does as it is told and checks what it is asked: for our tests and for those of anyone who builds on us.

    upstream = Upstream([TC(("call_1", "get_weather", '{"city": "Paris"}')), refused(429, Retry_After="2"), MSG("Sunny.")])
    async with serving(up=upstream) as urls:
        ...                                   # point `model_interface.base_url` at urls["up"]
    assert upstream.refused == []             # no request was one that a strict server refuses
    assert upstream.bodies[1]["messages"][-1]["role"] == "tool"

It speaks Chat Completions (streamed and not), `/v1/completions` with a token prompt, `/v1/responses`, `/tokenize`, `/detokenize` and
`/v1/models`, with token ids and log-probs as vLLM gives them. Faults are in `wire.testing.answers`, the checks in `wire.testing.strict`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from wire import strict_json
from wire.testing import tokens
from wire.testing.answers import (
    MSG,
    RESPONSE,
    TC,
    Answer,
    Reply,
    Streaming,
    as_text,
    cut,
    dropped,
    error_inside,
    gzipped,
    html,
    never,
    refused,
    slowly,
    streamed,
)
from wire.testing.events import chat_events, completion_events, encode_events, response_events
from wire.testing.strict import faults

__all__ = [
    "MSG",
    "RESPONSE",
    "TC",
    "Answer",
    "Received",
    "Reply",
    "Streaming",
    "Upstream",
    "as_text",
    "cut",
    "dropped",
    "error_inside",
    "faults",
    "gzipped",
    "html",
    "never",
    "refused",
    "slowly",
    "streamed",
]

JSON = dict[str, Any]
Send = Callable[[JSON], Awaitable[None]]
Receive = Callable[[], Awaitable[JSON]]

GENERATING = ("/v1/chat/completions", "/v1/completions", "/v1/responses")


@dataclass
class Received:
    """One generating request, as it came."""

    path: str
    headers: dict[str, str]
    body: JSON
    at: float  # seconds on the monotonic clock
    size: int  # bytes of the body


@dataclass
class Upstream:
    """The fake upstream; an ASGI application.

    Args:
        answers: Given in order, one for each request, whoever asks; when the list runs out, `after` for ever.
        turns: In place of `answers`: the answer to a conversation's n-th turn, told by the assistant messages in the request, so that many
            rollouts can run at once and a repeated request gets the same answer.
        strict: Answer 400 to a history with one of the faults of `wire.testing.strict`.
        api_key: Answer 401 unless this one is sent.
        max_model_len: Answer 400 in vLLM's words to a prompt with more (toy) tokens than this.
        after: The answer when the list has run out.
        model: The one name in `/v1/models`.
    """

    answers: Sequence[Answer] = ()
    turns: Sequence[Answer] | None = None
    strict: bool = True
    api_key: str | None = None
    max_model_len: int | None = None
    after: Answer = field(default_factory=lambda: MSG("done"))
    model: str = "m"

    received: list[Received] = field(default_factory=list, init=False)
    """Every generating request that was read, refused ones included."""
    refused: list[str] = field(default_factory=list, init=False)
    """Why requests were answered 400 by the checks; a test asserts that it is empty."""
    in_flight: int = field(default=0, init=False)
    peak_in_flight: int = field(default=0, init=False)
    _given: int = field(default=0, init=False)

    @property
    def bodies(self) -> list[JSON]:
        """The bodies of the generating requests, in order."""
        return [each.body for each in self.received]

    @property
    def calls(self) -> int:
        """How many generating requests came."""
        return len(self.received)

    async def __call__(self, scope: JSON, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        try:
            await self._serve(scope, receive, send)
        finally:
            self.in_flight -= 1

    async def _serve(self, scope: JSON, receive: Receive, send: Send) -> None:
        raw, path = await _read(receive), scope["path"]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        reply: Reply
        body: JSON = {}
        if self.api_key is not None and headers.get("authorization") != f"Bearer {self.api_key}":
            reply = refused(401)
        else:
            reply, body = self._answer(scope["method"], path, headers, raw)
        await _send(reply, path, body, receive, send)

    def _answer(self, method: str, path: str, headers: dict[str, str], raw: bytes) -> tuple[Reply, JSON]:
        if method == "GET" and path == "/v1/models":
            card = {
                "id": self.model,
                "object": "model",
                "created": 1,
                "owned_by": "test",
                "max_model_len": self.max_model_len,
            }
            return Reply({"object": "list", "data": [card]}), {}
        if method != "POST" or path not in (*GENERATING, "/tokenize", "/detokenize"):
            return refused(404, {"detail": "Not Found"}), {}
        try:
            body = strict_json.loads(raw)
        except strict_json.JSONError as error:
            return _bad_request(f"the body is not JSON: {error}"), {}
        if path == "/tokenize":
            ids = _tokenize(body)
            return Reply({"count": len(ids), "max_model_len": self.max_model_len, "tokens": ids}), body
        if path == "/detokenize":
            return Reply({"prompt": tokens.decode(body["tokens"])}), body
        self.received.append(Received(path, headers, body, time.monotonic(), len(raw)))
        return self._generate(path, body), body

    def _generate(self, path: str, body: JSON) -> Reply:
        wrong = faults(body.get("messages") or []) if self.strict else []
        if wrong:
            self.refused += wrong
            return _bad_request(wrong[0])
        prompt = _prompt(path, body)
        if self.max_model_len is not None and len(prompt) > self.max_model_len:
            return _bad_request(
                f"This model's maximum context length is {self.max_model_len} tokens. However, your request has {len(prompt)} input tokens."
            )
        answer = self._next(body, prompt)
        if callable(answer):
            answer = answer(body)
        reply = answer if isinstance(answer, Reply) else Reply(answer)
        if isinstance(reply.body, dict) and isinstance(reply.body.get("choices"), list):
            shaped = (
                _as_completion(reply.body, body, prompt)
                if path == "/v1/completions"
                else _with_tokens(reply.body, body, prompt)
            )
            return Reply(shaped, reply.status, reply.headers, reply.delay_s, reply.cut_after, reply.fate, reply.stream)
        return reply

    def _next(self, body: JSON, prompt: list[int]) -> Answer:
        if self.turns is not None:
            script, index = self.turns, _turn(body, prompt)
        else:
            script, index = self.answers, self._given
            self._given += 1
        return script[index] if index < len(script) else self.after


def _turn(body: JSON, prompt: list[int]) -> int:
    """How many turns the model has had in this conversation."""
    if "messages" in body:
        return sum(message.get("role") == "assistant" for message in body["messages"])
    if "prompt" in body:
        return tokens.decode(prompt).count("<|im_start|>assistant\n") - 1
    items = body["input"] if isinstance(body.get("input"), list) else []
    return sum(item.get("type") == "function_call_output" for item in items)


def _tokenize(body: JSON) -> list[int]:
    if "messages" in body:
        return tokens.prompt_ids(body["messages"], body.get("tools"), ask=body.get("add_generation_prompt", True))
    return tokens.encode(body.get("prompt", ""))


def _prompt(path: str, body: JSON) -> list[int]:
    if path == "/v1/chat/completions":
        return tokens.prompt_ids(body.get("messages") or [], body.get("tools"))
    prompt = body.get("prompt") if path == "/v1/completions" else None
    return prompt if isinstance(prompt, list) else tokens.encode(prompt or "")


def _with_tokens(answer: JSON, body: JSON, prompt: list[int]) -> JSON:
    """A chat completion with ids and log-probs where they were asked for, unless the script has put its own there."""
    choice = answer["choices"][0] if answer["choices"] else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        return answer
    ids = tokens.generation_ids(message, ended=choice.get("finish_reason") != "length")
    extra: JSON = {}
    if body.get("return_token_ids") and "token_ids" not in choice:
        answer = {**answer, "prompt_token_ids": prompt}
        extra["token_ids"] = ids
    if body.get("logprobs") and "logprobs" not in choice:
        named = bool(body.get("return_tokens_as_token_ids"))
        extra["logprobs"] = {"content": [_token_logprob(each, index, named) for index, each in enumerate(ids)]}
    return {**answer, "choices": [{**choice, **extra}, *answer["choices"][1:]]} if extra else answer


def _token_logprob(token: int, position: int, named: bool) -> JSON:
    text = f"token_id:{token}" if named else tokens.decode([token])
    return {
        "token": text,
        "logprob": tokens.log_prob(token, position),
        "bytes": list(text.encode()),
        "top_logprobs": [],
    }


def _as_completion(answer: JSON, body: JSON, prompt: list[int]) -> JSON:
    """A chat answer as `/v1/completions` gives it: the raw text, calls in their tags."""
    choice = answer["choices"][0]
    message, finish = choice["message"], choice.get("finish_reason")
    ids = choice.get("token_ids") or tokens.generation_ids(message, ended=finish != "length")
    completion: JSON = {
        "index": 0,
        "text": tokens.spoken(message),
        "finish_reason": "stop" if finish == "tool_calls" else finish,
    }
    if body.get("return_token_ids"):
        completion |= {"prompt_token_ids": prompt, "token_ids": ids}
    if body.get("logprobs") is not None:
        named = bool(body.get("return_tokens_as_token_ids"))
        names = [f"token_id:{each}" if named else tokens.decode([each]) for each in ids]
        scores = [tokens.log_prob(each, index) for index, each in enumerate(ids)]
        completion["logprobs"] = {"tokens": names, "token_logprobs": scores, "text_offset": [], "top_logprobs": None}
    usage = {"prompt_tokens": len(prompt), "completion_tokens": len(ids), "total_tokens": len(prompt) + len(ids)}
    return {
        "id": "cmpl",
        "object": "text_completion",
        "created": 1,
        "model": answer.get("model"),
        "choices": [completion],
        "usage": usage,
    }


def _bad_request(message: str) -> Reply:
    return Reply({"error": {"message": message, "type": "BadRequestError", "param": None, "code": 400}}, 400)


async def _read(receive: Receive) -> bytes:
    chunks, more = [], True
    while more:
        message = await receive()
        chunks.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(chunks)


async def _send(reply: Reply, path: str, body: JSON, receive: Receive, send: Send) -> None:
    if reply.delay_s:
        await asyncio.sleep(reply.delay_s)
    if reply.fate == "never":
        while (await receive())["type"] != "http.disconnect":
            pass
    elif reply.fate == "drop":
        send.__self__.transport.abort()  # type: ignore[attr-defined]  # uvicorn's own; ASGI has no word for it
    elif body.get("stream") and reply.status == 200 and isinstance(reply.body, dict):
        await _send_events(reply, path, body, send)
    else:
        await _send_body(reply, send)


async def _send_body(reply: Reply, send: Send) -> None:
    content = strict_json.dumps(reply.body) if isinstance(reply.body, dict) else reply.body
    headers = {"content-type": "application/json", "content-length": str(len(content))}
    headers |= {name.lower(): value for name, value in reply.headers.items()}
    await _start(reply.status, headers, send)
    if reply.cut_after is None:
        await send({"type": "http.response.body", "body": content})
    else:
        await send({"type": "http.response.body", "body": content[: reply.cut_after], "more_body": True})
        await _hang_up(send)


async def _send_events(reply: Reply, path: str, body: JSON, send: Send) -> None:
    assert isinstance(reply.body, dict)
    how = reply.stream or Streaming()
    make = {"/v1/responses": response_events, "/v1/completions": completion_events}.get(path, chat_events)
    events = make(reply.body, body, how)
    chunks = encode_events(
        events if reply.cut_after is None else events[: reply.cut_after], how, whole=reply.cut_after is None
    )
    await _start(200, {"content-type": "text/event-stream; charset=utf-8", **reply.headers}, send)
    for chunk in chunks:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await asyncio.sleep(0)
    if reply.cut_after is None:
        await send({"type": "http.response.body", "body": b""})
    else:
        await _hang_up(send)


async def _start(status: int, headers: dict[str, str], send: Send) -> None:
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})


async def _hang_up(send: Send) -> None:
    await asyncio.sleep(0.01)  # let what was written leave first
    send.__self__.transport.close()  # type: ignore[attr-defined]  # uvicorn's own; ASGI has no word for it
