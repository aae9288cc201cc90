"""What a tool step costs: our three servers against the same hops and bytes through servers that do nothing.

    python benchmarks/step.py                  # 4 and 40 steps
    python benchmarks/step.py --steps 10 --rollouts 200 --json

A stub model answers at once. First one rollout is recorded (every request and answer, byte for byte); then the real stack and *the floor*
are run in turn, each server a process of its own. The floor is bare ASGI apps and aiohttp, on the same event loop and HTTP parser, that
send the recorded bytes along the same hops; a second, leaner floor does so over the client that our servers use. CPU time is summed over
all processes, the stub's and the driver's included, in each.
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import bare  # noqa: E402 - after the path is set, so that the script runs from anywhere
from rollouts.child import environment  # noqa: E402
from wire import config  # noqa: E402
from wire.testing import one_server  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
ROW = {
    "responses_create_params": {"input": "Bring the counter to its goal."},
    "initial_count": 0,
    "expected_count": 0,
}
OVERRIDES = {
    "auth": "none",
    "model_interface": {"backend": "chat", "model": "stub", "api_key": "none", "attempts": 1},
    "resources_server": {"environment": "counter"},
}


def cpu_s(pids: Sequence[int]) -> float:
    """User and system seconds that processes have used so far."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def bound_socket() -> socket.socket:
    """A listening address that a child inherits."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", 0))
    return bound


@asynccontextmanager
async def child(
    command: list[str], start: dict[str, Any], bound: socket.socket, env: Mapping[str, str] = os.environ
) -> AsyncIterator[int]:
    """A server process that is told everything by one line on its standard input; yields its pid."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=subprocess.PIPE,
        pass_fds=(bound.fileno(),),
        cwd=ROOT,
        env={**env, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(start | {"fd": bound.fileno()}).encode() + b"\n")
    await process.stdin.drain()
    await healthy(url_of(bound))
    try:
        yield process.pid
    finally:
        process.stdin.close()
        await process.wait()


def url_of(bound: socket.socket) -> str:
    return f"http://127.0.0.1:{bound.getsockname()[1]}"


async def healthy(url: str) -> None:
    """Wait until a server answers; 20 seconds at most."""
    async with asyncio.timeout(20), aiohttp.ClientSession() as http:
        while True:
            try:
                async with http.get(url + "/health") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                await asyncio.sleep(0.02)


@asynccontextmanager
async def our_stack(steps: int, upstream: str) -> AsyncIterator[tuple[str, list[int]]]:
    """The three servers as processes; yields the agent's URL and the pids."""
    sockets = {name: bound_socket() for name in ("model_interface", "resources_server", "agent_server")}
    urls = {name: url_of(each) for name, each in sockets.items()}
    settings = settings_for(steps, upstream)
    async with AsyncExitStack() as stack:
        pids = []
        for name, bound in sockets.items():
            start = {"room": name, "name": name, "source": "benchmark", "config": settings, "urls": urls, "token": None}
            command = [sys.executable, "-m", "wire.child"]
            pids.append(await stack.enter_async_context(child(command, start, bound, environment(name))))
        yield urls["agent_server"], pids


def settings_for(steps: int, upstream: str) -> dict[str, Any]:
    """The resolved config of the stack."""
    merged = {**OVERRIDES, "agent_server": {"max_steps": steps + 1}}
    return merged | {"model_interface": {**OVERRIDES["model_interface"], "base_url": f"{upstream}/v1"}}  # type: ignore[dict-item]


@asynccontextmanager
async def floor_stack(trace: Path, upstream: str, *, own: bool) -> AsyncIterator[tuple[str, list[int]]]:
    """Three bare servers that replay the recorded bytes, over aiohttp or our `own` client."""
    sockets = {name: bound_socket() for name in ("model_interface", "resources_server", "agent_server")}
    urls = {name: url_of(each) for name, each in sockets.items()} | {"upstream": upstream}
    async with AsyncExitStack() as stack:
        pids = []
        for name, bound in sockets.items():
            start = {"role": name, "urls": urls, "trace": str(trace), "own": own}
            pids.append(await stack.enter_async_context(child([sys.executable, "-m", "benchmarks.bare"], start, bound)))
        yield urls["agent_server"], pids


@asynccontextmanager
async def stub_model(steps: int) -> AsyncIterator[tuple[str, int]]:
    """The model: one tool call a step, then a text, at once. Yields its URL and pid."""
    bound = bound_socket()
    async with child([sys.executable, "-m", "benchmarks.bare"], {"role": "stub", "steps": steps}, bound) as pid:
        yield url_of(bound), pid


