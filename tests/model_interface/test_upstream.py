"""Reaching a model server: retries, time-outs, dead addresses, unreadable answers, replicas, width (cases B)."""

import asyncio
import email.utils
import time
from typing import Any

import pytest

from model_interface.settings import ModelInterfaceSettings
from model_interface.upstream import Upstream as Reached
from tests.model_interface.conftest import interface
from wire.errors import UsageError
from wire.metrics import Metrics
from wire.testing import free_port, serving
from wire.testing.upstream import MSG, TC, Upstream, cut, dropped, error_inside, html, never, refused, slowly

CALL = ("c1", "get_weather", "{}")
OVERFLOWS = [
    {
        "error": {
            "message": "maximum context length is 64 tokens but the request has 70 input tokens",
            "type": "BadRequestError",
            "code": 400,
        }
    },
    {
        "error": {
            "message": "prompt exceeds the limit",
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
        }
    },
    {"object": "error", "message": "Input prompt (70 tokens) is too long and exceeds limit of 64", "code": 400},
    {"error": {"message": "max_tokens must be at least 1, got -17", "type": "BadRequestError", "code": 400}},
]


async def ask(up: Any, **settings: Any) -> tuple[int, Any]:
    """One question through a chat backend whose upstream is `up`."""
    async with serving(up=up) as urls, interface(backend="chat", base_url=urls["up"], **settings) as model:
        return await model.post("/v1/responses", {"input": "x"})


def in_two_seconds() -> str:
    return email.utils.formatdate(time.time() + 2.9, usegmt=True)


@pytest.mark.parametrize("header", ["2", "date"])
async def test_retry_after_is_obeyed(header: str) -> None:
    """B01: seconds or a date; the second call comes when the server said, and succeeds."""
    value = in_two_seconds() if header == "date" else header
    up = Upstream([refused(429, Retry_After=value), MSG("ok")])
    status, _ = await ask(up)
    waited = up.received[1].at - up.received[0].at
    assert (status, up.calls) == (200, 2)
    assert (1.0 if header == "date" else 2.0) <= waited < 4.0


@pytest.mark.parametrize("header", ["0", "abc", "-5", None])
async def test_a_retry_after_that_says_nothing_gives_our_own_wait(header: str | None) -> None:
    """B01: 0.1 to 5 s, no exception."""
    up = Upstream([refused(429) if header is None else refused(429, Retry_After=header), MSG("ok")])
    assert (await ask(up))[0] == 200
    assert 0.1 <= up.received[1].at - up.received[0].at < 5


async def test_tries_are_bounded_and_the_servers_own_sentence_is_kept() -> None:
    """Three tries in all, then rate_limited with what the server said."""
    up = Upstream([refused(429, {"error": {"message": "slow down, friend"}})] * 5)
    status, body = await ask(up)
    assert (status, body["error"]["code"], up.calls) == (429, "rate_limited", 3)
    assert "slow down, friend" in body["error"]["message"]


async def test_no_try_reaches_past_the_budget() -> None:
    """X-Budget-S of 1 s and a Retry-After of 30: the failure comes at once."""
    up = Upstream([refused(429, Retry_After="30")])
    async with serving(up=up) as urls, interface(backend="chat", base_url=urls["up"]) as model:
        began = time.monotonic()
        status, body = await model.post("/v1/responses", {"input": "x"}, X_Budget_S="1")
    assert (status, body["error"]["code"]) == (429, "rate_limited")
    assert time.monotonic() - began < 1.5


@pytest.mark.parametrize("body", OVERFLOWS, ids=["vllm", "code", "object", "max_tokens"])
async def test_a_prompt_that_is_too_long_ends_the_episode(body: Any, output: Any) -> None:
    """B03: 200, incomplete, context_window, after exactly two upstream calls."""
    up = Upstream([TC(CALL), refused(400, body)])
    async with serving(up=up) as urls, interface(backend="chat", base_url=urls["up"]) as model:
        first = await model.ask({"input": "x"})
        second = await model.go_on(first, output(first["output"][0]))
    assert (second["status"], second["incomplete_details"]["reason"]) == ("incomplete", "context_window")
    assert up.calls == 2


