"""What NeMo Gym's parts send and expect: cookies, typed episodes, materialised rows, agent sessions."""

import asyncio
from typing import Any

from tests.agent_server.stage import ROW, Answer, Counter, Sent, call, outputs, stage, text

TASK_ID = {"taskset": "counting", "task_id": "t1"}
EPISODE_ID = {"rollout_id": "r1", "attempt": 2}
TASK_INPUT = {"responses_create_params": {"input": "Count."}, "task_data": {"order": {"bolt": 2}}}
TOOL = {"type": "function", "name": "increment", "parameters": {"type": "object"}}


def strangers(**more: Any) -> Counter:
    """A resources server that says nothing when seeded but a cookie, and a new one with each answer."""
    numbers = iter(range(10_000))

    def answer(body: Any) -> Any:
        return lambda _: (200, body, {"set-cookie": f"session=c{next(numbers)}; Path=/; HttpOnly"})

    paths = {"/seed_session": answer({}), "/increment": answer({"output": 1}), "/verify": answer({"reward": 0.5})}
    return Counter(on={**paths, **more})


async def test_cookies_are_kept_for_the_next_call_of_the_same_rollout() -> None:
    """Each call carries what the answer before it has set; the row's own tools are all there is."""
    row = {"responses_create_params": {"input": "Count.", "tools": [TOOL]}}
    async with stage([call("increment"), call("echo")], [text("x")], world=strangers()) as on:
        line = await on.run(row)
        sent = [(each.path, each.headers.get("cookie")) for each in on.world.sent]
    assert sent == [
        ("/seed_session", None),
        ("/increment", "session=c0"),
        ("/verify", "session=c1"),
        ("/close_session", "session=c2"),
    ]
    assert outputs(line)[0] == '{"output":1}'
    assert "The tools are: increment" in outputs(line)[1]
    assert line["reward"] == 0.5


async def test_cookies_never_cross_between_rollouts() -> None:
    """Thirty at once: every call of a rollout has the cookie that its own seed set."""

    def seed(request: Sent) -> Answer:
        return 200, {}, {"set-cookie": f"owner={request.headers['x-session-id']}"}

    world = Counter(on={"/seed_session": seed, "/verify": (200, {"reward": 1.0}), "/increment": (200, 1)})
    row = {"responses_create_params": {"input": "Count.", "tools": [TOOL]}}
    async with stage(world=world) as on:
        on.model.turns = [[call("increment")]] * 30
        await asyncio.gather(*(on.run(row, {"X-Session-Id": f"s{k}"}) for k in range(30)))
        later = [each for each in on.world.sent if each.path != "/seed_session"]
    assert len(later) == 90
    assert all(each.headers["cookie"] == f"owner={each.headers['x-session-id']}" for each in later)


async def test_a_materialised_row_is_flat_for_the_world_and_in_the_line() -> None:
    """`task_input` and its `task_data` are the row; the id stays."""
    async with stage() as on:
        line = await on.run({"task_id": TASK_ID, "task_input": TASK_INPUT})
        seeded = on.world.to("/seed_session")[0].json
    assert seeded == {"task_id": TASK_ID, "responses_create_params": {"input": "Count."}, "order": {"bolt": 2}}
    assert line["order"] == {"bolt": 2}
    assert "task_input" not in line


async def test_a_typed_episode_is_answered_typed() -> None:
    """`result` with a top-level reward and no `_ng_` names; the ids as they came."""
    body = {"episode_id": EPISODE_ID, "task": {"task_id": TASK_ID, "task_input": TASK_INPUT}}
    async with stage([call("increment")]) as on:
        status, answer = await on.post("/run", body)
    assert status == 200
    assert set(answer) == {"episode_id", "task_id", "result"}
    assert (answer["episode_id"], answer["task_id"]) == (EPISODE_ID, TASK_ID)
    assert answer["result"]["reward"] == 1.0
    assert not [name for name in answer["result"] if name.startswith(("_ng_", "ng_"))]


async def test_a_typed_episode_that_fails_is_answered_typed() -> None:
    """`failure` in NeMo Gym's words: reason, terminal, kind and its own name of the stage; no result."""
    body = {"episode_id": EPISODE_ID, "task": {"task_id": TASK_ID, "task_input": TASK_INPUT}}
    world = Counter(on={"/verify": (500, {"error": {"message": "KeyError", "code": "verifier_error"}})})
    async with stage(world=world) as on:
        _, answer = await on.post("/run", body)
    failure = {
        "failure_reason": "KeyError",
        "terminal": True,
        "failure_kind": "verifier_error",
        "stage": "verification",
    }
    assert answer == {"episode_id": EPISODE_ID, "task_id": TASK_ID, "failure": failure}