async def drive(agent_url: str, rollouts: int, concurrency: int, row: bytes) -> None:
    """Post rows to `/run`, so many at a time; every answer must be a scored line."""
    gate = asyncio.Semaphore(concurrency)

    async def one(http: aiohttp.ClientSession) -> None:
        async with (
            gate,
            http.post(agent_url + "/run", data=row, headers={"content-type": "application/json"}) as answer,
        ):
            body = await answer.read()
            if answer.status != 200 or b'"reward":1.0' not in body:
                raise RuntimeError(f"/run answered {answer.status}: {body[:500]!r}")

    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as http,
        asyncio.TaskGroup() as tasks,
    ):
        for _ in range(rollouts):
            tasks.create_task(one(http))


async def measure(agent_url: str, pids: list[int], rollouts: int, concurrency: int, row: bytes) -> dict[str, float]:
    """CPU and wall time of one batch, after a warm-up."""
    everyone = [*pids, os.getpid()]
    await drive(agent_url, min(rollouts, 2 * concurrency), concurrency, row)
    cpu, began = cpu_s(everyone), time.perf_counter()
    await drive(agent_url, rollouts, concurrency, row)
    return {"cpu_s": cpu_s(everyone) - cpu, "wall_s": time.perf_counter() - began}


async def record(steps: int, row: bytes, path: Path) -> None:
    """Play one rollout through the real servers in this process and write down every exchange."""
    from importlib import import_module

    taps: dict[str, list[bare.Exchange]] = {
        name: [] for name in ("model_interface", "resources_server", "agent_server", "stub")
    }
    urls: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        urls["upstream"] = await stack.enter_async_context(one_server(bare.tapped(bare.stub(steps), taps["stub"])))
        loaded = config.Config("benchmark", settings_for(steps, urls["upstream"]))
        for name in ("model_interface", "resources_server", "agent_server"):
            app = import_module(f"{name}.app").build(loaded, urls, None, name)
            urls[name] = await stack.enter_async_context(one_server(bare.tapped(app, taps[name])))
        await drive(urls["agent_server"], 1, 1, row)
    path.write_bytes(orjson.dumps({name: [each.as_json() for each in taps[name]] for name in taps}))


async def compare(steps: int, rollouts: int, concurrency: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Ours and the floor in turn, `rounds` times; medians."""
    row = orjson.dumps(ROW | {"expected_count": steps})
    trace = folder / f"trace_{steps}.json"
    await record(steps, row, trace)
    ours, floors, leanest = [], [], []
    async with stub_model(steps) as (upstream, stub_pid):
        for _ in range(rounds):
            async with our_stack(steps, upstream) as (url, pids):
                ours.append(await measure(url, [*pids, stub_pid], rollouts, concurrency, row))
            for own, floor in ((False, floors), (True, leanest)):
                async with floor_stack(trace, upstream, own=own) as (url, pids):
                    floor.append(await measure(url, [*pids, stub_pid], rollouts, concurrency, row))
    per_step = 1000 / (rollouts * steps)
    return {
        "steps": steps,
        "rollouts": rollouts,
        "concurrency": concurrency,
        "ours_ms_per_step": statistics.median(each["cpu_s"] for each in ours) * per_step,
        "floor_ms_per_step": statistics.median(each["cpu_s"] for each in floors) * per_step,
        "ratio": statistics.median(a["cpu_s"] / b["cpu_s"] for a, b in zip(ours, floors, strict=True)),
        "own_client_floor_ms_per_step": statistics.median(each["cpu_s"] for each in leanest) * per_step,
        "own_client_ratio": statistics.median(a["cpu_s"] / b["cpu_s"] for a, b in zip(ours, leanest, strict=True)),
        "ours_rollouts_per_s": rollouts / statistics.median(each["wall_s"] for each in ours),
        "floor_rollouts_per_s": rollouts / statistics.median(each["wall_s"] for each in floors),
    }


def main() -> None:
    """Print a table, or JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, nargs="+", default=[4, 40], help="tool steps in a rollout")
    parser.add_argument("--tool-steps", type=int, default=2000, help="tool steps in a batch, all rollouts together")
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for steps in given.steps:
            rollouts = max(given.concurrency, given.tool_steps // steps)
            result = asyncio.run(compare(steps, rollouts, given.concurrency, given.rounds, Path(folder)))
            print(json.dumps(result) if given.json else line_of(result))


def line_of(result: dict[str, Any]) -> str:
    """One row of the table."""
    return (
        f"{result['steps']:>3} steps: ours {result['ours_ms_per_step']:.2f} ms CPU per step, "
        f"floor {result['floor_ms_per_step']:.2f} ms, ratio {result['ratio']:.2f} "
        f"(over our client {result['own_client_floor_ms_per_step']:.2f} ms, {result['own_client_ratio']:.2f}); "
        f"{result['ours_rollouts_per_s']:.0f} against {result['floor_rollouts_per_s']:.0f} rollouts/s"
    )


if __name__ == "__main__":
    main()
