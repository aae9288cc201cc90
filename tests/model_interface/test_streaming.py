"""Streams: bytes cut anywhere, chunks of every server, and events that the unmodified clients accept."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, get_args

import anthropic
import openai
import pytest
from anthropic.types import MessageParam
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam

from model_interface.streaming import (
    ChatStreamAssembler,
    Dialect,
    ResponsesRelay,
    SSEParser,
    face,
    response_events,
)
from model_interface.translate import UpstreamError, chat_to_response, response_to_chat, response_to_messages
from model_interface.translate.reasoning import Reasoning
from wire.errors import Failed
from wire.testing import one_server, tokens
from wire.testing.events import chat_events, encode_events
from wire.testing.upstream import MSG, TC, Streaming

JSON = dict[str, Any]
HI: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hi"}]
HELLO: list[MessageParam] = [{"role": "user", "content": "hi"}]
USAGE = {"stream_options": {"include_usage": True}}


def parse(data: bytes, size: int = 7) -> list[tuple[str, bytes]]:
    parser = SSEParser()
    events = [event for start in range(0, len(data), size) for event in parser.feed(data[start : start + size])]
    return [(event.name, event.data) for event in events + parser.close()]


def assemble(
    answer: JSON, how: Streaming | None = None, reasoning: Reasoning = "auto", request: JSON | None = None
) -> tuple[ChatStreamAssembler, list[JSON]]:
    """What a backend does with a stream, without the network."""
    how, parser = how or Streaming(), SSEParser()
    assembler, done = ChatStreamAssembler(request or {}, reasoning=reasoning), False
    events: list[JSON] = []
    data = b"".join(encode_events(chat_events(answer, USAGE, how), how))
    for event in [*parser.feed(data), *parser.close()]:
        if event.done:
            done = True
        else:
            events += assembler.feed(event.json())
    return assembler, events + assembler.finish(done=done)


def bare(value: Any) -> Any:
    """Without what differs from one making to the next."""
    if isinstance(value, dict):
        return {key: bare(each) for key, each in value.items() if key not in ("id", "created_at")}
    return [bare(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b"data: a\n\n", [("message", b"a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("message", b"a")]),
        (b": comment\n\ndata:a\n\n:\n\n", [("message", b"a")]),
        (b"retry: 1500\n\nevent: x\nid: 3\ndata: a\ndata: b\n\n", [("x", b"a\nb")]),
        ("data: Grüße\n\n".encode(), [("message", "Grüße".encode())]),
        (b"data: a\n\ndata: [DONE]", [("message", b"a"), ("message", b"[DONE]")]),
        (b"event: x\n\ndata: a\n\n", [("message", b"a")]),
        (b"data\n\ndata:\n\nunknown: x\ndata: a\n\n", [("message", b"a")]),
        (b"data:  two\n\n", [("message", b" two")]),
        (b"", []),
    ],
)
def test_events_are_found_however_the_bytes_are_cut(text: bytes, wanted: list[Any], newline: bytes, size: int) -> None:
    """Comments, `retry:`, `id:`, empty events, a byte order mark, every line end, no last blank line."""
    assert parse(text.replace(b"\n", newline), size) == [(name, data) for name, data in wanted]


def test_retry_is_kept_and_nonsense_is_not() -> None:
    """Digits only, says the standard."""
    parser = SSEParser()
    parser.feed(b"retry: 1500\n\nretry: soon\n\n")
    assert parser.retry_ms == 1500


def test_an_event_that_never_ends_is_refused() -> None:
    """Memory is bounded."""
    parser = SSEParser()
    with pytest.raises(UpstreamError, match="over 16 MiB"):
        for _ in range(20):
            parser.feed(b"x" * (1 << 20))


def test_data_that_is_not_json_is_a_typed_failure() -> None:
    """With what was sent."""
    [event] = SSEParser().feed(b"data: {oops\n\n")
    with pytest.raises(UpstreamError, match="oops") as caught:
        event.json()
    assert caught.value.kind == "model_invalid_response"


ANSWERS: list[JSON] = [
    MSG("Grüße, wie geht's?"),
    MSG(""),
    MSG(None),
    MSG("abc", finish="length"),
    MSG(None, finish="length", reasoning_content="t"),
    MSG(None, finish="content_filter"),
    MSG(None, refusal="No."),
    MSG("Well", refusal="No."),
    MSG("x", reasoning="thoughts first"),
    MSG("<think>\nhm, <b>\n</think>\n\nx"),
    MSG("<think>never closed"),
    MSG("x", finish="eos"),
    TC(("a", "f", '{"x": 1}')),
    TC(("a", "f", '{"x": 1}'), ("b", "g", ""), ("c", "f", "{bad"), text="Let me see"),
    TC(("a", "f", "{}"), ("a", "f", "{}")),
    TC(("a", "f", '{"x'), finish="length"),
    TC(("a", "f", {"x": 1})),
    TC(("a", "f", "{}"), text="<think>t</think>"),
]


@pytest.mark.parametrize(
    "how", [Streaming(), Streaming(piece=1, newline="\r\n", comments=True), Streaming(piece=1000, done=False)]
)
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_streamed_answer_is_the_unstreamed_one(answer: JSON, how: Streaming) -> None:
    """Items, status and usage."""
    assembler, events = assemble(answer, how)
    assert bare(assembler.response) == bare(chat_to_response(answer, {}))
    assert events[-1]["response"] is assembler.response


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_whole_completion_is_put_together(answer: JSON) -> None:
    """So that history and tokens can be read from a streamed answer as from another."""
    assembler, _ = assemble(answer)
    again = chat_to_response(assembler.completion(), {})
    assert bare(again) == bare(chat_to_response(answer, {}))


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=30), st.integers(1, 5), st.sampled_from(["auto", "think", "off"]))
def test_any_text_streams_to_itself(text: str, piece: int, reasoning: Reasoning) -> None:
    """Under every setting for thoughts."""
    assembler, _ = assemble(MSG(text), Streaming(piece=piece), reasoning)
    assert bare(assembler.response["output"]) == bare(chat_to_response(MSG(text), {}, reasoning=reasoning)["output"])


@pytest.mark.parametrize("answer", ANSWERS)
def test_events_follow_the_protocol(answer: JSON) -> None:
    """Numbered without a gap, every item and part opened before its deltas and closed after them, deltas add up."""
    _, events = assemble(answer)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    open_items: dict[int, str] = {}
    deltas: dict[tuple[Any, ...], str] = {}
    for event in events:
        kind, index = event["type"], event.get("output_index")
        if kind == "response.output_item.added":
            assert index == len(open_items)
            open_items[index] = event["item"]["id"]
        elif index is not None:
            assert open_items[index] == event.get("item_id", event.get("item", {}).get("id"))
        if kind.endswith(".delta"):
            place = (index, event.get("content_index"))
            deltas[place] = deltas.get(place, "") + event["delta"]
        if kind.endswith((".text.done", "_text.done", ".refusal.done", "arguments.done")):
            whole = event.get("text", event.get("refusal", event.get("arguments")))
            assert deltas.get((index, event.get("content_index")), "") == whole
        if kind == "response.output_item.done":
            assert event["item"] == events[-1]["response"]["output"][index]


def chunk(**delta: Any) -> JSON:
    return {"model": "m", "choices": [{"index": 0, "delta": delta}]}


def delta(index: int | None, call_id: str | None, name: str | None, arguments: str | None) -> JSON:
    """One tool call delta; what is None is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    place = {key: value for key, value in (("index", index), ("id", call_id)) if value is not None}
    return {**place, "function": function}


