"""A real llama.cpp server streams, and what is put together is what it says at once."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from model_interface import models
from model_interface.streaming import ChatStreamAssembler, ResponsesRelay, SSEParser
from model_interface.translate import chat_to_response, items_to_messages, request_to_chat

pytestmark = pytest.mark.local

JSON = dict[str, Any]
ITEMS: list[JSON] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "Say hi."},
    {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{bad"},
    {"type": "function_call_output", "call_id": "a", "output": "x"},
    {"role": "assistant", "content": ""},
    {"role": "user", "content": "Again."},
]
ASKED = {"max_output_tokens": 8, "temperature": 0, "top_logprobs": 1}


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    """A llama.cpp server with the small model; its URL."""
    xllamacpp = pytest.importorskip("xllamacpp")
    path = models.cache_dir() / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not path.exists():
        pytest.skip("trivium models pull")
    params = xllamacpp.CommonParams()
    params.model.path, params.port, params.n_ctx, params.n_parallel = str(path), 0, 1024, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.use_jinja, params.warmup, params.verbosity = True, False, -1
    server = xllamacpp.Server(params)  # it ends with its last reference
    yield server.listening_address


async def post(url: str, body: JSON) -> bytes:
    async with asyncio.timeout(60), aiohttp.ClientSession() as client, client.post(url, json=body) as answer:
        return await answer.read()


def stream_events(raw: bytes) -> list[JSON]:
    parser = SSEParser()
    return [event.json() for event in [*parser.feed(raw), *parser.close()] if not event.done]


async def test_a_real_stream_is_the_real_answer(llama: str) -> None:
    """A repaired history is taken, and both ways give the same text, usage and log-probs."""
    body = request_to_chat(ASKED) | {"messages": items_to_messages(ITEMS)}
    at_once = chat_to_response(json.loads(await post(f"{llama}/v1/chat/completions", body)), ASKED)
    assembler = ChatStreamAssembler(ASKED)
    for chunk in stream_events(
        await post(f"{llama}/v1/chat/completions", {**body, "stream": True, "stream_options": {"include_usage": True}})
    ):
        assembler.feed(chunk)
    assembler.finish(done=True)
    streamed = assembler.response
    assert streamed["output"][0]["content"][0]["text"] == at_once["output"][0]["content"][0]["text"] != ""
    assert streamed["usage"]["output_tokens"] == at_once["usage"]["output_tokens"] == 8
    assert len(streamed["output"][0]["content"][0]["logprobs"]) == 8
    assert (streamed["status"], at_once["status"]) == ("incomplete", "incomplete")


async def test_a_real_responses_stream_is_relayed(llama: str) -> None:
    """Its events, with the indexes that it leaves out."""
    relay = ResponsesRelay("resp_ours")
    body = {"model": "m", "input": "Say hi.", "max_output_tokens": 8, "temperature": 0, "stream": True}
    passed = [each for event in stream_events(await post(f"{llama}/v1/responses", body)) for each in relay.feed(event)]
    relay.finish()
    text = "".join(event["delta"] for event in passed if event["type"] == "response.output_text.delta")
    assert relay.response["output"][0]["content"][0]["text"] == text != ""
    assert all("output_index" in event for event in passed if "item_id" in event)
