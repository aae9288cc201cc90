"""How a rollout ends without a verdict: the kind says on whose side it was, and nothing becomes a reward of 0."""

import asyncio
from typing import Any

import pytest

from agent_server.failures import no_answer
from tests.agent_server.stage import LOST, Answer, Counter, Model, Sent, call, stage, text
from wire.client import CallError, ConnectionLost, Unreachable
from wire.deadline import Deadline
from wire.testing import free_port, one_server


async def never(request: Sent) -> Answer:
    """No answer within any test's budget."""
    await asyncio.Event().wait()
    raise AssertionError("nothing sets the event")


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        ((429, {"error": {"message": "slow down", "code": "rate_limited"}}), "rate_limited"),
        ((504, {"error": {"message": "no answer", "code": "model_timeout"}}), "model_timeout"),
        ((502, {"error": {"message": "no route", "code": "model_unreachable"}}), "model_unreachable"),
        ((400, {"error": {"message": "bad field"}}), "model_refused"),
        ((404, b'\x00"error":{"message":"previous response is not held here"}}'), "model_invalid_response"),
        ((500, b"<html>oops</html>"), "model_error"),
        ((200, b"<html>hi</html>"), "model_invalid_response"),
        ((200, b""), "model_invalid_response"),
        ((200, {"id": "r"}), "model_invalid_response"),
        ((200, {"id": "r", "output": [3]}), "model_invalid_response"),
        ((200, {"output": [], "status": "failed", "error": {"message": "overloaded"}}), "model_error"),
    ],
)
async def test_a_model_that_fails(turn: Any, kind: str) -> None:
    """The kind is the one the model interface names, else one by status; verify is not asked."""
    async with stage(turn) as on:
        line = await on.run()
        assert not on.world.to("/verify")
        assert len(on.model.sent) == 1
    assert line["failure"]["kind"] == kind
    assert (line["reward"], line["outcome"]) == (None, None)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((500, {"error": {"message": "KeyError: 'x'", "code": "environment_error"}}), "environment_error"),
        ((500, b"Internal Server Error"), "environment_error"),
        ((500, {"error": {"message": "gone", "code": "sandbox_lost"}}), "sandbox_lost"),
        ((410, {"error": {"message": "expired", "code": "gone"}}), "session_lost"),
        ((401, {"error": {"message": "no session", "code": "unauthorized"}}), "session_lost"),
        ((503, {"error": {"message": "full", "code": "overloaded"}}), "tool_unreachable"),
        ((504, b""), "tool_timeout"),
        ((404, {"error": {"message": "no such route", "code": "not_found"}}), "environment_error"),
        ((404, {"detail": "Not Found"}), "environment_error"),
    ],
)
async def test_a_tool_whose_side_fails(answer: Any, kind: str) -> None:
    """The world raised, or is gone: the rollout has no verdict, the calls after it are not made, and their records say so."""
    async with stage([call("echo"), call("increment")], world=Counter(on={"/echo": answer})) as on:
        line = await on.run()
        assert [each.path for each in on.world.calls] == ["/echo"]
        assert not on.world.to("/verify")
    assert line["failure"]["kind"] == kind
    assert [each["status"] for each in line["steps"][0]["calls"]] == [kind, "cut_off"]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((500, {"error": {"message": "KeyError", "code": "verifier_error"}}), "verifier_error"),
        ((503, {"error": {"message": "judge", "code": "judge_unavailable"}}), "judge_unavailable"),
        ((410, {"error": {"message": "expired", "code": "gone"}}), "session_lost"),
        ((500, b"oops"), "verifier_error"),
        ((503, {"error": {"message": "full", "code": "overloaded"}}), "session_lost"),
        ((502, b"<html>bad gateway"), "session_lost"),
        ((200, b"oops"), "verifier_error"),
        ((200, {"reward": True}), "invalid_reward"),
        ((200, {"reward": "1"}), "invalid_reward"),
        ((200, {"reward": None}), "invalid_reward"),
        ((200, {}), "invalid_reward"),
        ((200, b'{"reward": NaN}'), "invalid_reward"),
        ((200, b'{"reward": 1e999}'), "invalid_reward"),
        ((200, {"reward": 0.0, "mask_sample": True, "failure_kind": "judge_failed"}), "judge_unavailable"),
        ((200, {"reward": 0.0, "mask_sample": True, "failure_kind": "mine:odd"}), "verifier_error"),
        ((200, {"reward": 0.0, "_ng_failure_class": "judge_failed"}), "judge_unavailable"),
    ],
)
async def test_a_verifier_that_fails(answer: Any, kind: str) -> None:
    """No verdict is not a verdict of 0."""
    async with stage(world=Counter(on={"/verify": answer})) as on:
        line = await on.run()
    assert (line["failure"]["kind"], line["reward"], line["mask_sample"]) == (kind, None, True)
    assert line["response"]["output"] == [text("done")]