def calls(*deltas: JSON) -> list[tuple[str, str, str]]:
    assembler = ChatStreamAssembler({})
    for each in deltas:
        assembler.feed(chunk(tool_calls=[each]))
    assembler.finish(done=True)
    return [(item["call_id"], item["name"], item["arguments"]) for item in assembler.response["output"]]


BOTH = [("a", "f", "{}"), ("b", "g", "{}")]


@pytest.mark.parametrize(
    ("deltas", "wanted"),
    [
        ([delta(0, "a", "f", "{"), delta(0, None, None, "}")], [("a", "f", "{}")]),
        ([delta(None, "a", "f", "{}"), delta(None, "b", "g", "{}")], BOTH),
        ([delta(0, "a", "f", "{}"), delta(0, "b", "g", "{}")], BOTH),
        ([delta(0, "a", "f", "{}"), delta(1, "b", "g", "{"), delta(1, None, None, "}")], BOTH),
        (
            [delta(0, "a", "f", "{"), delta(1, "b", "g", "{"), delta(0, None, None, "}"), delta(1, None, None, "}")],
            BOTH,
        ),
        ([delta(0, "a", "f", None), delta(0, "a", "f", "{}")], [("a", "f", "{}")]),
        (
            [delta(0, "a", "get_", None), delta(0, None, "weather", None), delta(0, None, None, "{}")],
            [("a", "get_weather", "{}")],
        ),
        ([delta(0, "a", "f", None), delta(1, "b", "g", "{}")], [("a", "f", ""), ("b", "g", "{}")]),
    ],
)
def test_calls_are_told_apart_whatever_servers_leave_out(deltas: list[JSON], wanted: list[Any]) -> None:
    """No index, index 0 for all, interleaved, names repeated or in pieces, no arguments."""
    assert calls(*deltas) == wanted


