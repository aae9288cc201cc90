"""Calls between servers: what is tried again, what is not, and what each failure is called."""

import asyncio
from typing import Any

import pytest

from wire.client import Client, ConnectionLost, Retry, TimedOut, Unreachable
from wire.deadline import Deadline
from wire.testing import free_port, serving


class Flaky:
    """A bare TCP server that cuts the connection after reading a request, `cuts` times, then answers."""

    def __init__(self, cuts: int) -> None:
        self.cuts, self.requests = cuts, 0

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.requests += 1
        if self.requests > self.cuts:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        writer.close()


async def test_a_call_that_may_have_run_is_not_sent_again() -> None:
    """The reply was lost: only the caller knows whether a repeat is harmless."""
    flaky = Flaky(cuts=1)
    async with flaky as url, Client({"t": url}) as client:
        with pytest.raises(ConnectionLost, match="the connection broke"):
            await client.post("t", "/x", b"{}", deadline=Deadline(5))
    assert flaky.requests == 1


async def test_a_call_that_may_be_replayed_is_sent_again() -> None:
    """Seed, verify, close and calls with an id are answered from memory; once, since what they ask may be what breaks the server."""
    flaky = Flaky(cuts=1)
    async with flaky as url, Client({"t": url}) as client:
        reply = await client.post("t", "/x", b"{}", deadline=Deadline(5), retry=Retry.REPLAY)
    assert (reply.status, flaky.requests) == (200, 2)
    flaky = Flaky(cuts=9)
    async with flaky as url, Client({"t": url}) as client:
        with pytest.raises(ConnectionLost):
            await client.post("t", "/x", b"{}", deadline=Deadline(5), retry=Retry.REPLAY)
    assert flaky.requests == 2


async def test_a_dead_address_is_unreachable_and_named() -> None:
    """Within the bounded tries, well before the deadline."""
    async with Client({"t": f"http://127.0.0.1:{free_port()}"}) as client:
        with pytest.raises(Unreachable, match=r"t at http://127\.0\.0\.1:\d+/x: no connection"):
            await client.post("t", "/x", b"{}", deadline=Deadline(30))


async def test_an_answer_that_does_not_come_is_a_time_out() -> None:
    """The deadline is the only clock; nothing is repeated after it."""
    never = asyncio.Event()

    async def hang(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await never.wait()

    async with serving(t=hang) as urls, Client(urls) as client:
        with pytest.raises(TimedOut, match=r"no answer within 0\.2 s"):
            await client.post("t", "/x", b"{}", deadline=Deadline(0.2), retry=Retry.REPLAY)
        never.set()


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster-wide HTTP_PROXY must not see traffic between our own servers."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with Flaky(cuts=0) as url, Client({"t": url}) as client:
        assert (await client.post("t", "/x", b"{}", deadline=Deadline(5))).ok


async def test_the_budget_travels_with_the_call() -> None:
    """Seconds left, to three places."""
    seen: list[dict[bytes, bytes]] = []

    async def echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        seen.append(dict(scope["headers"]))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async with serving(t=echo) as urls, Client(urls, token="secret") as client:
        await client.post("t", "/x", b"{}", {"X-Session-Id": "s"}, deadline=Deadline(7))
    assert 6 < float(seen[0][b"x-budget-s"]) <= 7
    assert (seen[0][b"x-session-id"], seen[0][b"authorization"]) == (b"s", b"Bearer secret")
