"""Verdicts in processes that can be killed."""

import asyncio
import os
import time
from typing import Any

import pytest

from resources_server import Environment, Task
from resources_server.app import app_for
from resources_server.environments.counter import Counter
from resources_server.settings import ResourcesServerSettings
from tests.resources_server.conftest import Serve
from tests.resources_server.isolated_world import Line
from wire.errors import UsageError


def said(text: str) -> dict[str, Any]:
    return {"response": {"output": [{"type": "message", "role": "assistant", "content": text}]}}


async def test_a_verdict_from_another_process(serve: Serve) -> None:
    """With the world's state, its accepted calls and the config's options; what an author prints is in nobody's way."""
    async with serve(Line, options={"bonus": 0.5}) as world:
        pids = set()
        for session in "ab":
            await world.post("/seed_session", {"pattern": "b+"}, session)
            for line in ("a", "bb"):
                await world.post("/add", {"line": line}, session)
            done = (await world.post("/verify", {"pattern": "b+", **said("")}, session)).json
            assert (done["reward"], done["metrics"]["calls"]) == (1.5, 2.0)
            assert done["state"] == {"lines": ["a", "bb"]} and len(done["accepted_calls"]) == 2
            pids.add(done["metrics"]["pid"])
        assert len(pids) == 1 and os.getpid() not in pids  # kept warm


async def test_a_verdict_that_never_ends_is_ended(serve: Serve) -> None:
    """A regular expression with exponential time: `verifier_timeout`, its process is gone, the next verdict is given."""
    row = {"pattern": "(a+)+b"}
    async with serve(Line, verify_timeout_s=2, verify_processes=1) as world:
        await world.post("/seed_session", row)
        await world.post("/add", {"line": "a" * 60})
        began = time.monotonic()
        reply = await world.post("/verify", {**row, **said("")})
        assert (reply.status, reply.json["error"]["code"]) == (504, "verifier_timeout")
        assert time.monotonic() - began < 4
        await world.post("/seed_session", {}, "next")
        assert (await world.post("/verify", said(""), "next")).json["reward"] == 0.0


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        ("raise", "verifier_error", "Line.verify raised KeyError: 'answer'"),
        ("judge", "judge_unavailable", "the judge answered 503"),
        ("text", "invalid_reward", "verify gave '1.0'"),
        ("die", "verifier_error", "ended by itself (exit code 3)"),
    ],
)
async def test_failures_come_through(serve: Serve, answer: str, code: str, message: str) -> None:
    """As they would from the server's own process."""
    async with serve(Line) as world:
        await world.post("/seed_session", {})
        reply = await world.post("/verify", said(answer))
        assert reply.json["error"]["code"] == code and message in reply.json["error"]["message"]


async def test_any_environment_by_setting(serve: Serve) -> None:
    """`verify_in_process`; several at once, over few processes."""
    async with serve(Counter, verify_in_process=True, verify_processes=2) as world:
        for number in range(6):
            await world.post("/seed_session", {"initial_count": 1, "expected_count": 1}, f"s{number}")
        verdicts = [world.post("/verify", said(""), f"s{number}") for number in range(6)]
        assert [reply.json["reward"] for reply in await asyncio.gather(*verdicts)] == [1.0] * 6


async def test_a_class_that_no_one_else_can_find_is_refused() -> None:
    """At start, naming it."""

    class Local(Environment[Task]):
        pass

    with pytest.raises(UsageError, match="Local: verify in a process needs a class at the top of an importable module"):
        app_for(Local, ResourcesServerSettings(verify_in_process=True))
