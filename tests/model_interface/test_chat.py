"""The chat backend against the strict fake upstream: what goes over the wire, and what comes back."""

from typing import Any

import pytest

from tests.model_interface.conftest import TOOL, interface
from wire.testing import serving
from wire.testing.upstream import MSG, TC, Upstream, as_text, gzipped

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
