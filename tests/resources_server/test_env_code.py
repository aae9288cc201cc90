"""The environment `code`: hidden tests in a sandbox, and a tool that is attacked while the server goes on answering."""

import asyncio
import contextlib
import json
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from resources_server import Response, Verdict
from resources_server.environments.code import Code
from resources_server.sandbox import choice
from tests.stack import run, stack
from wire import jsonl
from wire.errors import UsageError
from wire.testing import serving
from wire.testing.upstream import MSG, TC, Upstream

DATA = Path(__file__).parents[2] / "data" / "code"
DOUBLE = {"tests": [{"call": "double", "args": [n], "expected": 2 * n} for n in (0, 3, -7)]}
ATTACKS = [
    "print(().__class__.__base__.__subclasses__())",
    "print(dict(__import__('os').environ))",
    "print(open('/etc/passwd').read())",
    "import urllib.request as u; print(u.urlopen('{resources_server}/verify').read())",
    "while True: pass",
    "x = 'a' * 10**11",
    "import os\nfor _ in range(9999): os.fork()",
    "while True: print('x' * 10**6)",
    "import os, signal; os.kill(os.getppid(), signal.SIGKILL); os.kill(-1, signal.SIGKILL)",
]


def said(text: str) -> Response:
    return Response(output=[{"type": "message", "role": "assistant", "content": text}])


async def verdict(text: str, row: dict[str, Any] = DOUBLE, **options: Any) -> Verdict:
    return await Code.bound(options).of_row(row).verify(said(text))


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        ("```python\ndef double(n):\n    return 2 * n\n```", 1.0),
        ("First\n```python\nbroken(\n```\nno, rather\n```py\ndouble = lambda n: n + n\n```\nDone.", 1.0),
        ("def double(n): return n + n", 1.0),
        ("```python\ndef double(n):\n    return n * n\n```", 0.0),
        ("```python\nimport sys; sys.exit(0)\n```", 0.0),
        ("```python\nclass Yes:\n    def __eq__(self, other): return True\ndef double(n): return Yes()\n```", 0.0),
        ("", 0.0),
        ("I cannot.", 0.0),
    ],
)
async def test_the_last_block_is_judged_by_the_hidden_tests(text: str, reward: float) -> None:
    """Prose around it does not matter, nor can a program pass by ending early or by being equal to everything."""
    assert (await verdict(text)).reward == reward


async def test_a_share_of_the_tests_pays_where_config_says_so() -> None:
    """Right for 0 and for 3 only."""
    found = await verdict("def double(n): return abs(2 * n)", score="share")
    assert (found.reward, found.metrics["passed"]) == (2 / 3, 2 / 3)


def test_there_are_150_problems_and_the_held_out_ones_are_of_other_templates() -> None:
    """No statement is there twice; no row's example is a hidden test."""
    train, held = ([row for _, row in jsonl.read(DATA / f"{name}.jsonl")] for name in ("train", "validation"))
    assert len({row["responses_create_params"]["input"] for row in train + held}) == 150
    assert not {row["template"] for row in train} & {row["template"] for row in held}
    for row in train + held:
        _, _, shown = row["responses_create_params"]["input"].partition("For example, ")
        calls = [f"{test['call']}({', '.join(map(repr, test['args']))})" for test in row["tests"] if "call" in test]
        assert not any(call in shown for call in calls), row["task_id"]


def test_without_walls_the_server_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what is lacking; nothing runs unprotected instead."""
    monkeypatch.setattr(choice, "MAKERS", {})
    with pytest.raises(UsageError, match="no untrusted code is run"):
        _ = Code.bound().shared


async def test_attacks_through_the_tool_reach_nothing_and_hold_up_nobody() -> None:
    """H05: eight rollouts at once attack by the tool; each is told an error text or harmless output, and /health stays quick."""
    async with (
        serving(up=(upstream := Upstream([]))) as up,
        stack(up["up"], resources_server={"environment": "code", "options": {"cpu_s": 1}}) as urls,
    ):
        programs = [each.replace("{resources_server}", urls["resources_server"]) for each in ATTACKS]
        upstream.turns = [
            TC(*((f"c{n}", "run_python", json.dumps({"program": each})) for n, each in enumerate(programs))),
            MSG("```python\ndouble = lambda n: 2 * n\n```"),
        ]
        row = {"responses_create_params": {"input": "Double."}, **DOUBLE}
        async with polled(urls["resources_server"]) as waits:
            lines = await asyncio.gather(*(run(urls, row) for _ in range(4)))
    for line in lines:
        assert (line["failure"], line["reward"], line["outcome"]) == (None, 1.0, "completed")
        told = [item["output"] for item in line["response"]["output"] if item["type"] == "function_call_output"]
        assert "TRIVIUM" not in told[1] and "VIRTUAL_ENV" not in told[1]
        busy = "over the limit on time"  # what a crowded machine makes of any of them
        assert any(each in told[2] for each in ("No such file", "Permission", busy))
        assert any(each in told[3] for each in ("URLError", busy))
        assert "over the limit" in told[4]
        assert "MemoryError" in told[5] or "over the limit" in told[5]
        assert "BlockingIOError" in told[6] or "over the limit" in told[6], told[6]
        assert "over the limit on output" in told[7]
        assert all(call["s"] < 20 for call in line["steps"][0]["calls"])
    assert len(waits) > 10
    assert sorted(waits)[int(0.99 * len(waits))] < 0.5


@contextlib.asynccontextmanager
async def polled(url: str) -> Any:
    """How long /health took, again and again, while the block runs."""
    waits: list[float] = []

    async def ask() -> None:
        async with aiohttp.ClientSession() as http:
            while True:
                began = time.perf_counter()
                async with http.get(f"{url}/health") as answer:
                    assert answer.status == 200
                    await answer.read()
                waits.append(time.perf_counter() - began)
                await asyncio.sleep(0.02)

    asking = asyncio.create_task(ask())
    try:
        yield waits
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def test_a_sandbox_that_is_lost_is_no_grade() -> None:
    """E05: nothing was measured, so the line has a failure that may be retried, and no reward."""
    world = {"environment": "tests.resources_server.test_env_code:Lost"}
    upstream = Upstream([MSG("double = lambda n: 2 * n")])
    async with serving(up=upstream) as up, stack(up["up"], resources_server=world) as urls:
        line = await run(urls, {"responses_create_params": {"input": "Double."}, **DOUBLE})
    assert (line["failure"]["kind"], line["reward"], line["mask_sample"]) == ("sandbox_lost", None, True)
    assert line["response"] is not None


class Lost(Code):
    """Its sandbox is closed behind its back."""

    async def verify(self, response: Response) -> Verdict:
        async def killed(sandbox: Any) -> None:
            session = await sandbox.session()
            await session.close()
            await session.run("print(1)")

        await self.shared.run(killed)
        return await super().verify(response)


async def test_a_row_without_usable_tests_is_no_zero() -> None:
    """E05: the row's fault is the verifier's error, whatever the model answered."""
    upstream = Upstream([MSG("double = lambda n: 2 * n")])
    async with serving(up=upstream) as up, stack(up["up"], resources_server={"environment": "code"}) as urls:
        line = await run(urls, {"responses_create_params": {"input": "Double."}, "tests": ["assert double(1 =="]})
    assert (line["failure"]["kind"], line["reward"]) == ("verifier_error", None)
