"""The misbehaving proxy: each fault is what its name says, seen from both sides."""

import asyncio
import contextlib
from typing import Any

import aiohttp
import pytest

from wire.client import Client, ConnectionLost, Unreachable
from wire.deadline import Deadline
from wire.testing import serving
from wire.testing.proxy import FAULTS, FaultyProxy

CAME = {"none": 1, "delay": 1, "lose": 0, "refuse": 0, "lose_reply": 1, "cut": 1, "double": 2, "garble": 1, "spoil": 1}
LOST = ("lose", "lose_reply", "cut", "garble")


class Echo:
    """Answers with the number of the request and its body; remembers who left before the answer."""

    def __init__(self) -> None:
        self.came, self.left = 0, asyncio.Event()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = (await receive())["body"]
        self.came += 1
        if scope["path"] == "/hang":
            await receive()
            self.left.set()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'{"said":', "more_body": True})
        await send({"type": "http.response.body", "body": body + b"}"})


@pytest.mark.parametrize("fault", ["none", *FAULTS])
async def test_each_fault_is_met_by_the_caller_and_by_the_server(fault: str) -> None:
    """A lost or broken reply ends the connection; a spoilt one is no JSON; everything else is answered in the end."""
    echo = Echo()
    async with (
        serving(t=echo) as urls,
        FaultyProxy(urls["t"], share=1.0, faults=[fault]) as proxy,
        Client({"t": proxy.url}) as client,
    ):
        if fault == "none":
            proxy.share = 0.0
        if fault in LOST:
            with pytest.raises(ConnectionLost):
                await client.post("t", "/x", b"7", deadline=Deadline(5))
        elif fault == "refuse":
            with pytest.raises((ConnectionLost, Unreachable)):
                await client.post("t", "/x", b"7", deadline=Deadline(5))
        else:
            reply = await client.post("t", "/x", b"7", deadline=Deadline(5))
            assert reply.body == (b'\x00"said":7}' if fault == "spoil" else b'{"said":7}')
    assert proxy.met == {fault: 1} and echo.came == CAME[fault]


async def test_a_port_that_refuses_does_so_for_a_moment() -> None:
    """Whoever tries again a little later is served."""
    async with (
        serving(t=Echo()) as urls,
        FaultyProxy(urls["t"], share=1.0, faults=["refuse"]) as proxy,
        Client({"t": proxy.url}) as client,
    ):
        with pytest.raises(ConnectionLost):
            await client.post("t", "/x", b"7", deadline=Deadline(5))
        proxy.share = 0.0
        assert (await client.post("t", "/x", b"8", deadline=Deadline(5))).body == b'{"said":8}'


async def test_a_caller_who_leaves_is_gone_for_the_server() -> None:
    """The proxy holds nobody's connection for them."""
    echo = Echo()
    async with serving(t=echo) as urls, FaultyProxy(urls["t"], share=0.0) as proxy, aiohttp.ClientSession() as http:
        asking = asyncio.create_task(http.post(f"{proxy.url}/hang", data=b"1"))
        await proxy.until("/hang", 1)
        asking.cancel()
        async with asyncio.timeout(5):
            await echo.left.wait()


async def test_one_seed_is_one_order_of_faults() -> None:
    """The share is kept, and the same seed gives the same run."""
    met = []
    for _ in range(2):
        async with (
            serving(t=Echo()) as urls,
            FaultyProxy(
                urls["t"], share=0.3, seed=5, faults=["spoil", "cut"], spoils=lambda path: path != "/x"
            ) as proxy,
            Client({"t": proxy.url}) as client,
        ):
            for _ in range(100):
                with contextlib.suppress(ConnectionLost):
                    await client.post("t", "/x", b"1", deadline=Deadline(5))
        met.append(proxy.met)
    assert met[0] == met[1] and 15 < met[0]["cut"] < 45 and "spoil" not in met[0]