@pytest.mark.parametrize(
    "message", ["max_tokens is too large", "unknown parameter 'context length'", "the tool is too long"]
)
async def test_any_other_400_is_refused_and_not_tried_again(message: str) -> None:
    """Words like the ones of a too long prompt are not enough."""
    up = Upstream([refused(400, {"error": {"message": message, "code": 400}})])
    status, body = await ask(up)
    assert (status, body["error"]["code"], up.calls) == (400, "model_refused", 1)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1"])
async def test_a_dead_address_is_named_soon(url: str) -> None:
    """B05 b, c: model_unreachable, with URL and cause."""
    began = time.monotonic()
    async with interface(backend="chat", base_url=url) as model:
        status, body = await model.post("/v1/responses", {"input": "x"})
    assert (status, body["error"]["code"]) == (502, "model_unreachable")
    assert url in body["error"]["message"]
    assert time.monotonic() - began < 15


async def test_a_server_that_never_answers_is_a_time_out() -> None:
    """B05 d: within timeout times attempts, and its place is free again."""
    up = Upstream([never(), never()])
    async with (
        serving(up=up) as urls,
        interface(backend="chat", base_url=urls["up"], timeout_s=0.3, attempts=2) as model,
    ):
        status, body = await model.post("/v1/responses", {"input": "x"})
        assert (status, body["error"]["code"], up.calls) == (504, "model_timeout", 2)
        _, metrics = await model.get("/metrics")
    assert any(line.startswith("trivium_upstream_in_flight{") and line.endswith(" 0") for line in metrics.splitlines())
    assert "trivium_upstream_limit_history{" in metrics


@pytest.mark.parametrize(
    ("answer", "kind", "shown"),
    [
        (html(502), "model_error", "bad gateway"),
        (error_inside("overloaded"), "model_error", "overloaded"),
        (refused(200, b""), "model_invalid_response", "empty body"),
        (cut(MSG("ok"), 40), "model_invalid_response", '{"id"'),
    ],
    ids=["html", "error inside", "empty", "cut"],
)
async def test_an_answer_that_is_none_is_tried_again_and_quoted(answer: Any, kind: str, shown: str) -> None:
    """B07 a, c, e, f: within the tries, then a typed failure with the first characters; once right, it is used."""
    up = Upstream([answer, answer], after=MSG("ok"))
    status, body = await ask(up, attempts=2)
    assert (status >= 500, body["error"]["code"], up.calls) == (True, kind, 2)
    assert shown in body["error"]["message"]
    again = Upstream([answer], after=MSG("ok"))
    assert (await ask(again))[0] == 200


async def test_an_answer_that_is_no_http_is_told_as_such() -> None:
    """Something did answer: `model_unreachable` would send its reader to look for a server that is down."""

    async def garble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"\x00\x01 garbage\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(garble, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, interface(backend="chat", base_url=url, attempts=1) as model:
        status, body = await model.post("/v1/responses", {"input": "x"})
    assert (status, body["error"]["code"]) == (502, "model_invalid_response")
    assert "no HTTP" in body["error"]["message"]


async def test_a_connection_that_was_dropped_is_made_anew() -> None:
    """B05 a: the server closes without a word; the call is repeated at once and counts as one try."""
    up = Upstream([dropped(), MSG("ok")])
    assert (await ask(up, attempts=1))[0] == 200


async def test_no_key_is_in_any_error() -> None:
    """The upstream repeats the key in its message; ours masks it."""
    up = Upstream([refused(401, {"error": {"message": "Incorrect API key provided: my-secret-key-123"}})])
    _, body = await ask(up, api_key="my-secret-key-123", headers={"X-Other": "second-secret"})
    assert up.received[0].headers["authorization"] == "Bearer my-secret-key-123"
    assert "my-secret-key-123" not in str(body)
    assert body["error"]["code"] == "model_refused"


