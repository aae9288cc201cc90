"""Calls under /rollouts/<id>/: real clients of three dialects, streaming or not, recorded; retries; the end."""

import asyncio
from typing import Any

import aiohttp
import anthropic
import openai
import pytest

from model_interface.app import model_interface
from model_interface.settings import ModelInterfaceSettings
from tests.model_interface.conftest import TOOL, Caller, interface
from wire import strict_json
from wire.session import rollout_key
from wire.testing import one_server, serving
from wire.testing.upstream import MSG, TC, Upstream, refused, slowly, streamed

CALL = ("call_1", "get_weather", '{"city": "Paris"}')
ID = "r" * 32
CHAT_TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": TOOL["parameters"]}}
ANTHROPIC_TOOL = {"name": "get_weather", "input_schema": TOOL["parameters"]}


def open_client(model: Caller, path: str = "/v1") -> Any:
    return openai.AsyncOpenAI(base_url=model.url + path, api_key=ID, max_retries=0)


async def test_the_openai_client_works_against_every_route() -> None:
    """responses.create and chat.completions.create, with tools, streamed and not."""
    up = Upstream([TC(CALL), TC(CALL), streamed(TC(CALL)), streamed(MSG("Sunny."), comments=True, chunk_bytes=1)])
    async with serving(up=up) as urls, interface(backend="chat", base_url=urls["up"], model="m") as model:
        client = open_client(model)
        response = await client.responses.create(model="m", input="Weather?", tools=[TOOL])
        chat = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "W?"}], tools=[CHAT_TOOL]
        )
        events = [e async for e in await client.responses.create(model="m", input="W?", tools=[TOOL], stream=True)]
        asked: Any = {"model": "m", "messages": [{"role": "user", "content": "W?"}]}
        chunks = [chunk async for chunk in await client.chat.completions.create(**asked, stream=True)]
        await client.close()
    assert response.output[0].arguments == CALL[2]
    assert chat.choices[0].message.tool_calls[0].function.arguments == CALL[2]
    assert events[-1].type == "response.completed"
    assert events[-1].response.output[0].arguments == CALL[2]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Sunny."


async def test_structured_output_through_the_openai_client() -> None:
    """`responses.parse` with a model class: the schema reaches the upstream, the answer comes back parsed."""
    from pydantic import BaseModel

    class Place(BaseModel):
        city: str

    up = Upstream([MSG('{"city": "Paris"}')])
    async with serving(up=up) as urls, interface(backend="chat", base_url=urls["up"]) as model:
        client = open_client(model)
        parsed = await client.responses.parse(model="m", input="Capital of France?", text_format=Place)
        await client.close()
    assert parsed.output_parsed == Place(city="Paris")
    assert up.bodies[0]["response_format"]["type"] == "json_schema"


async def test_the_anthropic_client_works() -> None:
    """messages.create with a tool, and a stream."""
    up = Upstream([TC(CALL), streamed(MSG("Sunny."))])
    async with serving(up=up) as urls, interface(backend="chat", base_url=urls["up"], model="m") as model:
        client: Any = anthropic.AsyncAnthropic(base_url=model.url, api_key=ID, max_retries=0)
        asked: Any = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "W?"}]}
        message = await client.messages.create(**asked, tools=[ANTHROPIC_TOOL])
        async with client.messages.stream(**asked) as stream:
            text = await stream.get_final_text()
        await client.close()
    assert message.content[0].input == {"city": "Paris"}
    assert message.stop_reason == "tool_use"
    assert text == "Sunny."


ODD_ARGUMENTS = ['{"a": 1e999}', '{"a": "\\ud800"}', "{bad", "", "[1]", {"a": 1}, '{"a": ' + "1" * 5000 + "}"]


