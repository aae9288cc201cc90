"""How many calls an endpoint takes, which one is next, and how long to wait: without a socket."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from model_interface.endpoints import Endpoints, Limiter
from model_interface.faults import ContextOverflow, mask, refusal
from model_interface.proxies import is_internal
from model_interface.retry import SHORTEST_WAIT_S, wait_s
from model_interface.settings import normalise_base_url

NOW = datetime(2026, 11, 29, tzinfo=UTC)


def test_a_limit_halves_when_pushed_back_and_grows_by_one_per_round() -> None:
    """Calls sent before the last halving do not halve it again."""
    limiter = Limiter(64)
    for _ in range(64):
        assert limiter.take()
    sent_at = time.monotonic()
    limiter.shrink(sent_at)
    limiter.shrink(sent_at - 1)
    assert limiter.limit == 32
    for _ in range(33):
        limiter.grow()
    assert 32.9 < limiter.limit < 33.1
    assert [round(limit) for _, limit in limiter.history] == [64, 32, 33]


async def test_waiting_callers_are_served_in_order_and_a_cancelled_one_costs_no_place() -> None:
    """Three wait for one place; the second gives up."""
    limiter, served = Limiter(1), list[int]()
    assert limiter.take()

    async def caller(number: int) -> None:
        await limiter.acquire()
        served.append(number)
        limiter.release()

    tasks = [asyncio.create_task(caller(number)) for number in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    limiter.release()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert served == [0, 2]
    assert limiter.in_flight == 0


def test_the_least_loaded_replica_is_next_and_a_rollout_stays_while_it_is_healthy() -> None:
    """A pin moves when its replica is down."""
    endpoints = Endpoints(["http://a/v1", "http://b/v1"], 8)
    pinned = endpoints.pick("rollout")
    pinned.limiter.take()
    assert endpoints.pick("rollout") is pinned
    other = endpoints.pick(None)
    assert other is not pinned
    pinned.down()
    assert endpoints.pick("rollout") is other


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [("2", 2.0, 2.2), ("0", 0.1, 0.5), ("abc", 0.1, 0.5), ("-5", 0.1, 0.5), ("nan", 0.1, 0.5), (None, 0.1, 0.5),
     (format_datetime(NOW + timedelta(seconds=3), usegmt=True), 3.0, 3.2), (format_datetime(NOW - timedelta(9), usegmt=True), 0.1, 0.5)],
)  # fmt: skip
def test_a_wait_is_the_servers_or_our_own(header: str | None, low: float, high: float) -> None:
    """Seconds, a date, or nonsense; the floor is 0.1 s."""
    assert wait_s(1, header, now=NOW, jitter=0.0) >= SHORTEST_WAIT_S
    assert low <= wait_s(1, header, now=NOW) <= high


@pytest.mark.parametrize(
    "message",
    ["This model's maximum context length is 64 tokens.", "prompt is too long: 300 tokens > 200 maximum",
     "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
     "The input token count (9) exceeds the maximum number of tokens allowed (8).", "Prompt exceeds max length"],
)  # fmt: skip
def test_servers_words_for_a_prompt_that_is_too_long(message: str) -> None:
    """Narrow patterns, for servers without a code."""
    body = b'{"error": {"message": "%s"}}' % message.encode()
    assert isinstance(refusal(400, body, "x answered"), ContextOverflow)
    assert not isinstance(refusal(500, body, "x answered"), ContextOverflow)


def test_what_looks_like_a_key_is_masked() -> None:
    """Ours by value, others by their look."""
    text = mask("key abcdefgh and sk-proj-1234567890 and Bearer xyz.abc", ("abcdefgh",))
    assert text == "key *** and *** and Bearer ***"


def test_internal_hosts_are_recognised() -> None:
    """Loopback, private networks and bare names; not the world."""
    assert all(map(is_internal, ["127.0.0.1", "::1", "localhost", "10.1.2.3", "vllm", "model.internal"]))
    assert not any(map(is_internal, ["api.openai.com", "8.8.8.8"]))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *((f"http://h:8000{path}", "http://h:8000/v1") for path in (
            "", "/", "//", "/v1", "/v1/", "//v1", "/v1//", "/V1", "/V1/", "/v1/v1", "//v1//V1/", "/v1/chat/completions",
            "/v1//chat/completions/", "/V1/Chat/Completions", "/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages",
            "/v1/models/", "/v1/chat", "?", "/v1#",
        )),
        (" http://h:8000/v1\n", "http://h:8000/v1"),
        ("HTTP://h/v1", "http://h/v1"),
        ("http://h:/v1", "http://h/v1"),
        ("http://[::1]:8000//V1", "http://[::1]:8000/v1"),
        ("https://g/openai", "https://g/openai"),
        ("https://g//openai/V1/", "https://g/openai/v1"),
        ("https://g/v1beta/openai/chat/completions", "https://g/v1beta/openai"),
        ("https://g/chat", "https://g/chat"),
        ("https://g/Models/V10", "https://g/Models/V10"),
    ],
)  # fmt: skip
def test_a_base_url_has_one_spelling(written: str, meant: str) -> None:
    """B10: doubled slashes, capitals, a route pasted whole; a gateway's own path is kept. Twice is once."""
    assert normalise_base_url(written) == meant
    assert normalise_base_url(meant) == meant


@pytest.mark.parametrize(
    "url",
    ["ftp://x", "x:8000", "http://user:pw@h/v1", "http://h/v1?key=1", "", "http:///v1", "http:/h/v1", "http://h:eight/v1",
     "http://h:99999/v1", "http://h:0/v1", "http://[::1/v1", "http://my host/v1", "http://h\\v1", "<http://h/v1>", "http://{host}/v1",
     "/v1"],
)  # fmt: skip
def test_a_base_url_that_is_none_is_refused(url: str) -> None:
    """At the start, in one sentence with what would be right, and without a password."""
    with pytest.raises(ValueError, match="URL") as refused:
        normalise_base_url(url)
    assert "\n" not in str(refused.value) and "pw" not in str(refused.value)


def test_a_password_in_a_url_that_is_none_is_not_shown() -> None:
    """The message goes to logs."""
    with pytest.raises(ValueError, match=r"\*\*\*@h") as refused:
        normalise_base_url("htp://user:secret@h/v1")
    assert "secret" not in str(refused.value)
