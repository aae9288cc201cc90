"""The chat backend against the strict fake upstream: what goes over the wire, and what comes back."""

from typing import Any

import pytest

from tests.model_interface.conftest import TOOL, interface
from wire import strict_json
from wire.testing import serving
from wire.testing.upstream import MSG, TC, Reply, Upstream, as_text, gzipped

CALL = ("call_1", "get_weather", '{"city": "Paris"}')


async def test_a_step_sends_valid_history_and_only_its_own_work(output: Any) -> None:
    """Three steps by previous_response_id; the strict upstream refuses none and sees the whole history each time."""
    up = Upstream([TC(CALL), TC(("call_1", "get_weather", '{"city": "Rome", }')), MSG("Sunny.")])
    async with serving(up=up) as urls, interface(backend="chat", base_url=urls["up"], model="m") as model:
        first = await model.ask({"input": "Weather?", "tools": [TOOL], "instructions": "Be brief.", "temperature": 0.5})
        second = await model.go_on(first, output(first["output"][0]))
        third = await model.go_on(second, output(second["output"][0], "not JSON"))
    assert up.refused == []
    assert [len(body["messages"]) for body in up.bodies] == [2, 4, 6]
    assert all(body["temperature"] == 0.5 and body["tools"] for body in up.bodies)
    assert second["output"][0]["arguments"] == '{"city": "Rome", }'
    assert third["output"][0]["content"][0]["text"] == "Sunny."


async def test_thoughts_finish_reasons_and_usage_arrive() -> None:
    """Reasoning beside the text, a length finish, and the token counts."""
    up = Upstream([MSG("abc", finish="length", reasoning_content="hm")])
    async with serving(up=up) as urls, interface(backend="chat", base_url=urls["up"]) as model:
        reply = await model.ask({"input": "x", "model": "m"})
    assert reply["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [item["type"] for item in reply["output"]] == ["reasoning", "message"]
    assert reply["usage"]["total_tokens"] == 25


@pytest.mark.parametrize("answer", [as_text(MSG("ok")), gzipped(MSG("ok"))], ids=["text/plain", "gzip"])
async def test_a_valid_body_is_accepted_whatever_it_is_called(answer: Any) -> None:
    """B07 b and d."""
    async with serving(up=Upstream([answer])) as urls, interface(backend="chat", base_url=urls["up"]) as model:
        assert (await model.ask({"input": "x"}))["output"][0]["content"][0]["text"] == "ok"


@pytest.mark.parametrize("backend", ["chat", "vllm"])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("absurd", ["1" * 5000, "[" * 300 + "]" * 300])
async def test_arguments_that_no_parser_takes_end_no_answer(
    backend: str, streamed: bool, absurd: str, output: Any
) -> None:
    """A03 with A11: an object of 5,000 digits or 300 levels is recorded as its text, and sent again as what a server takes."""
    body = strict_json.dumps(TC(("call_1", "get_weather", "HERE"))).replace(b'"HERE"', f'{{"a":{absurd}}}'.encode())
    if streamed:
        body = b"data: " + body + b"\n\ndata: [DONE]\n\n"
    up = Upstream(
        [Reply(body, headers={"content-type": "text/event-stream" if streamed else "application/json"}), MSG("Sunny.")]
    )
    async with serving(up=up) as urls, interface(backend=backend, base_url=urls["up"], model="m") as model:
        asked = {"input": "Weather?", "tools": [TOOL]}
        first = (await model.streamed(asked)) if streamed else await model.ask(asked)
        await model.go_on(first, output(first["output"][0]))
    assert first["output"][0]["arguments"].replace(" ", "") == f'{{"a":{absurd}}}'
    assert (
        up.refused == []
        and "invalid_arguments" in up.bodies[1]["messages"][1]["tool_calls"][0]["function"]["arguments"]
    )


async def test_constrained_calls_are_plain_history_and_a_schema(output: Any) -> None:
    """The upstream sees no tool roles; the JSON it answers with becomes calls and a final answer."""
    up = Upstream([MSG('{"tool": "get_weather", "arguments": {"city": "Paris" }}'), MSG('{"answer": "Sun."}')])
    settings = {"backend": "chat", "tool_calls": "constrained"}
    async with serving(up=up) as urls, interface(base_url=urls["up"], **settings) as model:
        first = await model.ask({"input": "Weather?", "tools": [TOOL]})
        second = await model.go_on(first, output(first["output"][0]))
    assert first["output"][0]["arguments"] == '{"city": "Paris" }'
    assert second["output"][0]["content"][0]["text"] == "Sun."
    assert [message["role"] for message in up.bodies[1]["messages"]] == ["system", "user", "assistant", "user"]
    assert "tools" not in up.bodies[0]
    assert up.bodies[0]["response_format"]["json_schema"]["schema"]["anyOf"]
