"""OpenAI's own API: its memory is used while it lasts, and everything is sent again when it is lost."""

from typing import Any

from tests.model_interface.conftest import TOOL, interface
from wire.testing import serving
from wire.testing.upstream import RESPONSE, Upstream, refused, streamed

CALL = {
    "type": "function_call",
    "id": "fc_up",
    "call_id": "c1",
    "name": "get_weather",
    "arguments": "{}",
    "status": "completed",
}
TEXT = {
    "type": "message",
    "id": "m_up",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Sunny."}],
}


async def test_a_step_names_what_came_before_and_sends_what_is_new(output: Any) -> None:
    """The upstream's own id goes up, ours goes down."""
    up = Upstream([RESPONSE(CALL, id="resp_theirs"), RESPONSE(TEXT)])
    async with serving(up=up) as urls, interface(backend="responses", base_url=urls["up"], model="m") as model:
        first = await model.ask({"input": "W?", "tools": [TOOL]})
        second = await model.go_on(first, output(first["output"][0]))
    assert first["id"] != "resp_theirs"
    assert up.bodies[1]["previous_response_id"] == "resp_theirs"
    assert [item["type"] for item in up.bodies[1]["input"]] == ["function_call_output"]
    assert second["output"][0]["content"][0]["text"] == "Sunny."


async def test_a_lost_id_is_recognised_by_its_code_and_everything_is_sent(output: Any) -> None:
    """Not a failure, and not tried again as it was."""
    lost = refused(400, {"error": {"message": "Previous response not found.", "code": "previous_response_not_found"}})
    up = Upstream([RESPONSE(CALL), lost, RESPONSE(TEXT)])
    async with serving(up=up) as urls, interface(backend="responses", base_url=urls["up"], model="m") as model:
        first = await model.ask({"input": "W?", "tools": [TOOL]})
        await model.go_on(first, output(first["output"][0]))
    assert "previous_response_id" not in up.bodies[2]
    assert [item.get("type", "message") for item in up.bodies[2]["input"]] == [
        "message",
        "function_call",
        "function_call_output",
    ]


async def test_a_call_that_is_no_good_is_kept_as_text_and_sent_again_valid(output: Any) -> None:
    """A01, A03, A05: whatever stands where name and arguments belong; a server that has lost its memory is sent what it takes."""
    lost = refused(400, {"error": {"message": "Previous response not found.", "code": "previous_response_not_found"}})
    odd: list[dict[str, Any]] = [
        {**CALL, "name": ["get_weather"], "arguments": {"city": "Paris"}},
        {**CALL, "call_id": "c2", "arguments": "{bad"},
    ]
    up = Upstream([RESPONSE(*odd), lost, RESPONSE(TEXT)])
    async with serving(up=up) as urls, interface(backend="responses", base_url=urls["up"], model="m") as model:
        first = await model.ask({"input": "W?", "tools": [TOOL]})
        await model.go_on(first, *map(output, first["output"]))
    made = [(item["name"], item["arguments"]) for item in first["output"]]
    assert made == [('["get_weather"]', '{"city":"Paris"}'), ("get_weather", "{bad")]
    sent = [(item["name"], item["arguments"]) for item in up.bodies[2]["input"] if item.get("type") == "function_call"]
    assert sent == [("__get_weather__", '{"city":"Paris"}'), ("get_weather", '{"invalid_arguments":"{bad"}')]


async def test_its_stream_is_passed_on_under_our_id() -> None:
    """The last event carries our id, and the conversation can be gone on from it."""
    up = Upstream([streamed(RESPONSE(TEXT)), RESPONSE(TEXT)])
    async with serving(up=up) as urls, interface(backend="responses", base_url=urls["up"], model="m") as model:
        async with model.http.post(model.url + "/v1/responses", json={"input": "x", "stream": True}) as answer:
            text = await answer.text()
        ours = text.rpartition('"id":"resp_')[0] and text.partition('"id":"')[2].partition('"')[0]
        await model.go_on({"id": ours}, {"role": "user", "content": "more"})
    assert up.bodies[1]["previous_response_id"] == "resp_up"


async def test_counts_and_names_that_are_none_do_no_harm() -> None:
    """The answer is good all the same, and so are the sums that it is added to."""
    usage = {"input_tokens": "7", "output_tokens": 10**400, "input_tokens_details": {"cached_tokens": 2}}
    up = Upstream([RESPONSE(TEXT, usage=usage, model=5)])
    async with serving(up=up) as urls, interface(backend="responses", base_url=urls["up"], model="m") as model:
        reply = await model.ask({"input": "x"})
        status, _ = await model.get("/metrics")
    assert reply["usage"] == usage | {"input_tokens": 0, "output_tokens": 0}
    assert reply["model"] == "unknown"
    assert status == 200
