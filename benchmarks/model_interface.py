"""What one model call costs in the model interface at turn 10, 40 and 80 of a conversation, beside a bare pass-through of the same bytes.

    python benchmarks/model_interface.py [--conversations 300] [--modes text ids tokens]

CPU time is the server process's own clock, read before and after batches of calls that are all at the same turn; some calls before each
batch warm every server up alike. The pass-through is an ASGI function on uvicorn and a client in a process of its own: for each call it
sends the very bytes upstream that the model interface sent there, and answers with the bytes that the model interface answered. Its client
is aiohttp's (`bare`), or the model interface's own (`own`), which is the leaner floor.
Modes: `text` (backend chat), `ids` (vllm, whole prompts in chat, the ids that come back checked against those before) and `tokens` (vllm,
later steps sent as ids through /v1/completions).
Goals: in all a call costs at most 1.5 times `bare`; with ids what is beside it grows at most 1.5 times from turn 10 to turn 80.
"""

import argparse
import asyncio
import base64
import contextlib
import itertools
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import uvloop
from yarl import URL

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import bare
from benchmarks.bare import answer, body_of
from model_interface.app import model_interface
from model_interface.settings import ModelInterfaceSettings
from rollouts.child import environment
from wire import http
from wire.child import calm_collector, server_for
from wire.testing.upstream import TC, Upstream

TURNS = (10, 40, 80)
CONVERSATIONS = 300
BATCHES = 10  # of one measurement: ours, then the pass-throughs; medians of them count, and of the batches' own ratios and differences
WARM = 8  # calls at the same turn before each batch
AT_ONCE = 8  # calls in flight in a batch
OUTPUT = json.dumps({"city": "Paris", "forecast": [{"day": day, "weather": "sunny", "high": 20} for day in range(4)]})
TOOL = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of the next days in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
MODES: dict[str, dict[str, Any]] = {
    "text": {"backend": "chat", "token_ids": "off"},
    "ids": {"backend": "vllm"},
    "tokens": {"backend": "vllm"},
}


@dataclass
class Cost:
    """Of one call at one turn: CPU microseconds of the server process in each batch."""

    ours: list[float]
    bare: list[float]
    own: list[float]
    in_bytes: int  # from the caller
    up_bytes: int  # to the upstream, every request of the call

    def times(self, floor: list[float]) -> float:
        """How many times as much as a pass-through in the same batch."""
        return statistics.median(ours / passed for ours, passed in zip(self.ours, floor, strict=True))

    def beside(self, floor: list[float]) -> float:
        """What a call costs beside a pass-through in the same batch."""
        return statistics.median(ours - passed for ours, passed in zip(self.ours, floor, strict=True))


def turn_answer(number: int) -> dict[str, Any]:
    """What the model says at a turn: always another call."""
    return TC((f"call_{number}", "get_weather", json.dumps({"city": f"City{number}"})))