async def test_a_verdict_that_broke_on_its_way_is_asked_for_again() -> None:
    """It is given from memory, as after a lost reply; nobody is told that the verifier failed."""
    broken = [(200, b"\x00{"), (200, b'{"reward": 1')]

    def verify(request: Sent) -> Any:
        return broken.pop() if broken else (200, {**request.json, "reward": 1.0, "metrics": {}})

    async with stage(world=Counter(on={"/verify": verify})) as on:
        line = await on.run()
        assert len(on.world.to("/verify")) == 3
    assert (line["reward"], line["failure"]) == (1.0, None)


@pytest.mark.parametrize(
    "answer",
    [(500, b"oops"), (422, {"error": {"message": "field 'order' is missing"}}), (200, b"x"), (200, {"tools": 3})],
)
async def test_a_world_that_cannot_be_seeded(answer: Any) -> None:
    """`session_seed_failed`, with the server's own sentence; the model is not asked; close is."""
    async with stage(world=Counter(on={"/seed_session": answer})) as on:
        line = await on.run()
        assert [each.path for each in on.world.sent] == ["/seed_session", "/close_session"]
        assert not on.model.sent
    assert line["failure"]["kind"] == "session_seed_failed"
    assert line["response"] is None


async def test_servers_that_are_not_there() -> None:
    """Nothing listens: one line each, that names the URL."""
    nobody = f"http://127.0.0.1:{free_port()}"
    async with stage(urls={"model_interface": nobody}) as on:
        line = await on.run()
        assert line["failure"]["kind"] == "model_unreachable"
        assert nobody in line["failure"]["message"]
    async with stage(urls={"resources_server": nobody}) as on:
        line = await on.run()
        assert line["failure"]["kind"] == "session_seed_failed"
        assert nobody in line["failure"]["message"]


async def test_idle_connections_that_the_world_closes_lose_no_call() -> None:
    """Case B05 a: the world drops idle connections after 1 s, the model thinks for longer; 50 at once all count to 2."""

    async def think(request: Sent) -> list[dict[str, Any]]:
        made = turns.setdefault(request.headers["x-session-id"], 0)
        turns[request.headers["x-session-id"]] = made + 1
        if made == 1:
            await asyncio.sleep(1.05)  # as long as the world keeps an idle connection: the worst moment
        return [call("increment")] if made < 2 else [text("done")]

    turns: dict[str, int] = {}
    world = Counter(seed={"remembers_calls": False})
    async with (
        one_server(world, timeout_keep_alive=1) as url,
        stage(model=Model(turns=[think] * 150), urls={"resources_server": url}) as on,
    ):
        lines = await asyncio.gather(*(on.run() for _ in range(50)))
    assert [line["reward"] for line in lines] == [2.0] * 50


@pytest.mark.parametrize("remembers", [True, False])
async def test_a_lost_reply_is_asked_for_again_only_where_calls_are_remembered(remembers: bool) -> None:
    """Ruling 8: with `remembers_calls` the same call id comes again and the rollout is scored; otherwise the call was the last."""
    answers: list[Answer] = [(LOST, None), (200, "found")]
    world = Counter(on={"/echo": lambda _: answers.pop(0)}, seed={"remembers_calls": remembers})
    async with stage([call("echo")], world=world) as on:
        line = await on.run()
        ids = [each.headers["x-call-id"] for each in on.world.calls]
    if remembers:
        assert (ids, line["outcome"]) == (["0.0", "0.0"], "completed")
    else:
        assert len(ids) == 1
        assert line["failure"]["kind"] == "tool_connection_lost"


async def test_time_that_is_up_is_a_failure_that_keeps_the_beginning() -> None:
    """The budget ends a tool call that hangs: kind `timeout`, the first step kept, no verify."""
    async with stage([call("increment")], [call("echo")], world=Counter(on={"/echo": never})) as on:
        line = await on.run(headers={"X-Budget-S": "0.4"})
        assert not on.world.to("/verify")
    assert line["failure"]["kind"] == "timeout"
    assert line["steps"][0]["calls"][0]["status"] == "ok"
    assert line["steps"][1]["calls"][0]["status"] in ("cut_off", "timeout")


async def test_time_that_is_up_is_an_outcome_where_the_world_wants_it() -> None:
    """`score_on_timeout`: a part of the budget is kept for the verdict, and the outcome is `deadline`."""
    world = Counter(on={"/echo": never}, seed={"score_on_timeout": True})
    async with stage([call("increment")], [call("echo")], world=world) as on:
        line = await on.run(headers={"X-Budget-S": "1"})
    assert (line["outcome"], line["reward"]) == ("deadline", 1.0)


async def test_a_caller_that_leaves_ends_its_rollout_and_closes_the_world() -> None:
    """Nobody reads the line: the model is not asked again, and the session is freed."""
    asked, closed = asyncio.Event(), asyncio.Event()

    async def hang(request: Sent) -> Answer:
        asked.set()
        return await never(request)

    def close(request: Sent) -> Answer:
        closed.set()
        return 200, {}

    async with stage(hang, world=Counter(on={"/close_session": close})) as on:
        running = asyncio.ensure_future(on.run())
        await asked.wait()
        running.cancel()
        async with asyncio.timeout(5):
            await closed.wait()
        assert not on.world.to("/verify")


