"""A real vLLM (`-m vllm`, its address in VLLM_URL): the prefix property over tool turns, and log-probs that re-score to the same values."""

import os
from typing import Any

import aiohttp
import pytest

from tests.model_interface.conftest import TOOL, Caller, interface

pytestmark = [pytest.mark.vllm, pytest.mark.skipif("VLLM_URL" not in os.environ, reason="VLLM_URL is not set")]


async def episode(model: Caller, output: Any) -> list[Any]:
    """Four turns: a call that is forced, then whatever the model says to a tool's output and to its user."""
    choice = {"type": "function", "name": "get_weather"}
    first = await model.ask(
        {"input": "Weather in Paris?", "tools": [TOOL], "tool_choice": choice, "max_output_tokens": 48}
    )
    replies = [first]
    for _ in range(3):
        calls = [item for item in replies[-1]["output"] if item["type"] == "function_call"]
        new = [output(call) for call in calls] or [{"role": "user", "content": "Go on."}]
        replies.append(
            await model.ask(
                {"previous_response_id": replies[-1]["id"], "input": new, "tools": [TOOL], "max_output_tokens": 24}
            )
        )
    return replies


async def test_a_tool_episode_has_the_prefix_property_and_rescores() -> None:
    """Every exact step continues the one before; the server, given the whole, scores each generated token as it was recorded.

    Not so those of the first step: its call is forced by a grammar, and vLLM's log-probs are then those of the masked distribution.
    """
    url = os.environ["VLLM_URL"]

    def output(call: Any) -> Any:
        return {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}

    async with interface(backend="vllm", base_url=url, token_ids="required", timeout_s=120) as model:
        replies = await episode(model, output)
        name = replies[0]["model"]
    ids: list[int] = []
    for number, reply in enumerate(replies):
        tokens = reply["trivium"]["tokens"]
        ids = (ids if tokens["fidelity"] == "exact" else []) + tokens["prompt_token_ids"]
        if number:
            scores = await prompt_scores(url, name, ids + tokens["generation_token_ids"])
            assert scores[len(ids) :] == pytest.approx(tokens["generation_log_probs"], abs=0.02)
        ids += tokens["generation_token_ids"]
    assert replies[0]["trivium"]["tokens"]["fidelity"] == "exact"


async def prompt_scores(url: str, model: str, ids: list[int]) -> list[float]:
    """The log-probability of each id after those before it."""
    body = {"model": model, "prompt": ids, "max_tokens": 1, "prompt_logprobs": 0}
    async with aiohttp.ClientSession() as http, http.post(f"{url}/completions", json=body) as answer:
        scored = (await answer.json())["choices"][0]["prompt_logprobs"]
    return [0.0 if each is None else each[str(token)]["logprob"] for each, token in zip(scored, ids, strict=True)]


async def test_native_calls_go_on_exactly_in_tokens() -> None:
    """The model calls in Hermes' form of its own will: by chat first, then by ids; what it was given is what it saw, and scores again."""
    url, outputs = os.environ["VLLM_URL"], iter(["sunny", "rain", "snow", "done"])
    body = {"input": "Weather in Rome?", "tools": [TOOL], "temperature": 0, "max_output_tokens": 64}
    async with interface(backend="vllm", base_url=url, model="tiny", token_ids="required", timeout_s=120) as model:
        replies = [await model.ask(body)]
        while replies[-1]["output"][-1]["type"] == "function_call":
            call = replies[-1]["output"][-1]
            assert (call["name"], call["arguments"]) == ("get_weather", '{"city": "Rome"}')
            answer = {"type": "function_call_output", "call_id": call["call_id"], "output": next(outputs)}
            replies.append(await model.go_on(replies[-1], answer))
    assert replies[-1]["output"][-1]["content"][0]["text"] == "It is done." and len(replies) == 5
    assert [reply["trivium"]["tokens"]["fidelity"] for reply in replies] == ["exact"] * 5
    ids: list[int] = []
    for reply in replies:
        tokens = reply["trivium"]["tokens"]
        ids += tokens["prompt_token_ids"]
        scores = await prompt_scores(url, "tiny", ids + tokens["generation_token_ids"])
        assert scores[len(ids) :] == pytest.approx(tokens["generation_log_probs"], abs=0.02)
        ids += tokens["generation_token_ids"]


async def test_constrained_calls_go_on_exactly_in_tokens() -> None:
    """Three forced calls: after the first step each is sent as ids, the server says it saw those ids, and each is a call that parses."""
    city = {
        "type": "object",
        "properties": {"city": {"enum": ["Paris"]}},
        "required": ["city"],
        "additionalProperties": False,
    }
    body = {
        "input": "Weather?",
        "tools": [{**TOOL, "parameters": city}],
        "tool_choice": "required",
        "max_output_tokens": 250,  # a model of random weights may put in a lot of white space
    }
    settings: dict[str, Any] = {"token_ids": "required", "tool_calls": "constrained", "timeout_s": 120}
    async with interface(backend="vllm", base_url=os.environ["VLLM_URL"], model="tiny", **settings) as model:
        replies = [await model.ask(body)]
        for _ in range(2):
            new = {"type": "function_call_output", "call_id": replies[-1]["output"][0]["call_id"], "output": "sunny"}
            replies.append(await model.go_on(replies[-1], new))
    assert [reply["output"][0]["name"] for reply in replies] == ["get_weather"] * 3
    assert [reply["trivium"]["tokens"]["fidelity"] for reply in replies] == ["exact"] * 3
    assert len(replies[2]["trivium"]["tokens"]["prompt_token_ids"]) < len(
        replies[0]["trivium"]["tokens"]["prompt_token_ids"]
    )
