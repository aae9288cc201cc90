"""The fake upstream does what its docstrings promise, so that a test which uses it proves something."""

import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from wire.testing import serving, tokens
from wire.testing import upstream as upstream_module
from wire.testing.answers import Answer
from wire.testing.upstream import (
    MSG,
    RESPONSE,
    TC,
    Upstream,
    as_text,
    cut,
    dropped,
    error_inside,
    faults,
    gzipped,
    html,
    never,
    refused,
    slowly,
    streamed,
)

JSON = dict[str, Any]
CHAT = "/v1/chat/completions"
USER = {"role": "user", "content": "hi"}


def call(call_id: str = "a", arguments: Any = "{}") -> JSON:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": arguments}}


def turn(*calls: JSON, **fields: Any) -> JSON:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **fields}


def tool(call_id: str = "a") -> JSON:
    return {"role": "tool", "tool_call_id": call_id, "content": "x"}


async def ask(upstream: Upstream, *bodies: JSON, path: str = CHAT, **headers: str) -> list[tuple[int, bytes]]:
    async with serving(up=upstream) as urls, aiohttp.ClientSession() as client:
        answers = []
        for body in bodies:
            async with client.post(urls["up"] + path, json=body, headers=headers) as answer:
                answers.append((answer.status, await answer.read()))
        return answers


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([turn(call(arguments="{bad")), tool()], "not the text of a JSON object"),
        ([turn(call(arguments={"a": 1})), tool()], "not the text of a JSON object"),
        ([turn(call(arguments="[1]")), tool()], "not the text of a JSON object"),
        ([{"role": "assistant", "content": "x", "tool_calls": []}], "empty list"),
        ([{"role": "assistant", "content": ""}], "neither content nor tool calls"),
        ([tool()], "no call is waiting"),
        ([turn(call()), USER], "has no answer"),
        ([turn(call())], "has no answer"),
        ([turn(call()), tool(), turn(call()), tool()], "occurs twice"),
    ],
)
async def test_each_strict_check_answers_400(messages: list[JSON], words: str) -> None:
    """The five of the cases."""
    upstream = Upstream()
    [(status, body)] = await ask(upstream, {"messages": [USER, *messages]})
    assert status == 400
    assert words in json.loads(body)["error"]["message"]
    assert words in upstream.refused[0]


def test_a_sound_history_has_no_faults() -> None:
    """Parallel calls answered in another order included."""
    assert (
        faults([USER, turn(call("a"), call("b")), tool("b"), tool("a"), {"role": "assistant", "content": "x"}, USER])
        == []
    )


async def test_answers_come_in_order_then_done() -> None:
    """As the cases say: when the list runs out it answers MSG("done")."""
    replies = await ask(Upstream([TC(("a", "f", "{}")), MSG("x")]), *({"messages": [USER]} for _ in range(4)))
    messages = [json.loads(body)["choices"][0]["message"] for _, body in replies]
    assert [message["content"] for message in messages] == [None, "x", "done", "done"]


async def test_turns_are_told_by_the_conversation() -> None:
    """So that many rollouts run at once and a repeated request gets the same answer."""
    second = {"messages": [USER, {"role": "assistant", "content": "one"}, USER]}
    replies = await ask(Upstream(turns=[MSG("one"), MSG("two")]), second, {"messages": [USER]}, second)
    assert [json.loads(body)["choices"][0]["message"]["content"] for _, body in replies] == ["two", "one", "two"]


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (refused(429, Retry_After="2"), 429, b"scripted 429"),
        (html(), 502, b"<html>bad gateway</html>"),
        (error_inside(), 200, b'{"error":{"message":"overloaded"}}'),
        (as_text(MSG("x")), 200, b'"content":"x"'),
        (gzipped(MSG("x")), 200, b'"content":"x"'),
        (slowly(MSG("x"), 0.01), 200, b'"content":"x"'),
        (lambda body: MSG(body["messages"][0]["content"]), 200, b'"content":"hi"'),
    ],
)
async def test_scripted_answers_arrive_as_ordered(answer: Answer, status: int, body: bytes) -> None:
    """Statuses, pages, errors inside a 200, other types and encodings, functions of the request."""
    [(got, content)] = await ask(Upstream([answer]), {"messages": [USER]})
    assert got == status
    assert body in content


@pytest.mark.parametrize("answer", [cut(MSG("x")), dropped()])
async def test_a_connection_can_be_cut(answer: Answer) -> None:
    """After 40 bytes of a longer body, or before any."""
    with pytest.raises((aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError)):
        await ask(Upstream([answer]), {"messages": [USER]})


async def test_an_answer_can_never_come() -> None:
    """The server waits until the caller has left."""
    upstream = Upstream([never()])
    async with serving(up=upstream) as urls, aiohttp.ClientSession() as client:
        with pytest.raises(TimeoutError):
            await client.post(urls["up"] + CHAT, json={"messages": [USER]}, timeout=aiohttp.ClientTimeout(total=0.1))
    assert upstream.calls == 1


async def test_the_key_is_checked() -> None:
    """401 without the right one."""
    upstream = Upstream(api_key="k")
    assert [status for status, _ in await ask(upstream, {"messages": [USER]})] == [401]
    assert [status for status, _ in await ask(upstream, {"messages": [USER]}, Authorization="Bearer k")] == [200]