async def test_a_failure_has_the_flat_names_too() -> None:
    """`_ng_failure_class` sends it to the failures file there; `terminal` is the opposite of retryable."""
    async with stage((429, {"error": {"message": "slow", "code": "rate_limited"}})) as on:
        line = await on.run()
    assert (line["_ng_failure_class"], line["_ng_failure_terminal"]) == ("rate_limited", False)
    assert (line["failure_kind"], line["failure_reason"]) == ("rate_limited", "slow")


def opening(url: str, **more: Any) -> dict[str, Any]:
    """The body with which an environment server opens an agent session."""
    access = {"kind": "direct_http", "name": "resources.direct_http", "required": True, "base_url": url}
    return {
        "agent_session_id": "agent-1",
        "episode_id": EPISODE_ID,
        "task_id": TASK_ID,
        "tool_accesses": [access | {"cookies": {"session": "seeded"}, "headers": {}}],
        "sandbox_access": None,
        **more,
    }


async def test_an_environment_server_opens_uses_and_closes_an_agent_session() -> None:
    """Tools are called at the given address with the given cookies; closing gives back what was set last."""
    cookies = {"cookie": "trivium_agent_session=agent-1"}
    closing = {"agent_session_id": "agent-1", "episode_id": EPISODE_ID}
    async with stage([call("increment")], world=strangers()) as on:
        url = on.world_url
        assert await on.post("/v1/agent_sessions", opening(url)) == (200, {"agent_session_id": "agent-1"})
        assert await on.post("/v1/agent_sessions", opening(url)) == (200, {"agent_session_id": "agent-1"})
        assert (await on.post("/v1/agent_sessions", opening(url, task_id={"taskset": "x"})))[0] == 409
        asked = {"input": "Count.", "tools": [TOOL]}
        status, response = await on.post("/ng-rollout/r1-a2/v1/responses", asked, cookies)
        assert status == 200, response
        assert [item["type"] for item in response["output"]] == ["function_call", "function_call_output", "message"]
        sent = on.world.to("/increment")[0].headers
        assert sent["cookie"] == "session=seeded"
        assert "x-session-id" not in sent  # the cookie names the session; an id of ours would name another
        assert not on.world.to("/seed_session")
        answer = {"agent_session_id": "agent-1", "resources_cookies": {"session": "c0"}}
        assert await on.post("/v1/agent_sessions/close", closing) == (200, answer)
        assert await on.post("/v1/agent_sessions/close", closing) == (200, answer)
        assert (await on.post("/v1/responses", asked, cookies))[0] == 409
        assert (await on.post("/v1/agent_sessions", opening(url)))[0] == 409


async def test_a_seed_that_comes_after_its_close_is_refused() -> None:
    """A close of an id that was never opened is 200, and the id stays closed."""
    async with stage() as on:
        closing = {"agent_session_id": "agent-1", "episode_id": EPISODE_ID}
        assert (await on.post("/v1/agent_sessions/close", closing))[0] == 200
        assert (await on.post("/v1/agent_sessions", opening(on.world_url)))[0] == 409
        assert (await on.post("/v1/agent_sessions", {"agent_session_id": "x"}))[0] == 422


async def test_an_episode_for_a_whole_row_has_no_verdict() -> None:
    """`/v1/responses` with a row: seeded, played, closed, not verified."""
    async with stage([call("increment")]) as on:
        status, response = await on.post("/v1/responses", ROW)
        assert (status, response["object"]) == (200, "response")
        assert [each.path for each in on.world.sent] == ["/seed_session", "/increment", "/close_session"]


async def test_an_episode_in_a_session_that_the_caller_has_seeded() -> None:
    """Its tools run there, under the caller's id; nothing is seeded, verified or closed."""
    async with stage([call("increment")]) as on:
        on.world.counts["mine"] = 4
        body = {"input": "Count.", "tools": [TOOL]}
        status, response = await on.post("/v1/responses", body, {"X-Session-Id": "mine"})
        assert (status, response["output"][1]["output"]) == (200, "5")
        assert [each.path for each in on.world.sent] == ["/increment"]


async def test_tools_without_a_world_are_refused() -> None:
    """The sentence says what is needed; without tools it is a plain episode."""
    async with stage() as on:
        status, body = await on.post("/v1/responses", {"input": "Count.", "tools": [TOOL]})
        assert status == 400
        assert "X-Session-Id" in body["error"]["message"]
        assert (await on.post("/v1/responses", {"input": "Hello."}))[0] == 200
        assert (await on.post("/v1/responses", {"model": "m"}))[0] == 422


async def test_a_verifier_that_masks_gives_no_reward() -> None:
    """A kind alone is a remark beside a valid reward, as NeMo Gym has it; a mask says that there is no measurement."""
    remark = {"reward": 1.0, "failure_kind": "x:slow_judge", "mask_sample": False}
    async with stage(world=Counter(on={"/verify": (200, remark)})) as on:
        line = await on.run()
    assert (line["reward"], line["failure"], line["failure_kind"]) == (1.0, None, "x:slow_judge")