class Recorder:
    """The stub upstream, with the requests of one turn written down on request."""

    def __init__(self, mode: str) -> None:
        self.upstream = Upstream(turns=[turn_answer(number) for number in range(max(TURNS) + 2)])
        self.detokenizes = mode == "tokens"
        self.heard: list[tuple[str, bytes, bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == "/heard":
            found = [[path, base64.b64encode(body).decode()] for path, body, _ in self.heard]
            self.heard.clear()
            self.upstream.received.clear()
            await answer(send, json.dumps(found).encode())
            return
        body = await body_of(receive)
        if len(self.heard) < 8:
            self.heard.append((scope["path"], body, b""))
        if scope["path"] == "/detokenize" and not self.detokenizes:
            body = b'{"tokens":[]}'  # so that our parser is found to differ, and chat is kept to

        async def again() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        await self.upstream(scope, again, send)


class Bare:
    """The pass-through: the recorded bytes of each turn, over aiohttp or (`own`) over the client that the model interface itself uses.

    Each call sends a copy of its own, as each conversation has its own bytes: what lies in the processor's cache is no cheaper here.
    """

    def __init__(self, upstream: str, trace: Path, *, own: bool) -> None:
        self.upstream, self.own = upstream, own
        self.turns = {turn: itertools.cycle(_copies(each)) for turn, each in json.loads(trace.read_text()).items()}
        self.http: aiohttp.ClientSession | None = None
        self.pool = http.Pool(connections=1024, connect_s=5.0, keep_alive_s=4.0)
        self.heads: dict[str, tuple[http.Origin, str]] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        await body_of(receive)
        calls, said = next(self.turns[dict(scope["headers"])[b"x-step"].decode()])
        for path, body in calls:
            await (self._by_ours(path, body) if self.own else self._by_aiohttp(path, body))
        await answer(send, said)

    async def _by_aiohttp(self, path: str, body: bytes) -> None:
        if self.http is None:
            connector = aiohttp.TCPConnector(limit=0)
            self.http = aiohttp.ClientSession(connector=connector, headers={"content-type": "application/json"})
        async with self.http.post(self.upstream + path, data=body) as reply:
            await reply.read()

    async def _by_ours(self, path: str, body: bytes) -> None:
        if path not in self.heads:
            url = URL(self.upstream + path)
            self.heads[path] = http.Origin.of(url), http.head("POST", url, {"content-type": "application/json"})
        origin, head = self.heads[path]
        await self.pool.call(origin, head, body, 60.0)


def _copies(turn: dict[str, Any]) -> list[tuple[list[tuple[str, bytes]], bytes]]:
    said = base64.b64decode(turn["answer"])
    return [([(path, base64.b64decode(body)) for path, body in turn["up"]], said) for _ in range(CONVERSATIONS)]


def with_clock(app: Any) -> Any:
    """The app, and `GET /cpu`: CPU seconds of this process."""

    async def clocked(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/cpu":
            await answer(send, repr(time.process_time()).encode())
        else:
            await app(scope, receive, send)

    return clocked


def serve(role: str, upstream: str, extra: str) -> None:
    """Serve one role in this process until standard input ends."""
    if role == "stub":
        app: Any = Recorder(extra)
    elif role in ("bare", "own"):
        app = Bare(upstream, Path(extra), own=role == "own")
    else:
        app = model_interface(ModelInterfaceSettings(base_url=upstream, model="m", **MODES[extra]))
    calm_collector()
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    bound.listen(1024)
    print(f"http://127.0.0.1:{bound.getsockname()[1]}", flush=True)
    app = with_clock(app)
    uvloop.run(_interface(app, bound) if role == "interface" else bare.serve(app, bound))


async def _interface(app: Any, bound: socket.socket) -> None:
    """As our own launcher serves it."""
    server = server_for(app)
    asyncio.get_running_loop().run_in_executor(None, sys.stdin.read).add_done_callback(
        lambda _: setattr(server, "should_exit", True)
    )
    await server.serve(sockets=[bound])


@contextlib.contextmanager
def process(role: str, upstream: str, extra: str) -> Iterator[str]:
    """A role in a process of its own; yields its URL."""
    command = [sys.executable, "-m", "benchmarks.model_interface", "--serve", role, upstream, extra]
    env = environment("model_interface") if role == "interface" else None
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    assert child.stdout is not None and child.stdin is not None
    try:
        yield child.stdout.readline().strip()
    finally:
        child.stdin.close()
        child.wait(10)


class Driver:
    """Plays conversations as the agent does, all at the same turn."""

    def __init__(self, http: aiohttp.ClientSession, interface: str, stub: str, count: int) -> None:
        self.http, self.interface, self.stub = http, interface, stub
        self.previous: list[Any] = [None] * count
        self.in_bytes = 0
        self.said = b""

    async def turn(self) -> None:
        """One more call in every conversation."""
        await self._calls(range(len(self.previous)))

    async def measured(self, conversations: range) -> float:
        """The same in some of them, the first to warm up; CPU microseconds of a call."""
        await self._calls(conversations[:WARM])
        began = await _cpu(self.http, self.interface)
        await self._calls(conversations[WARM:])
        return (await _cpu(self.http, self.interface) - began) / len(conversations[WARM:]) * 1e6

    async def _calls(self, indices: Iterable[int]) -> None:
        gate = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(self._step(index, gate) for index in indices))

    async def _step(self, index: int, gate: asyncio.Semaphore) -> None:
        before, headers = self.previous[index], {"content-type": "application/json", "x-session-id": f"{index:032d}"}
        if before is None:
            body: Any = {"input": "What is the weather like, everywhere?", "tools": [TOOL]}
        else:
            call_id = before["output"][-1]["call_id"]
            new = {"type": "function_call_output", "call_id": call_id, "output": OUTPUT}
            body, headers = {"previous_response_id": before["id"], "input": [new]}, headers | {"x-inherit-params": "1"}
        sent = json.dumps(body).encode()
        async with gate, self.http.post(f"{self.interface}/v1/responses", data=sent, headers=headers) as reply:
            self.said = await reply.read()
            assert reply.status == 200, self.said[:300]
        self.previous[index], self.in_bytes = json.loads(self.said), len(sent)

    async def heard(self) -> list[list[str]]:
        """What the stub was sent since it was asked last."""
        async with self.http.get(f"{self.stub}/heard") as reply:
            return json.loads(await reply.read())  # type: ignore[no-any-return]


async def measure(mode: str, count: int) -> dict[int, Cost]:
    """Turn -> cost in the model interface, in the pass-through over aiohttp, and in the one over our own client.

    Their batches alternate, so that a machine that is slower for a while is so for all.
    """
    found: dict[int, Cost] = {}
    with process("stub", "-", mode) as stub, process("interface", stub, mode) as interface:
        async with aiohttp.ClientSession() as session:
            trace = await _record(session, interface, stub)
            with (
                _trace_file(trace) as path,
                process("bare", stub, path) as floor,
                process("own", stub, path) as own,
            ):
                driver = Driver(session, interface, stub, count)
                for turn in range(1, max(TURNS) + 1):
                    if turn not in TURNS:
                        await driver.turn()
                        continue
                    up_bytes = sum(len(base64.b64decode(body)) for _, body in trace[str(turn)]["up"])
                    body, size = b"x" * driver.in_bytes, count // BATCHES
                    cost = found[turn] = Cost([], [], [], driver.in_bytes, up_bytes)
                    for number in range(BATCHES):
                        cost.ours.append(await driver.measured(range(number * size, (number + 1) * size)))
                        cost.bare.append(await _passed(session, floor, turn, body, size - WARM))
                        cost.own.append(await _passed(session, own, turn, body, size - WARM))
    return found


async def _record(session: Any, interface: str, stub: str) -> dict[str, Any]:
    """Play one conversation alone, and write down what goes upstream and what is answered at the turns that are measured."""
    driver, trace = Driver(session, interface, stub, 1), {}
    for turn in range(1, max(TURNS) + 1):
        await driver.heard()
        await driver.turn()
        if turn in TURNS:
            trace[str(turn)] = {"answer": base64.b64encode(driver.said).decode(), "up": await driver.heard()}
    return trace


@contextlib.contextmanager
def _trace_file(trace: dict[str, Any]) -> Iterator[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(json.dumps(trace))
        file.flush()
        yield file.name


async def _passed(session: Any, url: str, turn: int, body: bytes, count: int) -> float:
    """CPU microseconds of one call through a pass-through, which is warm."""
    await _batch(session, url, turn, body, WARM)
    began = await _cpu(session, url)
    await _batch(session, url, turn, body, count)
    return (await _cpu(session, url) - began) / count * 1e6


async def _batch(session: Any, url: str, turn: int, body: bytes, count: int) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one() -> None:
        async with gate, session.post(f"{url}/v1/responses", data=body, headers={"x-step": str(turn)}) as reply:
            await reply.read()

    await asyncio.gather(*(one() for _ in range(count)))


async def _cpu(session: Any, url: str) -> float:
    async with session.get(f"{url}/cpu") as reply:
        return float(await reply.text())


def report(mode: str, costs: dict[int, Cost]) -> None:
    """One mode's table."""
    print(
        f"\n{mode}\n{'turn':>5} {'interface':>10} {'bare':>8} {'times':>6} {'own':>8} {'times':>6} {'in B':>7} {'up B':>8}"
    )
    for turn, cost in costs.items():
        ours, bare, own = (statistics.median(each) for each in (cost.ours, cost.bare, cost.own))
        print(
            f"{turn:>5} {ours:>8.0f}us {bare:>6.0f}us {cost.times(cost.bare):>6.2f} {own:>6.0f}us "
            f"{cost.times(cost.own):>6.2f} {cost.in_bytes:>7} {cost.up_bytes:>8}"
        )
    first, last = costs[TURNS[0]], costs[TURNS[-1]]
    for name in ("bare", "own"):
        small, large = first.beside(getattr(first, name)), last.beside(getattr(last, name))
        print(
            f"beside `{name}`: turn {TURNS[0]} {small:.0f}us, turn {TURNS[-1]} {large:.0f}us, {large / small:.2f} times"
        )


def main() -> None:
    """Measure every mode and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS)
    parser.add_argument("--modes", nargs="*", default=list(MODES), choices=list(MODES))
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.conversations % BATCHES or options.conversations // BATCHES <= WARM:
        parser.error(
            f"--conversations is {options.conversations}; it takes {BATCHES} batches of more than {WARM}, all of one size"
        )
    if options.serve:
        serve(*options.serve)
        return
    for mode in options.modes:
        report(mode, uvloop.run(measure(mode, options.conversations)))


if __name__ == "__main__":
    main()
