"""The real small model on this machine (`-m local`): episodes in tokens, re-scored by the model itself."""

import os
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from model_interface import models
from tests.model_interface.conftest import Caller, interface

pytestmark = pytest.mark.local

RESERVE = {
    "type": "function",
    "name": "reserve",
    "description": "Take units of one product off the shelf.",
    "parameters": {
        "type": "object",
        "properties": {"product": {"type": "string"}, "units": {"type": "integer"}},
        "required": ["product", "units"],
        "additionalProperties": False,
    },
}
LIST = {
    "type": "function",
    "name": "list_stock",
    "description": "Say what is left.",
    "parameters": {"type": "object", "properties": {}},
}


@pytest.fixture
async def model() -> AsyncIterator[Caller]:
    models.pull()
    async with interface(backend="local", token_ids="required") as caller:
        yield caller


async def episode(model: Caller, output: Any, steps: int = 3) -> list[dict[str, Any]]:
    """Replies of one conversation with tool calls."""
    replies = [await model.ask({"input": "Reserve two bolts.", "tools": [RESERVE, LIST], "tool_choice": "required"})]
    for _ in range(steps - 1):
        replies.append(await model.go_on(replies[-1], output(replies[-1]["output"][0], '{"number": 1}')))
    return replies


async def test_every_step_is_a_call_that_parses_and_goes_on_exactly(model: Caller, output: Any) -> None:
    """Three steps of constrained calls; each but the first is a delta, with one log-probability per token."""
    for reply in await episode(model, output):
        call, tokens = reply["output"][0], reply["trivium"]["tokens"]
        assert call["name"] in ("reserve", "list_stock")
        assert tokens["fidelity"] == "exact"
        assert len(tokens["generation_token_ids"]) == len(tokens["generation_log_probs"]) > 0


async def test_log_probabilities_rescore_to_the_same_values(model: Caller, output: Any) -> None:
    """llama.cpp, given the ids so far and made to take the next one, gives it the log-probability that was recorded.

    Its 4-bit kernels round differently for a batch and for one token: 0.05 on average, 0.25 at most, whatever the settings.
    """
    off: list[float] = []
    ids: list[int] = []
    for reply in await episode(model, output, steps=2):
        tokens = reply["trivium"]["tokens"]
        ids += tokens["prompt_token_ids"]
        for token, log_prob in zip(tokens["generation_token_ids"], tokens["generation_log_probs"], strict=True):
            off.append(abs(await rescored(model, ids, token) - log_prob))
            ids.append(token)
    assert max(off) < 0.5
    assert sum(off) / len(off) < 0.1


async def rescored(model: Caller, ids: list[int], token: int) -> float:
    address = model.app.facts["llama_cpp"]
    body = {
        "prompt": ids,
        "n_predict": 1,
        "n_probs": 1,
        "logit_bias": [[token, 100]],
        "temperature": 0,
        "cache_prompt": True,
        "id_slot": 3,
    }
    async with aiohttp.ClientSession() as http, http.post(f"{address}/completion", json=body) as answer:
        return float((await answer.json())["completion_probabilities"][0]["logprob"])


async def test_structured_output_without_tools(model: Caller) -> None:
    """`text.format` holds the answer to its schema."""
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "name": "place", "schema": schema}
    reply = await model.ask({"input": "What is the capital of France?", "text": {"format": form}})
    assert reply["output"][0]["content"][0]["text"].startswith('{"city": "')


async def test_a_prompt_over_the_context_ends_the_episode(model: Caller) -> None:
    """Not an error: incomplete, context_window, nothing said."""
    reply = await model.ask({"input": "word " * 6000})
    assert (reply["status"], reply["incomplete_details"]["reason"]) == ("incomplete", "context_window")
    assert reply["output"] == []


def test_a_model_is_pulled_once_and_checked(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with the right size and the wrong bytes is fetched again."""
    monkeypatch.setenv("TRIVIUM_CACHE", str(tmp_path))
    path = models.pull()
    os.truncate(path, 0)
    os.truncate(path, models.find(models.DEFAULT).bytes)
    assert models.pull() == path
    assert path.read_bytes()[:4] == b"GGUF"