def test_calls_in_the_old_form_and_without_ids() -> None:
    """`function_call`, and ids made up where none came."""
    assembler = ChatStreamAssembler({})
    assembler.feed(chunk(function_call={"name": "f", "arguments": "{"}))
    assembler.feed(chunk(function_call={"arguments": "}"}))
    assembler.finish(done=True)
    [item] = assembler.response["output"]
    assert (item["name"], item["arguments"]) == ("f", "{}")
    assert item["call_id"].startswith("call_")


def test_token_ids_and_log_probs_are_collected() -> None:
    """vLLM sends the prompt's with the first chunk and the new ones with each."""
    answer = MSG("yes")
    ids = tokens.generation_ids(answer["choices"][0]["message"])
    answer["prompt_token_ids"] = [1, 2]
    answer["choices"][0] |= {
        "token_ids": ids,
        "logprobs": {"content": [{"token": "t", "logprob": -1.0 * each} for each in ids]},
    }
    assembler, events = assemble(answer, Streaming(piece=1), request={"top_logprobs": 0})
    whole = assembler.completion()
    assert whole["prompt_token_ids"] == [1, 2]
    assert whole["choices"][0]["token_ids"] == ids
    assert [each["logprob"] for each in whole["choices"][0]["logprobs"]["content"]] == [-each for each in ids]
    assert any(event.get("logprobs") for event in events if event["type"] == "response.output_text.delta")


@pytest.mark.parametrize(
    ("chunks", "done", "words"),
    [
        ([chunk(content="Gr")], False, "ended before the answer did: 'Gr'"),
        ([], True, "ended before"),
        ([{"choices": []}], False, "ended before"),
        ([chunk(content="x"), {"error": {"message": "overloaded"}}], False, "overloaded"),
        ([{"object": "error", "message": "broken", "code": 500}], False, "broken"),
        ([[1]], False, "where a chunk belongs"),
        ([{"choices": [{"delta": {}, "finish_reason": "error"}]}], True, "finish_reason 'error'"),
    ],
)
def test_a_stream_that_breaks_off_is_a_typed_failure(chunks: list[Any], done: bool, words: str) -> None:
    """Never a short answer passed off as a whole one."""
    assembler = ChatStreamAssembler({})

    def play() -> None:
        for each in chunks:
            assembler.feed(each)
        assembler.finish(done=done)

    with pytest.raises(UpstreamError, match=words):
        play()