async def test_a_long_prompt_is_refused_in_vllms_words() -> None:
    """With the model's length set."""
    [(status, body)] = await ask(Upstream(max_model_len=5), {"messages": [USER]})
    assert status == 400
    assert b"maximum context length is 5 tokens" in body


async def test_token_ids_and_log_probs_come_as_vllm_gives_them() -> None:
    """Only where asked for; one log-prob per generated token; the prompt's ids are those of /tokenize."""
    asked = {"messages": [USER], "return_token_ids": True, "logprobs": True}
    upstream = Upstream([MSG("yes"), MSG("yes")])
    [(_, body), (_, plain)] = await ask(upstream, asked, {"messages": [USER]})
    [(_, tokenized)] = await ask(upstream, {"messages": [USER], "add_generation_prompt": True}, path="/tokenize")
    answer = json.loads(body)
    choice = answer["choices"][0]
    assert answer["prompt_token_ids"] == json.loads(tokenized)["tokens"]
    assert choice["token_ids"] == [*b"yes", tokens.END]
    assert len(choice["logprobs"]["content"]) == 4
    assert b"token_ids" not in plain


async def test_a_token_prompt_gets_tokens_back() -> None:
    """/v1/completions, with a call in its tags, and the turn told by the tokens."""
    prompt = tokens.prompt_ids([USER])
    body = {"prompt": prompt, "return_token_ids": True, "logprobs": 1}
    [(_, answer)] = await ask(Upstream(turns=[TC(("a", "f", '{"x":1}'))]), body, path="/v1/completions")
    choice = json.loads(answer)["choices"][0]
    assert choice["prompt_token_ids"] == prompt
    assert tokens.decode(choice["token_ids"]) == choice["text"] + "<|im_end|>"
    assert choice["text"].startswith('\n<tool_call>\n{"name": "f", "arguments": {"x":1}}')
    assert len(choice["logprobs"]["token_logprobs"]) == len(choice["token_ids"])


def test_history_renders_to_the_ids_that_were_generated() -> None:
    """The prefix property holds for the toy model, so that a break of it is the caller's."""
    message = TC(("a", "f", '{ "x": 1 }'), text="Grüße")["choices"][0]["message"]
    before, said = tokens.prompt_ids([USER]), tokens.generation_ids(message)
    after = tokens.prompt_ids([USER, message, tool()])
    assert after[: len(before) + len(said)] == before + said
    assert tokens.decode(tokens.encode("Grüße<|im_end|>\n")) == "Grüße<|im_end|>\n"


@pytest.mark.parametrize("how", [{}, {"comments": True}, {"chunk_bytes": 1}, {"newline": "\r\n"}, {"done": False}])
async def test_streams_carry_the_whole_answer(how: JSON) -> None:
    """In any manner that the standard allows."""
    body = {"messages": [USER], "stream": True, "stream_options": {"include_usage": True}, "return_token_ids": True}
    [(status, raw)] = await ask(Upstream([streamed(MSG("Grüße"), **how)]), body)
    lines = raw.decode().replace("\r\n", "\n").split("\n")
    data = [line[6:] for line in lines if line.startswith("data: ")]
    assert status == 200
    assert (data[-1] == "[DONE]") == how.get("done", True)
    chunks = [json.loads(each) for each in data if each != "[DONE]"]
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"]) == "Grüße"
    ids = [each for chunk in chunks if chunk["choices"] for each in chunk["choices"][0].get("token_ids", [])]
    assert ids == [*"Grüße".encode(), tokens.END]
    assert chunks[-1]["usage"]["total_tokens"] == 25


async def test_an_error_can_end_a_stream() -> None:
    """As an event of its own."""
    [(_, raw)] = await ask(Upstream([streamed(MSG("abcdef"), error_after=2)]), {"messages": [USER], "stream": True})
    assert raw.endswith(
        b'event: error\ndata: {"error": {"message": "scripted stream error", "type": "server_error"}}\n\n'
    )


async def test_responses_are_answered_as_scripted() -> None:
    """For backends that speak Responses upstream."""
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}
    [(_, body), (_, stream)] = await ask(
        Upstream([RESPONSE(item), RESPONSE(item)]),
        {"input": "hi"},
        {"input": "hi", "stream": True},
        path="/v1/responses",
    )
    assert json.loads(body)["output"] == [item]
    assert b"event: response.completed\n" in stream
    assert b"[DONE]" not in stream


async def test_the_model_is_listed() -> None:
    """/v1/models."""
    async with (
        serving(up=Upstream(model="q")) as urls,
        aiohttp.ClientSession() as client,
        client.get(urls["up"] + "/v1/models") as answer,
    ):
        assert (await answer.json())["data"][0]["id"] == "q"


async def test_the_page_about_it_is_true() -> None:
    """The example of docs/how-to/fake-upstream.md, with an agent that does as little as it must."""
    page = (Path(__file__).parents[2] / "docs/how-to/fake-upstream.md").read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0]

    async def my_agent(base_url: str) -> None:
        async with aiohttp.ClientSession() as client:
            for _ in range(4):
                async with client.post(f"{base_url}/chat/completions", json={"messages": [USER]}) as answer:
                    await answer.read()

    names: JSON = {"my_agent": my_agent}
    exec(code, names)
    await names["test_my_agent_survives_a_rate_limit_and_a_gateway_page"]()
    shown = set(re.findall(r"`(\w+)\(", page)) - {"test_my_agent_survives_a_rate_limit_and_a_gateway_page"}
    assert shown <= set(vars(upstream_module))
