"""The tool loop: what ends an episode, and what becomes of calls that are wrong."""

import asyncio
from typing import Any

import pytest

from tests.agent_server.stage import ROW, THINKING, Counter, Model, Sent, call, outputs, stage, text


def row_with(*names: str, **params: Any) -> dict[str, Any]:
    """A row that brings its own tool definitions."""
    tools = [{"type": "function", "name": name, "parameters": {"type": "object"}} for name in names]
    return {"responses_create_params": {"input": "Weather in Paris?", "tools": tools, **params}}


async def test_arguments_that_are_no_json_are_told_to_the_model_and_never_sent() -> None:
    """Case A01: the bad call gets an output that says so, the next one runs, and the record keeps the model's bytes."""
    bad = '{"city": "Paris", }'
    good = '{"city": "Paris"}'
    async with stage([call("get_weather", bad)], [call("get_weather", good, "call_2")]) as on:
        line = await on.run(row_with("get_weather"))
        assert [(each.path, each.body) for each in on.world.calls] == [("/get_weather", good.encode())]
        assert len(on.model.sent) == 3
    assert line["response"]["output"][0]["arguments"] == bad
    assert "not valid JSON" in outputs(line)[0]
    assert [step["calls"][0]["status"] for step in line["steps"][:2]] == ["invalid_arguments", "ok"]


@pytest.mark.parametrize(
    "arguments", ["", "null", "[1]", '"Paris"', "3", "true", '{"a": NaN}', '{"a": 1} x', "{'a': 1}"]
)
def test_only_an_object_is_sent_to_a_tool(arguments: str) -> None:
    """Everything else is a sentence for the model that names the tool."""
    from agent_server.toolbox import BadCall, Toolbox

    toolbox = Toolbox([{"type": "function", "name": "echo"}], None)
    with pytest.raises(BadCall, match="arguments of echo") as caught:
        toolbox.check("echo", arguments)
    assert caught.value.status == "invalid_arguments"


async def test_huge_integers_arrive_digit_for_digit_and_absurd_ones_are_refused() -> None:
    """Case A11: 30 digits go through as they are; 5,000 digits and deep nesting are told to the model; the server lives on."""
    exact = '{"value": 123456789012345678901234567890}'
    absurd = [
        '{"value": ' + "1" * 5000 + "}",
        '{"value": ' + "[" * 100000 + "}",
        '{"value": ' + '{"a":' * 20000 + "1" + "}" * 20000 + "}",
    ]
    async with stage(*([call("echo", each)] for each in [exact, *absurd])) as on:
        line = await on.run()
        assert [each.body for each in on.world.calls] == [exact.encode()]
        async with on.http.get(on.url + "/health") as health:
            assert health.status == 200
    assert outputs(line)[0] == exact
    assert all("arguments of echo are not valid JSON" in each for each in outputs(line)[1:])
    assert line["outcome"] == "completed"


async def test_a_tool_that_does_not_exist_is_named_with_those_that_do() -> None:
    """Case A05: mangled names, and a tool of the world that this row does not offer, are never sent; the record keeps them."""
    names = ["get_wether", 'get_weather" />', "get_weatherget_weather", "increment", "verify", "../verify"]
    turns = [[call(name, '{"city": "Paris"}')] for name in [*names, "get_weather"]]
    async with stage(*turns) as on:
        line = await on.run(row_with("get_weather"))
        assert [each.path for each in on.world.calls] == ["/get_weather"]
    told = outputs(line)
    for name, output in zip(names, told, strict=False):
        assert name.replace('"', '\\"') in output
        assert "The tools are: get_weather" in output
    assert "did you mean 'get_weather'?" in told[0]
    made = [item["name"] for item in line["response"]["output"] if item["type"] == "function_call"]
    assert made == [*names, "get_weather"]


async def test_a_row_narrows_what_the_environment_declares_and_adds_nothing() -> None:
    """A tool that only the row knows does not exist; `verify` is no tool, whatever the row says."""
    turns = [[call("verify")], [call("teleport")], [call("echo")]]
    async with stage(*turns) as on:
        line = await on.run(row_with("verify", "teleport", "echo"))
        assert [each.path for each in on.world.calls] == ["/echo"]
        assert [tool["name"] for tool in on.model.sent[0].json["tools"]] == ["verify", "teleport", "echo"]
    assert all("The tools are: echo" in each for each in outputs(line)[:2])


async def test_max_steps_ends_an_episode_after_the_calls_of_its_last_step() -> None:
    """The world sees both calls, the model is asked twice, and the rollout is scored."""
    async with stage(*([call("increment")] for _ in range(5)), max_steps=2) as on:
        line = await on.run()
        assert len(on.model.sent) == 2
    assert (line["outcome"], line["reward"], line["failure"]) == ("max_steps", 2.0, None)
    assert [item["type"] for item in line["response"]["output"]] == ["function_call", "function_call_output"] * 2


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("max_output_tokens", "max_output_tokens"),
        ("content_filter", "content_filter"),
        ("context_window", "context_window"),
    ],
)
async def test_a_call_that_was_cut_off_is_never_executed(reason: str, outcome: str) -> None:
    """An incomplete reply ends the episode, scored; its calls reach no tool, whether they parse or not."""
    cut = {"status": "incomplete", "incomplete_details": {"reason": reason}, "output": [call("increment")]}
    async with stage([call("increment")], cut) as on:
        line = await on.run()
        assert len(on.world.calls) == 1
        assert len(on.world.to("/verify")) == 1
    assert (line["outcome"], line["reward"]) == (outcome, 1.0)
    assert line["response"]["status"] == "incomplete"
    assert line["response"]["incomplete_details"] == {"reason": reason}