def test_an_end_without_done_is_whole_where_a_finish_reason_came() -> None:
    """And one with [DONE] where none did."""
    for finish, done in (("stop", False), (None, True)):
        assembler = ChatStreamAssembler({})
        assembler.feed({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": finish}]})
        assembler.finish(done=done)
        assert assembler.response["status"] == "completed"


def test_a_relay_passes_events_on_under_our_id() -> None:
    """An upstream that speaks Responses loses nothing."""
    upstream = chat_to_response(TC(("a", "f", "{}"), text="x"), {})
    relay = ResponsesRelay("resp_ours")
    passed = [event for each in response_events(upstream) for event in relay.feed(each)]
    assert relay.finish() == []
    assert relay.response == {**upstream, "id": "resp_ours"}  # nothing else changed
    assert [event["type"] for event in passed] == [event["type"] for event in response_events(upstream)]


BARE_EVENTS: list[JSON] = [  # as llama.cpp streams Responses: no indexes, no numbers, no output in the first response
    {"type": "response.created", "response": {"id": "resp_up", "object": "response", "status": "in_progress"}},
    {"type": "response.output_item.added", "item": {"type": "message", "id": "msg_1", "role": "assistant", "content": []}},
    {"type": "response.content_part.added", "item_id": "msg_1", "part": {"type": "output_text", "text": ""}},
    {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "hi"},
    {"type": "response.output_text.done", "item_id": "msg_1", "text": "hi"},
    {"type": "response.content_part.done", "item_id": "msg_1", "part": {"type": "output_text", "text": "hi"}},
    {"type": "response.output_item.done",
     "item": {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}},
    {"type": "response.output_item.added", "item": {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": "{}"},
    {"type": "response.output_item.done", "item": {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"}},
    {"type": "response.completed", "response": {"id": "resp_up", "object": "response", "status": "completed", "output": []}},
]  # fmt: skip


async def test_a_relay_adds_what_an_upstream_left_out() -> None:
    """So that OpenAI's client, and the other two faces, can follow a real llama.cpp."""
    relay = ResponsesRelay("resp_ours")
    passed = [event for each in BARE_EVENTS for event in relay.feed(each)]
    assert [event["sequence_number"] for event in passed] == list(range(len(passed)))
    assert [event["output_index"] for event in passed[1:-1]] == [0] * 6 + [1] * 3
    async with speaking("responses", passed) as url:
        client = openai.AsyncOpenAI(base_url=f"{url}/0/v1", api_key="k")
        async with client, client.responses.stream(model="m", input="hi") as stream:
            assert [event.type async for event in stream][-1] == "response.completed"
    for dialect in get_args(Dialect):
        told = face(dialect, {})
        data = b"".join(map(told.feed, passed))
        assert b'"hi"' in data
        assert b'"{}"' in data


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "gone"}}}, "gone"),
        ({"type": "error", "message": "gone", "code": "x"}, "gone"),
        ({"error": {"message": "gone"}}, "gone"),
        ([1], "where an event belongs"),
    ],
)
def test_a_relay_reports_what_broke(event: Any, words: str) -> None:
    """And a stream without its last event."""
    with pytest.raises(UpstreamError, match=words):
        ResponsesRelay("r").feed(event)
    with pytest.raises(UpstreamError, match="ended before"):
        ResponsesRelay("r").finish()


WHOLE = [assemble(answer, Streaming(piece=2))[1] for answer in ANSWERS]
WANTED = [chat_to_response(answer, {}) for answer in ANSWERS]