@pytest.mark.parametrize(
    ("name", "arguments"), [*(("get_weather", each) for each in ODD_ARGUMENTS), (["get_weather"], "{}"), (5, {})]
)
async def test_clients_take_any_call_and_can_send_it_again(name: Any, arguments: Any) -> None:
    """A01, A05, A11: each dialect, streamed or not; what a client parses it can also write, and the strict upstream refuses nothing."""
    up = Upstream([TC(("c1", name, arguments))] * 6)
    async with serving(up=up) as urls, interface(backend="chat", base_url=urls["up"], model="m") as model:
        claude: Any = anthropic.AsyncAnthropic(base_url=model.url, api_key=ID, max_retries=0)
        messages: list[Any] = [{"role": "user", "content": "W?"}]
        made = await claude.messages.create(model="m", max_tokens=9, messages=messages, tools=[ANTHROPIC_TOOL])
        for _ in range(2):
            result = {"type": "tool_result", "tool_use_id": made.content[0].id, "content": "no", "is_error": True}
            messages += [{"role": "assistant", "content": made.content}, {"role": "user", "content": [result]}]
            async with claude.messages.stream(
                model="m", max_tokens=9, messages=messages, tools=[ANTHROPIC_TOOL]
            ) as stream:
                made = await stream.get_final_message()
        await claude.close()
        client = open_client(model)
        asked: list[Any] = [{"role": "user", "content": "W?"}]
        chat = await client.chat.completions.create(model="m", messages=asked, tools=[CHAT_TOOL])
        said = chat.choices[0].message
        asked += [
            said,
            {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": [{"type": "text", "text": "no"}]},
        ]
        async with client.chat.completions.stream(model="m", messages=asked, tools=[CHAT_TOOL]) as chunks:
            await chunks.get_final_completion()
        await client.close()
    assert (up.refused, up.calls) == ([], 5)


async def test_fields_that_change_no_answer_are_taken(output: Any) -> None:
    """Of caching and of who may call a tool, as clients write them out; they do not reach a chat server's messages and tools."""
    up = Upstream([MSG("ok")] * 3)
    cached = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    usual = {"defer_loading": False, "allowed_callers": ["direct"]}
    call = {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"}
    async with serving(up=up) as urls, interface(backend="chat", base_url=urls["up"], model="m") as model:
        said = {"role": "user", "content": [{"type": "input_text", "text": "W?", **cached}]}
        answered = {**output(call), "name": "get_weather", "caller": {"type": "direct"}}
        await model.ask({"input": [said, call, answered], "tools": [{**TOOL, **usual}]})
        part = {"role": "user", "content": [{"type": "text", "text": "W?", **cached}]}
        status, _ = await model.post(
            "/v1/chat/completions", {"messages": [part], "prompt_cache_options": {"mode": "implicit"}}
        )
        assert status == 200
        eager = {**ANTHROPIC_TOOL, **usual, "eager_input_streaming": True}
        body = {"max_tokens": 9, "messages": [{"role": "user", "content": "W?"}], "tools": [eager]}
        status, _ = await model.post("/v1/messages", body)
        assert status == 200
        refused = await model.post("/v1/responses", {"input": "x", "tools": [{**TOOL, "defer_loading": True}]})
        assert refused[0] == 400 and "defer_loading" in str(refused[1])
    sent = str([(body["messages"], body.get("tools")) for body in up.bodies])
    assert not any(field in sent for field in ("prompt_cache", "defer_loading", "allowed_callers", "caller", "eager"))
    assert up.bodies[1]["prompt_cache_options"] == {"mode": "implicit"}


@pytest.mark.parametrize("stream", [False, True])
async def test_an_outside_program_leaves_the_whole_record(stream: bool) -> None:
    """Two turns of a chat client that sends everything each time: two calls, the second the first's continuation, with exact ids."""
    up = Upstream([TC(CALL), MSG("Sunny.")])
    async with serving(up=up) as urls, interface(backend="vllm", base_url=urls["up"], model="m") as model:
        client = open_client(model, f"/rollouts/{ID}/v1")
        messages: list[Any] = [{"role": "user", "content": "W?"}]
        for _ in range(2):
            made = await client.chat.completions.create(model="m", messages=messages, tools=[CHAT_TOOL], stream=stream)
            if stream:
                chunks = [chunk async for chunk in made]
                if not any(chunk.choices and chunk.choices[0].delta.tool_calls for chunk in chunks):
                    break
            elif not made.choices[0].message.tool_calls:
                break
            call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": CALL[2]}}
            messages += [
                {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_1", "content": "sun"},
            ]
        await client.close()
        _, text = await model.get(f"/rollouts/{ID}")
    record = strict_json.loads(text)
    first, second = record["calls"]
    assert second["request"]["previous_response_id"] == first["response"]["id"]
    assert [item["type"] for item in second["request"]["input"]] == ["function_call_output"]
    assert [call["tokens"]["fidelity"] for call in record["calls"]] == ["exact", "exact"]
    assert second["usage"]["total_tokens"] > 0
    assert second["s"] > 0


async def test_a_retry_is_answered_from_the_record_or_joins_the_one_in_flight() -> None:
    """The same request three times, twice at once: the upstream samples once."""
    up = Upstream([slowly(MSG("one"), 0.2), MSG("two")])
    async with serving(up=up) as urls, interface(backend="chat", base_url=urls["up"]) as model:
        path, body = f"/rollouts/{ID}/v1/responses", {"input": "x"}
        both = await asyncio.gather(model.post(path, body), model.post(path, body))
        third = await model.post(path, body)
        streamed_again = await model.http.post(model.url + path, json=body)
        await streamed_again.read()
    assert up.calls == 1
    assert both[0] == both[1] == third


async def test_a_failed_call_is_asked_again() -> None:
    """Only answers are remembered."""
    up = Upstream([refused(400), MSG("ok")])
    async with serving(up=up) as urls, interface(backend="chat", base_url=urls["up"]) as model:
        path = f"/rollouts/{ID}/v1/responses"
        assert (await model.post(path, {"input": "x"}))[0] == 400
        assert (await model.post(path, {"input": "x"}))[0] == 200


async def test_a_closed_rollout_takes_no_calls() -> None:
    """410 in every dialect; the record can still be read."""
    async with interface(backend="scripted") as model:
        await model.post(f"/rollouts/{ID}/v1/responses", {"input": "x"})
        assert (await model.post(f"/rollouts/{ID}/close", {}))[0] == 200
        for path, body in (
            ("responses", {"input": "x"}),
            ("chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
            ("messages", {"max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}),
        ):
            assert (await model.post(f"/rollouts/{ID}/v1/{path}", body))[0] == 410
        assert (await model.get(f"/rollouts/{ID}"))[0] == 200
        assert (await model.get("/rollouts/unknown"))[0] == 404


async def test_an_error_before_the_first_event_keeps_its_status_and_one_in_the_middle_is_told() -> None:
    """A refused stream is an HTTP error; a broken one ends with an error event."""
    up = Upstream([refused(400), streamed(MSG("Sunny and warm."), error_after=2)])
    async with serving(up=up) as urls, interface(backend="chat", base_url=urls["up"], attempts=1) as model:
        assert (await model.post("/v1/responses", {"input": "x", "stream": True}))[0] == 400
        async with model.http.post(model.url + "/v1/responses", json={"input": "x", "stream": True}) as answer:
            text = await answer.text()
    assert answer.status == 200
    assert "response.failed" in text


async def test_a_rollouts_key_opens_its_own_address_alone() -> None:
    """With a token an id that somebody made up is no key to the model; the key that the agent derives is, for one rollout."""
    settings = ModelInterfaceSettings(backend="scripted", options={"turns": ["Sunny."]})
    async with one_server(model_interface(settings, token="t0ken")) as url, aiohttp.ClientSession() as http:
        app = Caller(url, http, model_interface(settings))
        path, asked = f"/rollouts/{ID}/v1/responses", {"input": "W?"}
        key = rollout_key("t0ken", ID)
        made_up, _ = await app.post(path, asked, Authorization=f"Bearer {ID}")
        nothing, _ = await app.post("/rollouts//v1/responses", asked)
        other, _ = await app.post("/rollouts/other/v1/responses", asked, Authorization=f"Bearer {key}")
        plain, _ = await app.post("/v1/responses", asked, Authorization=f"Bearer {key}")
        own, _ = await app.post(path, asked, Authorization=f"Bearer {key}")
        stack, _ = await app.post(path, {"input": "And now?"}, Authorization="Bearer t0ken")
    assert (made_up, nothing, other, plain, own, stack) == (401, 401, 401, 401, 200, 200)
