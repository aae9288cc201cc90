"""An agent server whose rows say how it behaves, as a bare ASGI app: it needs no other server and no event loop of its own."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class ScriptedAgent:
    """Answers `/run` as the row's `does` says; a list means one word per attempt, the last one again and again.

    `ok` (reward from the row's `pays`), `slow` (answers when `release` is set), `pause`, `hang`, `poison` (takes everything that is in
    flight along), `busy` (503, then ok), `html`, `nan`, `text` (reward "1"), `400`, `502`, `torn` (half a line), `cut` (the
    connection breaks), or a failure kind.
    """

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []  # rows, in the order in which they came
        self.sessions: list[str] = []
        self.budgets: list[float] = []
        self.closed: list[str] = []
        self.release = asyncio.Event()
        self.in_flight = self.most_in_flight = 0
        self.came: Counter[str] = Counter()
        self.arrived = asyncio.Condition()
        self.given_up = 0
        self.crash = asyncio.Event()  # set: everything in flight loses its connection
        self.closes = True  # whether `/close_session` is answered
        self.closing = 0

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = await _body(receive)
        headers = dict(scope["headers"])
        if scope["path"] == "/close_session":
            async with self.arrived:
                self.closing += 1
                self.arrived.notify_all()
            if not self.closes:
                await _gone(receive)
                return
            self.closed.append(headers[b"x-session-id"].decode())
            await _answer(send, 200, b"{}")
        elif scope["path"] == "/run":
            await self._run(json.loads(body), headers, receive, send)
        else:
            await _answer(send, 200, b"{}")

    async def _run(self, row: dict[str, Any], headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        self.asked.append(row)
        self.sessions.append(headers[b"x-session-id"].decode())
        self.budgets.append(float(headers[b"x-budget-s"]))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        async with self.arrived:
            self.arrived.notify_all()
        gone = asyncio.create_task(_gone(receive))
        play = asyncio.create_task(self._play(row, send))
        crash = asyncio.create_task(self.crash.wait())
        try:
            await asyncio.wait({gone, play, crash}, return_when=asyncio.FIRST_COMPLETED)
            if crash.done() and not play.done():
                await _cut(send)
            elif not play.done():
                self.given_up += 1
        finally:
            self.in_flight -= 1
            for task in (gone, play, crash):
                task.cancel()
            await asyncio.gather(gone, play, crash, return_exceptions=True)

    async def until_asked(self, times: int) -> None:
        """Wait until so many rollouts have come."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.asked) >= times)

    async def until_closing(self, times: int) -> None:
        """Wait until so many sessions are to be closed."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: self.closing >= times)

    async def _play(self, row: dict[str, Any], send: Send) -> None:
        name = json.dumps(row, sort_keys=True)
        does = row.get("does", "ok")
        word = does if isinstance(does, str) else does[min(self.came[name], len(does) - 1)]
        self.came[name] += 1
        if word == "slow":
            await self.release.wait()
        elif word == "pause":
            await asyncio.sleep(0.05)
        elif word == "poison":
            self.crash.set()
            self.crash = asyncio.Event()
            await asyncio.Event().wait()
        elif word == "hang":
            await asyncio.Event().wait()
        if word == "busy" and self.came[name] == 1:
            await _answer(send, 503, b'{"error": {"message": "full"}}')
        elif word == "html":
            await _answer(send, 200, b"<html>")
        elif word == "400":
            await _answer(send, 400, b'{"error": {"message": "no such field"}}')
        elif word == "502":
            await _answer(send, 502, b"bad gateway")
        elif word == "torn":
            await _answer(send, 200, json.dumps(scored(row)).encode()[:-9])
        elif word == "cut":
            await _cut(send)
        elif word in ("ok", "slow", "pause", "busy", "nan", "text"):
            await _answer(send, 200, json.dumps(scored(row, word)).encode())
        else:
            await _answer(send, 200, json.dumps(failed(row, word)).encode())


def scored(row: dict[str, Any], word: str = "ok") -> dict[str, Any]:
    """A rollout line with a verdict."""
    reward: Any = {"nan": float("nan"), "text": "1"}.get(word, row.get("pays", 1.0))
    return {
        **row,
        "response": {
            "id": "r",
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}],
            "usage": {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25},
        },
        "reward": reward,
        "metrics": {"steps": 1},
        "outcome": row.get("ends", "completed"),
        "failure": None,
        "mask_sample": False,
        "steps": [
            {"model_s": 0.1, "tool_s": 0.05, "tokens": None, "calls": [{"name": "look", "s": 0.05, "status": "ok"}]}
        ],
        "environment_ref": {"name": "scripted", "version": "1"},
        "provenance": {"model": "m", "policy_version": row.get("version")},
    }


def failed(row: dict[str, Any], kind: str) -> dict[str, Any]:
    """A rollout line with a failure."""
    failure = {"kind": kind, "stage": "model", "message": f"{kind} on purpose", "retryable": True}
    return {**row, "response": None, "reward": None, "failure": failure, "mask_sample": True, "steps": []}


async def _body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _cut(send: Send) -> None:
    """Begin an answer and break the connection."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"100")]})
    await send({"type": "http.response.body", "body": b"{", "more_body": False})


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
