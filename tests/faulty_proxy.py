"""A proxy that loses, delays, cuts, doubles and spoils a share of what goes through it, so that it shows: as a bare ASGI app."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
FAULTS = ("lose", "delay", "cut", "double", "spoil")
CONTROL = ("/run", "/seed_session", "/verify", "/close_session", "/solution", "/v1/responses")
LONGEST_DELAY_S = 0.2
HOP_BY_HOP = frozenset({b"host", b"content-length", b"connection", b"transfer-encoding"})


class FaultyProxy:
    """Hands requests on to one server.

    Args:
        target: Its base URL.
        share: Of the requests, so many meet with one of `FAULTS`.
        seed: Of the faults' order.
    """

    def __init__(self, target: str, share: float, seed: int) -> None:
        self.target, self.share = target, share
        self.met: Counter[str] = Counter()
        self.came: Counter[str] = Counter()
        self._chance = random.Random(seed)
        self._arrived = asyncio.Condition()
        self._http: aiohttp.ClientSession | None = None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        async with self._arrived:
            self.came[scope["path"]] += 1
            self._arrived.notify_all()
        fault = self._chance.choice(FAULTS) if self._chance.random() < self.share else "none"
        self.met[fault] += 1
        await self._answer(fault, scope, body, receive, send)

    async def until(self, path: str, times: int) -> None:
        """Wait until so many requests have come for a path."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: self.came[path] >= times)

    async def close(self) -> None:
        """Let go of the connections."""
        if self._http is not None:
            await self._http.close()

    async def _answer(self, fault: str, scope: dict[str, Any], body: bytes, receive: Receive, send: Send) -> None:
        if fault == "lose":
            return await _cut(send, b"")
        if fault == "delay":
            await asyncio.sleep(self._chance.uniform(0, LONGEST_DELAY_S))
        if fault == "double":
            await self._forward(scope, body, receive)
        answer = await self._forward(scope, body, receive)
        if answer is None:
            return await _cut(send, b"")
        status, headers, content = answer
        if fault == "cut":
            return await _cut(send, content[: len(content) // 2])
        if fault == "spoil":
            status, content = (200 if scope["path"] in CONTROL else 502), b"\x00<spoilt>" + content[:20]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        return await send({"type": "http.response.body", "body": content})

    async def _forward(
        self, scope: dict[str, Any], body: bytes, receive: Receive
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes] | None:
        """Status, headers and body of the server's answer; None when it gave none, or when nobody waits for it any more."""
        asking = asyncio.create_task(self._ask(scope, body))
        gone = asyncio.create_task(_gone(receive))
        await asyncio.wait({asking, gone}, return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        if not asking.done():
            asking.cancel()
        await asyncio.gather(asking, gone, return_exceptions=True)
        return None if asking.cancelled() else asking.result()

    async def _ask(self, scope: dict[str, Any], body: bytes) -> tuple[int, list[tuple[bytes, bytes]], bytes] | None:
        if self._http is None:
            self._http = aiohttp.ClientSession(auto_decompress=False, trust_env=False)
        path = scope["path"] + (f"?{scope['query_string'].decode()}" if scope["query_string"] else "")
        sent = [(key.decode(), value.decode()) for key, value in scope["headers"] if key not in HOP_BY_HOP]
        try:
            async with self._http.request(scope["method"], self.target + path, data=body, headers=sent) as answer:
                content = await answer.read()
        except (aiohttp.ClientError, OSError):
            return None
        kept = [(key.lower(), value) for key, value in answer.raw_headers if key.lower() not in HOP_BY_HOP]
        return answer.status, kept, content


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _cut(send: Send, content: bytes) -> None:
    """Begin an answer, and break the connection in the middle of it."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1000000")]})
    await send({"type": "http.response.body", "body": content, "more_body": True})
    raise ConnectionResetError("on purpose")