async def test_a_prompt_too_long_at_the_first_call_is_an_outcome() -> None:
    """Nothing was generated and nothing is made up: the response has no items, and is scored."""
    cut = {"status": "incomplete", "incomplete_details": {"reason": "context_window"}, "output": []}
    async with stage(cut) as on:
        line = await on.run()
    assert (line["outcome"], line["reward"], line["response"]["output"]) == ("context_window", 0.0, [])


async def test_reasoning_alone_is_asked_again_and_two_in_a_row_are_stalled() -> None:
    """A turn with a call between them starts the count again."""
    turns = [[THINKING], [THINKING, call("increment")], [THINKING, text("")], [THINKING], [text("never asked")]]
    async with stage(*turns) as on:
        line = await on.run()
        assert len(on.model.sent) == 4
        assert on.model.sent[1].json == {"previous_response_id": "resp_1", "input": []}
    assert (line["outcome"], line["reward"]) == ("stalled", 1.0)


@pytest.mark.parametrize(
    "answer",
    [
        [text("")],
        [THINKING, text("four")],
        [{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}],
    ],
)
async def test_an_answer_ends_the_episode(answer: list[dict[str, Any]]) -> None:
    """Text, a refusal, and empty text without reasoning are answers; the agent adds no words of its own."""
    async with stage(answer) as on:
        line = await on.run()
        assert len(on.model.sent) == 1
    assert line["outcome"] == "completed"
    assert line["response"]["output"] == answer


async def test_calls_of_one_turn_run_in_order_unless_the_environment_says_otherwise() -> None:
    """Case C02: twenty parallel calls of a tool with state end at twenty, outputs in call order."""
    async with stage([call("increment", "{}", f"c{i}") for i in range(20)]) as on:
        line = await on.run()
    assert line["reward"] == 20.0
    assert outputs(line) == [str(i + 1) for i in range(20)]
    ids = [item.get("call_id") for item in line["response"]["output"]]
    assert ids == [f"c{i}" for i in range(20)] * 2 + [None]


async def test_parallel_tools_run_together_with_results_in_call_order() -> None:
    """Two neighbours that may run together meet at a barrier; the call between that may not waits for them."""
    barrier = asyncio.Barrier(2)

    async def meet(request: Sent) -> tuple[int, Any]:
        await barrier.wait()
        return 200, request.json["n"]

    world = Counter(on={"/echo": meet}, seed={"parallel_tools": ["echo"]})
    calls = [call("echo", '{"n": 1}', "a"), call("echo", '{"n": 2}', "b"), call("increment", "{}", "c")]
    async with stage(calls, world=world) as on:
        line = await on.run()
        assert [each.headers["x-call-id"] for each in on.world.calls][-1] == "0.2"
    assert outputs(line) == ["1", "2", "1"]


async def test_a_refusal_by_the_tool_is_told_to_the_model() -> None:
    """422 is the model's mistake: its body is the output and the episode goes on."""
    refused = {"error": ["units: must be at least 1"]}
    async with stage([call("echo")], [text("ok")], world=Counter(on={"/echo": (422, refused)})) as on:
        line = await on.run()
    assert outputs(line) == ['{"error":["units: must be at least 1"]}']
    assert line["steps"][0]["calls"][0]["status"] == "tool_error"
    assert line["outcome"] == "completed"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\xff\xfe\x00ok", "\ufffd\ufffd\x00ok"),
        (b"<html>busy</html>", "<html>busy</html>"),
        (b"", ""),
        (b'"\xc3\xa9"', '"é"'),
    ],
)
async def test_any_bytes_of_a_tool_become_text(raw: bytes, shown: str) -> None:
    """What is not UTF-8 is marked; HTML and plain text are given as they are."""
    async with stage([call("echo")], world=Counter(on={"/echo": (200, raw)})) as on:
        line = await on.run()
    assert outputs(line) == [shown]
    assert line["outcome"] == "completed"


async def test_rollouts_at_once_share_nothing() -> None:
    """Case C02: rollout k adds k three times; each ends at exactly 3k, under a session id of its own."""

    played: dict[str, int] = {}

    def turn(request: Sent) -> list[dict[str, Any]]:
        session = request.headers["x-session-id"]
        played[session] = played.get(session, 0) + 1
        return [call("increment", f'{{"by": {session}}}')] if played[session] <= 3 else [text("x")]

    async with stage(model=Model(turns=[turn] * 300)) as on:
        lines = await asyncio.gather(*(on.run(ROW, {"X-Session-Id": str(k)}) for k in range(64)))
    assert [line["reward"] for line in lines] == [3.0 * k for k in range(64)]
