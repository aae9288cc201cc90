"""What becomes of a status whose body is cut, badly compressed, or has something before its JSON (cases B01, B07)."""

import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.model_interface.conftest import interface
from wire.testing import serving
from wire.testing.upstream import MSG, Reply, Upstream, cut

TEXT = json.dumps(MSG("good")).encode()
ERROR = b'{"error": {"message": "so it is"}}'
BAD_GZIP = {"content-encoding": "gzip"}


@asynccontextmanager
async def reached(up: Upstream, way: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """A chat backend whose upstream is `up`, `direct` or behind a `proxy`."""
    async with serving(up=up) as urls:
        base = urls["up"]
        if way == "proxy":
            monkeypatch.setenv("HTTP_PROXY", base)
            monkeypatch.delenv("http_proxy", raising=False)
            monkeypatch.delenv("NO_PROXY", raising=False)
            base = "http://models.example.com/v1"
        async with interface(backend="chat", base_url=base, attempts=2) as model:
            yield model


async def told(model: Any, *, stream: bool) -> str:
    """The text of what comes back, whole or as events."""
    async with model.http.post(f"{model.url}/v1/responses", json={"input": "x", "stream": stream}) as answer:
        text: str = await answer.text()
        return text


@pytest.mark.parametrize(
    ("status", "kind", "calls"),
    [(400, "model_refused", 1), (401, "model_refused", 1), (403, "model_refused", 1), (429, "rate_limited", 2),
     (500, "model_error", 2), (503, "model_error", 2), (504, "model_timeout", 2)],
)  # fmt: skip
@pytest.mark.parametrize("body", ["cut", "bad gzip", "short gzip"])
async def test_an_error_status_outlives_its_body(
    status: int, kind: str, calls: int, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is final is not tried again, and what had come is told."""
    answers = {
        "cut": cut(Reply(ERROR, status), 30),
        "bad gzip": Reply(ERROR, status, BAD_GZIP),
        "short gzip": Reply(gzip.compress(ERROR)[:-9], status, BAD_GZIP),
    }
    up = Upstream([answers[body]] * 3)
    async with reached(up, "direct", monkeypatch) as model:
        _, said = await model.post("/v1/responses", {"input": "x"})
    assert (said["error"]["code"], up.calls) == (kind, calls)
    assert f" {status}: " in said["error"]["message"]
    assert "so it" in said["error"]["message"]


@pytest.mark.parametrize("way", ["direct", "proxy"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_status_that_was_cut_is_final_on_every_way(
    way: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole answers and streams, with and without a proxy."""
    up = Upstream([cut(Reply(ERROR, 401), 30)] * 3)
    async with reached(up, way, monkeypatch) as model:
        said = await told(model, stream=stream)
    assert up.calls == 1
    assert "model_refused" in said and " 401: " in said


@pytest.mark.parametrize(("way", "headers"), [("direct", {}), ("direct", BAD_GZIP), ("proxy", {}), ("proxy", BAD_GZIP)])
async def test_retry_after_outlives_the_body(
    way: str, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next try comes when the server said."""
    slow = Reply(ERROR, 429, {"Retry-After": "1", **headers})
    up = Upstream([slow if headers else cut(slow, 5), MSG("good")])
    async with reached(up, way, monkeypatch) as model:
        await model.ask({"input": "x"})
    assert 1.0 <= up.received[1].at - up.received[0].at < 2.0


@pytest.mark.parametrize(
    "body", [cut(Reply(TEXT), 40), Reply(TEXT, 200, BAD_GZIP), Reply(TEXT, 200, {"content-encoding": "br"})]
)
async def test_a_200_that_cannot_be_read_is_told_with_its_first_characters(
    body: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`model_invalid_response`, tried again."""
    up = Upstream([body] * 3)
    async with reached(up, "direct", monkeypatch) as model:
        _, said = await model.post("/v1/responses", {"input": "x"})
    assert (said["error"]["code"], up.calls) == ("model_invalid_response", 2)
    assert "answered 200 with a body" in said["error"]["message"]
    assert '{"id": "c", "object": "chat.completion"' in said["error"]["message"]


@pytest.mark.parametrize("status", [200, 201, 202, 203, 206, 299])
@pytest.mark.parametrize("stream", [False, True])
async def test_every_2xx_with_a_completion_is_an_answer(
    status: int, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a gateway makes of the 200."""
    up = Upstream([Reply(TEXT, status)] * 2)
    async with reached(up, "direct", monkeypatch) as model:
        said = await told(model, stream=stream)
    assert up.calls == 1
    assert "good" in said


@pytest.mark.parametrize(
    "before",
    [b"\xef\xbb\xbf", b": keep-alive\n\n", b": OPENROUTER PROCESSING\r\n\r\n: again\r\n", b"\xef\xbb\xbf\n:\n", b"\n \n:x\r"],
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
async def test_what_stands_before_the_json_is_passed_over(
    before: bytes, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte order mark, and the comment lines by which a gateway keeps a connection alive."""
    up = Upstream([Reply(before + TEXT)] * 2)
    async with reached(up, "direct", monkeypatch) as model:
        said = await told(model, stream=stream)
    assert up.calls == 1
    assert "good" in said


async def test_a_204_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its status is told, and it is tried again."""
    up = Upstream([Reply(b"", 204)] * 3)
    async with reached(up, "direct", monkeypatch) as model:
        _, said = await model.post("/v1/responses", {"input": "x"})
    assert (said["error"]["code"], up.calls) == ("model_invalid_response", 2)
    assert "answered 204 with" in said["error"]["message"]