async def test_a_world_that_does_not_close_holds_up_no_line() -> None:
    """The line is given out; the close is still asked for when the server stops."""
    asked, go = asyncio.Event(), asyncio.Event()

    async def close(request: Sent) -> Answer:
        asked.set()
        await go.wait()
        return 200, {}

    async with stage(world=Counter(on={"/close_session": close})) as on:
        line = await on.run()
        assert asked.is_set()
        go.set()
    assert line["outcome"] == "completed"


async def test_a_failed_verifier_leaves_the_world_in_the_line() -> None:
    """Where the server tells state and accepted calls beside its error, the rollout can be judged again without it."""
    error = {"error": {"message": "KeyError", "code": "verifier_error"}, "state": {"count": 3}, "accepted_calls": []}
    async with stage(world=Counter(on={"/verify": (500, error)})) as on:
        line = await on.run()
    assert (line["failure"]["kind"], line["state"], line["accepted_calls"]) == ("verifier_error", {"count": 3}, [])


async def test_a_repeated_request_joins_the_rollout_under_way() -> None:
    """Two sendings of one row under one session id: played once, the same line for both; another row under it is 409."""
    asked, go = asyncio.Event(), asyncio.Event()

    async def wait(request: Sent) -> list[dict[str, Any]]:
        asked.set()
        await go.wait()
        return [call("increment")]

    headers = {"X-Session-Id": "s1"}
    async with stage(wait) as on:
        first = asyncio.ensure_future(on.run(headers=headers))
        await asked.wait()
        second = asyncio.ensure_future(on.run(headers=headers))
        status, body = await on.post("/run", {"responses_create_params": {"input": "other"}}, headers)
        assert (status, body["error"]["code"]) == (409, "conflict")
        go.set()
        assert await first == await second
        assert [each.path for each in on.world.sent] == ["/seed_session", "/increment", "/verify", "/close_session"]
        assert (await first)["reward"] == 1.0


async def test_a_repeat_goes_on_when_the_first_caller_has_gone() -> None:
    """As long as somebody waits, the rollout is played to its end."""
    asked, go = asyncio.Event(), asyncio.Event()

    async def wait(request: Sent) -> list[dict[str, Any]]:
        asked.set()
        await go.wait()
        return [text("done")]

    headers = {"X-Session-Id": "s1"}
    async with stage(wait) as on:
        first = asyncio.ensure_future(on.run(headers=headers))
        await asked.wait()
        second = asyncio.ensure_future(on.run(headers=headers))
        await on.post("/run", {"responses_create_params": {"input": "x"}}, headers)  # the second has arrived by now
        first.cancel()
        go.set()
        assert (await second)["outcome"] == "completed"


async def test_a_repeat_of_a_rollout_that_is_being_ended_starts_anew() -> None:
    """Its caller has gone and its world is slow to close; whoever asks again is not told that the caller has gone."""
    asked, closing = asyncio.Event(), asyncio.Event()

    async def wait(request: Sent) -> None:
        asked.set()
        await asyncio.Event().wait()

    async def close(request: Sent) -> Answer:
        closing.set()
        await asyncio.sleep(0.2)
        return 200, {}

    headers = {"X-Session-Id": "s1"}
    async with stage(wait, world=Counter(on={"/close_session": close})) as on:
        first = asyncio.ensure_future(on.run(headers=headers))
        await asked.wait()
        first.cancel()
        await closing.wait()
        assert (await on.run(headers=headers))["outcome"] == "completed"


async def test_one_rollout_more_than_admitted_is_503() -> None:
    """The sentence names the bound; the one in flight is not disturbed."""
    asked, go = asyncio.Event(), asyncio.Event()

    async def wait(request: Sent) -> list[dict[str, Any]]:
        asked.set()
        await go.wait()
        return [text("done")]

    async with stage(wait, max_rollouts=1) as on:
        first = asyncio.ensure_future(on.run())
        await asked.wait()
        status, body = await on.post("/run", {"responses_create_params": {"input": "x"}})
        assert (status, body["error"]["code"]) == (503, "overloaded")
        assert "max_rollouts" in body["error"]["message"]
        go.set()
        assert (await first)["outcome"] == "completed"


@pytest.mark.parametrize("error", [Unreachable, ConnectionLost])
def test_a_world_that_is_gone_before_its_verdict_is_lost_and_tried_again(error: type[CallError]) -> None:
    """The verifier has done nothing wrong: the cause passes, unlike an exception in `verify`."""
    failed = no_answer("verify", error("gone", "resources_server"), Deadline(5))
    assert failed.kind == "session_lost" and failed.failure.retryable