async def test_proxies_of_the_environment_never_touch_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """B10: HTTP_PROXY points at a closed port, and NO_PROXY is not set."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert (await ask(Upstream([MSG("ok")])))[0] == 200


async def test_a_server_behind_a_proxy_is_reached_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """B10: whole answers and streams, when the environment names a proxy for the outside."""
    up = Upstream([refused(503, retry_after="0"), MSG("ok")])
    async with serving(proxy=up) as urls:
        monkeypatch.setenv("HTTP_PROXY", urls["proxy"])
        monkeypatch.delenv("http_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        async with interface(backend="chat", base_url="http://models.example.com/v1", attempts=2) as model:
            assert (await model.post("/v1/responses", {"input": "x"}))[0] == 200
    assert [each.headers["host"] for each in up.received] == ["models.example.com"] * 2


@pytest.mark.parametrize("settings", [{"api_key": "sk-1\n"}, {"headers": {"X-Team": "a\r\nX-Other: b"}}])
def test_a_key_that_is_more_than_a_line_is_refused_at_the_start(settings: dict[str, Any]) -> None:
    """Read from a file with its line break: told before the first call, and the key is not shown."""
    chosen = ModelInterfaceSettings(backend="chat", base_url="http://127.0.0.1:1", **settings)
    with pytest.raises(UsageError, match="holds a line break; a key is one line") as raised:
        Reached(chosen, Metrics())
    assert "sk-1" not in str(raised.value)


async def test_a_header_of_the_config_stands_in_place_of_ours() -> None:
    """Whatever its case: one line of each name goes out."""
    up = Upstream([MSG("ok")])
    await ask(up, api_key="key", headers={"authorization": "Basic abc"})
    assert up.received[0].headers["authorization"] == "Basic abc"


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "//v1", "/V1", "/v1/chat/completions"])
async def test_every_spelling_of_the_base_url_works(ending: str) -> None:
    """B10: one request, to /v1/chat/completions."""
    up = Upstream([MSG("ok")])
    async with serving(up=up) as urls, interface(backend="chat", base_url=urls["up"] + ending) as model:
        await model.ask({"input": "x"})
    assert [each.path for each in up.received] == ["/v1/chat/completions"]


async def test_three_hundred_calls_are_in_flight_at_once() -> None:
    """B10: no pool caps the throughput."""
    up = Upstream(turns=[], after=slowly(MSG("ok"), 1.0))
    async with serving(up=up) as urls, interface(backend="chat", base_url=urls["up"]) as model:
        model.http.connector._limit = 0  # type: ignore[union-attr] # the test's own client is to be no cap
        began = time.monotonic()
        await asyncio.gather(*(model.ask({"input": str(number)}) for number in range(300)))
    assert up.peak_in_flight >= 290
    assert time.monotonic() - began < 10


async def test_a_dead_replica_is_passed_over_and_a_rollout_stays_with_one() -> None:
    """Two replicas, one of them down: every call succeeds; with both up, one session's calls go to one replica."""
    one, two = Upstream(turns=[], after=MSG("1")), Upstream(turns=[], after=MSG("2"))
    async with serving(one=one, two=two) as urls:
        async with interface(backend="chat", base_urls=[urls["one"], f"http://127.0.0.1:{free_port()}"]) as model:
            for _ in range(4):
                await model.ask({"input": "x"})
        async with interface(backend="chat", base_urls=[urls["one"], urls["two"]]) as model:
            before = one.calls
            for _ in range(6):
                await model.ask({"input": "x"}, X_Session_Id="s" * 32)
    assert before == 4
    assert {one.calls - before, two.calls} == {0, 6}


async def test_a_caller_that_leaves_frees_its_place_upstream(monkeypatch: pytest.MonkeyPatch) -> None:
    """The upstream never answers, the caller gives up: nothing is in flight any more."""
    monkeypatch.setattr("model_interface.routes.WATCH_AFTER_S", 0.01)
    up = Upstream([never()])
    async with serving(up=up) as urls, interface(backend="chat", base_url=urls["up"]) as model:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await model.ask({"input": "x"})
        async with asyncio.timeout(5):
            while model.app.metrics.value("upstream_in_flight", endpoint=f"{urls['up']}/v1"):  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0.01)
    assert up.calls == 1
