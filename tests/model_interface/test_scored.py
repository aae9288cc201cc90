"""The short way to read a chat completion with log-probabilities: whatever comes, what is made of it is as by the long one."""

import re
from typing import Any

import pytest

from model_interface import faults
from model_interface.backend import Response
from model_interface.backends import _scored
from model_interface.backends.vllm import _log_probs
from wire import strict_json
from wire.errors import Failed

MESSAGE = rb'{"role":"assistant","content":"\u00e9\"x","tool_calls":[]}'
SCORES = rb'{"content":[{"token":"\"]}","logprob":-0.5,"bytes":null,"top_logprobs":[]},{"token":"b","logprob":-1}]}'
CHOICE = b'{"index":0,"message":%b,"logprobs":%b,"finish_reason":"stop","stop_reason":null,"token_ids":[5,6]}' % (
    MESSAGE,
    SCORES,
)
BODY = b'{"id":"x","object":"chat.completion","model":"m","choices":[%b],"usage":{"prompt_tokens":3},"prompt_token_ids":[1,2,3]}'
ANSWER = BODY % CHOICE


def changed(old: bytes, new: bytes) -> bytes:
    assert old in ANSWER
    return ANSWER.replace(old, new)


BODIES = {
    "an answer": ANSWER,
    "two": BODY % (CHOICE + b"," + CHOICE.replace(b"x", b"y")),
    "the second of another form": BODY % (CHOICE + b',{"message":null}'),
    "none": BODY % b"",
    "null for one": BODY % b"null",
    "an error beside it": changed(b'"usage"', b'"error":{"message":"boom","code":429},"usage"'),
    "an error in words": changed(b'"usage"', b'"error":"boom","usage"'),
    "an error by its object": changed(b'"chat.completion"', b'"error","message":"boom","code":429'),
    "an error by its type": changed(b'"usage"', b'"type":"error","message":"boom","usage"'),
    "an overflow inside": changed(b'"usage"', b'"error":{"message":"maximum context length is 5 tokens"},"usage"'),
    "a member twice": changed(b'"usage"', b'"choices":[],"usage"'),
    "a name in escapes": changed(b'"choices"', rb'"cho\u0069ces"'),
    "unknown members": changed(b'"usage"', b'"errors":["x"],"detail":"d","success":false,"code":503,"usage"'),
    "a reason as an object": changed(b'"stop"', b'{"type":"length"}'),
    "a broken end": changed(b'"stop"', b'"abort"'),
    "no message": changed(MESSAGE, b"null"),
    "a lone surrogate": changed(b"\\u00e9", b"\\ud800"),
    "one that nobody reads": changed(b'"id":"x"', b'"id":"\\ud800"'),
    "bytes that are no text": changed(b"\\u00e9", b"\xff"),
    "an infinite score": changed(b"-0.5", b"-1e999"),
    "NaN": changed(b"-0.5", b"NaN"),
    "no score": changed(b"-0.5", b"null"),
    "a score of 400 digits": changed(b"-0.5", b"9" * 400),
    "no scores": changed(SCORES, b"null"),
    "ids with a point": changed(b"[5,6]", b"[5.0,6]"),
    "ids past 64 bits": changed(b"[5,6]", b"[5,18446744073709551616]"),
    "no ids": changed(b'"prompt_token_ids":[1,2,3]', b'"prompt_token_ids":null'),
    "no usage": changed(b'{"prompt_tokens":3}', b"null"),
    "a nameless model": changed(b'"m"', b'""'),
    "deep": changed(b'"id":"x"', b'"id":' + b"[" * 5000 + b"]" * 5000),
    "a mark before": b"\xef\xbb\xbf" + ANSWER,
    "half": ANSWER[:-20],
    "more behind": ANSWER + b"{}",
}


@pytest.mark.parametrize("raw", BODIES.values(), ids=BODIES)
def test_an_answer_is_what_it_would_be_without_the_short_way(raw: bytes) -> None:
    """Its items, counts and tokens, or the same failure in the same words."""
    assert outcome(_scored.loads, raw) == outcome(strict_json.loads_numbers, raw)


def test_the_short_way_keeps_no_token_apart() -> None:
    """Of the log-probabilities the numbers alone: that is what it is for."""
    assert _scored.loads(ANSWER)["choices"][0]["logprobs"] == {"token_logprobs": [-0.5, -1.0]}


def outcome(loads: Any, raw: bytes) -> Any:
    """What a caller sees of it."""
    try:
        value = loads(raw)
    except strict_json.JSONError:
        return "no JSON"
    failure = faults.error_inside(value, "it answered")
    if failure is not None:
        return type(failure), str(failure)
    try:
        response = Response.of_completion(value, {}, reasoning="auto", taken=set())
    except Failed as failed:
        return failed.kind, str(failed)
    choice = value["choices"][0]
    tokens = value.get("prompt_token_ids"), choice.get("token_ids"), _log_probs(choice)
    made = re.sub(r"'id': '\w+'", "", str(response.output))
    return made, response.status, response.reason, response.usage, response.model, tokens