@asynccontextmanager
async def speaking(dialect: Dialect, *streams: list[JSON], error: Failed | None = None) -> AsyncIterator[str]:
    """A server that streams the n-th list of events to who asks below `/n`."""

    def told(events: list[JSON]) -> bytes:
        speaker = face(dialect, {"model": "m", **USAGE})
        return b"".join(map(speaker.feed, events)) + (speaker.fail(error) if error else speaker.end())

    async def app(scope: JSON, receive: Callable[[], Awaitable[JSON]], send: Callable[[JSON], Awaitable[None]]) -> None:
        if scope["type"] == "http":
            while (await receive()).get("more_body"):
                pass
            await send(
                {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
            )
            await send({"type": "http.response.body", "body": told(streams[int(scope["path"].split("/")[1])])})

    async with one_server(app) as url:
        yield url


async def test_the_openai_client_reads_our_responses_stream() -> None:
    """`responses.stream`, whose accumulator checks the order of events, and the bare stream."""
    async with speaking("responses", *WHOLE) as url:
        for index, wanted in enumerate(WANTED):
            async with openai.AsyncOpenAI(base_url=f"{url}/{index}/v1", api_key="k") as client:
                async with client.responses.stream(model="m", input="hi") as stream:
                    kinds = [event.type async for event in stream]
                events = [event async for event in await client.responses.create(model="m", input="hi", stream=True)]
            assert kinds[-1] == f"response.{wanted['status']}"
            assert bare(json.loads(events[-1].to_json())["response"]["output"]) == bare(wanted["output"])


async def test_the_openai_client_reads_our_chat_stream() -> None:
    """Text, refusal, calls, finish reason and usage."""
    async with speaking("chat", *WHOLE) as url:
        for index, wanted in enumerate(WANTED):
            async with openai.AsyncOpenAI(base_url=f"{url}/{index}/v1", api_key="k") as client:
                stream = await client.chat.completions.create(model="m", messages=HI, stream=True)
                assembler = ChatStreamAssembler({})
                async for each in stream:
                    assembler.feed(json.loads(each.to_json()))
            assembler.finish(done=True)
            assert bare(assembler.response["output"]) == bare(wanted["output"])
            assert (assembler.response["status"], assembler.response["usage"]) == (wanted["status"], wanted["usage"])


async def test_the_anthropic_client_reads_our_message_stream() -> None:
    """`messages.stream`, which parses tool inputs as they come: what is no JSON would break it."""
    async with speaking("messages", *WHOLE) as url:
        for index, wanted in enumerate(WANTED):
            client = anthropic.AsyncAnthropic(base_url=f"{url}/{index}", api_key="k")
            async with client, client.messages.stream(model="m", max_tokens=5, messages=HELLO) as stream:
                message = json.loads((await stream.get_final_message()).to_json())
            names = [block["name"] for block in message["content"] if block["type"] == "tool_use"]
            assert names == [item["name"] for item in wanted["output"] if item["type"] == "function_call"]
            said = "".join(block.get("text", "") for block in message["content"])
            parts = [part for item in wanted["output"] if item["type"] == "message" for part in item["content"]]
            assert said == "".join(part.get("text", part.get("refusal")) for part in parts)
            assert message["usage"]["output_tokens"] == wanted["usage"]["output_tokens"]
            assert message["stop_reason"]


async def test_a_failure_in_mid_stream_reaches_every_client() -> None:
    """As the error its client knows; for Responses as `response.failed`."""
    error, begun = Failed("model_error", "the model server broke"), WHOLE[0][:5]
    async with (
        speaking("responses", begun, error=error) as url,
        openai.AsyncOpenAI(base_url=f"{url}/0/v1", api_key="k") as client,
    ):
        stream = await client.responses.create(model="m", input="hi", stream=True)
        last = [event async for event in stream][-1]
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert last.response.error.message == "the model server broke"
    async with (
        speaking("chat", begun, error=error) as url,
        openai.AsyncOpenAI(base_url=f"{url}/0/v1", api_key="k") as client,
    ):
        chat = await client.chat.completions.create(model="m", messages=HI, stream=True)
        with pytest.raises(openai.APIError, match="broke"):
            [_ async for _ in chat]
    async with (
        speaking("messages", begun, error=error) as url,
        anthropic.AsyncAnthropic(base_url=f"{url}/0", api_key="k") as claude,
    ):
        with pytest.raises(anthropic.APIError, match="broke"):
            async with claude.messages.stream(model="m", max_tokens=5, messages=HELLO) as messages:
                await messages.get_final_message()


@pytest.mark.parametrize("dialect", ["responses", "chat", "messages"])
def test_a_finished_response_streams_like_a_growing_one(dialect: Dialect) -> None:
    """For backends that do not stream: the same events but for the number of deltas."""
    answer = TC(("a", "f", '{"x": 1}'), ("b", "g", "{}"), text="Let me see", reasoning="t")
    response = chat_to_response(answer, {})
    told, grown = face(dialect, USAGE), face(dialect, USAGE)
    whole = b"".join(map(told.feed, response_events(response)))
    pieces = b"".join(map(grown.feed, assemble(answer, Streaming(piece=10_000))[1]))
    assert [name for name, _ in parse(whole)] == [name for name, _ in parse(pieces)]


def test_items_that_come_without_deltas_are_told_whole() -> None:
    """Some upstreams send only `output_item.done`."""
    response = chat_to_response(TC(("a", "f", '{"x": 1}'), text="Let me see"), {})
    events = [event for event in response_events(response) if "delta" not in event["type"]]
    chat, messages = face("chat", {}), face("messages", {})
    data = b"".join(map(chat.feed, events))
    assert b"Let me see" in data
    assert rb"{\"x\": 1}" in data
    data = b"".join(map(messages.feed, events))
    assert b'"text":"Let me see"' in data
    assert rb"{\"x\": 1}" in data


def test_our_own_field_reaches_every_dialect() -> None:
    """Token ids and the label of what was achieved, for programs that are captured."""
    own = {"tokens": None, "model_s": 0.5}
    response = {**chat_to_response(MSG("x"), {}), "trivium": own}
    assert response_to_chat(response)["trivium"] == response_to_messages(response)["trivium"] == own
    for dialect in get_args(Dialect):
        told = face(dialect, {})
        assert b'"trivium":{"tokens":null,"model_s":0.5}' in b"".join(map(told.feed, response_events(response)))
