"""Token ids across tool turns: the vllm backend against the strict fake upstream, which gives ids as vLLM does."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from tests.model_interface.conftest import TOOL, interface
from wire.testing import serving
from wire.testing import upstream as fake
from wire.testing.upstream import MSG, TC, Upstream

CALLS = [
    TC((f"call_{number}", "get_weather", f'{{"city": "{city}"}}'))
    for number, city in enumerate(["Paris", "Rome", "Bonn"])
]


async def episode(up: Upstream, output: Any, **settings: Any) -> list[Any]:
    async with serving(up=up) as urls, interface(backend="vllm", base_url=urls["up"], model="m", **settings) as model:
        replies = [await model.ask({"input": "Weather?", "tools": [TOOL]})]
        while replies[-1]["output"][-1]["type"] == "function_call":
            replies.append(await model.go_on(replies[-1], *(output(call) for call in replies[-1]["output"])))
    assert up.refused == []
    return replies


def whole_ids(replies: list[Any]) -> list[int]:
    ids: list[int] = []
    for reply in replies:
        tokens = reply["trivium"]["tokens"]
        ids += tokens["prompt_token_ids"] + tokens["generation_token_ids"]
    return ids


async def test_later_steps_go_in_tokens_and_are_exact(output: Any) -> None:
    """The first by chat, the rest by /v1/completions with the ids so far; each prompt begins with what came before."""
    up = Upstream([*CALLS, MSG("Sunny.")])
    replies = await episode(up, output, token_ids="required")
    assert [each.path.rpartition("/v1")[2] for each in up.received] == ["/chat/completions", *["/completions"] * 3]
    assert [reply["trivium"]["tokens"]["fidelity"] for reply in replies] == ["exact"] * 4
    last = replies[-1]["trivium"]["tokens"]
    assert whole_ids(replies) == up.bodies[-1]["prompt"] + last["generation_token_ids"]
    assert replies[1]["output"][0]["arguments"] == '{"city": "Rome"}'
    assert replies[-1]["output"][0]["content"][0]["text"] == "Sunny."


def altered(monkeypatch: pytest.MonkeyPatch, change: Callable[[dict[str, Any], dict[str, Any], int], None]) -> None:
    """Completions are as `change` leaves them; it gets the answer, the request, and how many came before."""
    real, number = fake._as_completion, count()

    def completion(answer: Any, body: Any, prompt: Any) -> Any:
        made = real(answer, body, prompt)
        change(made, body, next(number))
        return made

    monkeypatch.setattr(fake, "_as_completion", completion)


async def test_the_echo_of_the_prompt_is_asked_for_until_it_is_known_to_be_needless(output: Any) -> None:
    """It grows with the episode; a server that was seen to take ids as they are, and that names those it samples, is spared it."""
    up = Upstream([*CALLS, MSG("Sunny.")])
    replies = await episode(up, output, token_ids="required")
    assert [each.get("return_token_ids") for each in up.bodies] == [True, True, None, None]
    assert [reply["trivium"]["tokens"]["fidelity"] for reply in replies] == ["exact"] * 4
    for reply, body in zip(replies[1:], up.bodies[1:], strict=True):
        new = reply["trivium"]["tokens"]["prompt_token_ids"]
        assert body["prompt"][-len(new) :] == new


async def test_nor_is_it_asked_for_where_calls_are_constrained(output: Any) -> None:
    """Whose requests are made of the chat's parameters."""
    calls = [MSG('{"tool": "get_weather", "arguments": {"city": "Rome"}}')] * 3
    up = Upstream([*calls, MSG('{"answer": "Sunny."}')])
    replies = await episode(up, output, token_ids="required", tool_calls="constrained")
    assert [each.get("return_token_ids") for each in up.bodies] == [True, True, None, None]
    assert [reply["trivium"]["tokens"]["fidelity"] for reply in replies] == ["exact"] * 4


async def test_a_server_that_does_not_name_ids_is_asked_for_the_echo_each_time(
    output: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token's text that looks like a number is no id."""

    def numbers(made: Any, body: Any, before: int) -> None:
        made["choices"][0]["logprobs"]["tokens"] = [str(each) for each in made["choices"][0]["token_ids"]]

    altered(monkeypatch, numbers)
    up = Upstream([*CALLS, MSG("Sunny.")])
    replies = await episode(up, output)
    assert [each.get("return_token_ids") for each in up.bodies] == [True] * 4
    assert [reply["trivium"]["tokens"]["fidelity"] for reply in replies] == ["exact"] * 4


@pytest.mark.parametrize("echo", [True, False])
async def test_a_prompt_that_was_not_taken_as_it_is_is_not_exact(
    output: Any, monkeypatch: pytest.MonkeyPatch, echo: bool
) -> None:
    """A server that puts an id before the prompt, seen by the echo or by the count, which is not trusted any more then."""

    def added(made: Any, body: Any, before: int) -> None:
        if before == (0 if echo else 1):
            made["usage"]["prompt_tokens"] += 1
            if echo:
                made["choices"][0]["prompt_token_ids"].insert(0, 7)

    altered(monkeypatch, added)
    up = Upstream([*CALLS, MSG("Sunny.")])
    replies = await episode(up, output)
    found = [reply["trivium"]["tokens"]["fidelity"] for reply in replies]
    assert found == ["exact", "retokenized", "exact", "exact"] if echo else ["exact", "exact", "retokenized", "exact"]
    assert [each.get("return_token_ids") for each in up.bodies] == [
        True,
        True,
        True if echo else None,
        None if echo else True,
    ]


async def test_ids_that_are_not_named_any_more_are_lost_and_said_to_be(
    output: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replicas differ: a step without ids, then a new segment."""

    def unnamed(made: Any, body: Any, before: int) -> None:
        if before == 1:
            made["choices"][0]["logprobs"]["tokens"] = ["a"] * len(made["choices"][0]["logprobs"]["tokens"])

    altered(monkeypatch, unnamed)
    up = Upstream([*CALLS, MSG("Sunny.")])
    replies = await episode(up, output)
    assert replies[2]["trivium"]["tokens"] is None
    assert replies[3]["trivium"]["tokens"]["fidelity"] in ("exact", "retokenized", "forked")
    assert up.received[3].path.endswith("/chat/completions")


async def test_ids_and_log_probabilities_are_all_there_and_equally_long(output: Any) -> None:
    """One finite log-probability per generated id, in every step."""
    for reply in await episode(Upstream([*CALLS, MSG("Sunny.")]), output):
        tokens = reply["trivium"]["tokens"]
        assert len(tokens["generation_token_ids"]) == len(tokens["generation_log_probs"]) > 0


async def test_a_server_whose_parser_differs_is_asked_by_chat_and_labelled(output: Any) -> None:
    """The generated text holds no call that ours can read: chat all the way; what goes on exactly is exact, the rest is not."""
    odd = TC(("c1", "get_weather", '{"city": "Paris"}'))
    odd["choices"][0]["token_ids"] = [1, 2, 3]
    odd["choices"][0]["logprobs"] = {"content": [{"token": "x", "logprob": -0.1}] * 3}
    odd["prompt_token_ids"] = [9, 9]
    replies = await episode(Upstream([odd, MSG("Sunny.")]), output)
    first, second = (reply["trivium"]["tokens"] for reply in replies)
    assert first["generation_token_ids"] == [1, 2, 3]
    assert second["fidelity"] == "retokenized"
    assert second["prompt_token_ids"][:1] == [256]


async def test_no_ids_is_no_tokens_and_a_failure_where_they_are_required() -> None:
    """A server that gives none: null; with token_ids: required, a typed failure."""
    bare = MSG("ok")
    bare["choices"][0] |= {"token_ids": None, "logprobs": None}
    for settings, status in (({}, 200), ({"token_ids": "required"}, 502)):
        async with (
            serving(up=Upstream([bare])) as urls,
            interface(backend="vllm", base_url=urls["up"], **settings) as model,
        ):
            got, reply = await model.post("/v1/responses", {"input": "x"})
        assert got == status
        assert status != 200 or reply["trivium"]["tokens"] is None


async def test_unequal_or_infinite_lists_are_no_tokens() -> None:
    """All three or none."""
    for ids, scores in (([1, 2], [-0.1]), ([1], [None]), (["1"], [-0.1])):
        answer = MSG("ok")
        content = [{"token": "x", "logprob": score} for score in scores]
        answer["choices"][0] |= {"token_ids": ids, "logprobs": {"content": content}}
        async with serving(up=Upstream([answer])) as urls, interface(backend="vllm", base_url=urls["up"]) as model:
            assert (await model.ask({"input": "x"}))["trivium"]["tokens"] is None


async def test_a_resend_with_ids_stays_exact_and_one_without_is_forked(output: Any) -> None:
    """After previous_response_not_found the agent sends all; its ids make the next step a delta again."""
    up = Upstream([CALLS[0], CALLS[0], MSG("Sunny."), MSG("Sunny.")])
    async with serving(up=up) as urls, interface(backend="vllm", base_url=urls["up"], model="m") as model:
        first = await model.ask({"input": "Weather?", "tools": [TOOL]})
        tokens = first["trivium"]["tokens"]
        items = [{"role": "user", "content": "Weather?"}, *first["output"], output(first["output"][0])]
        body = {"input": items, "tools": [TOOL]}
        await model.ask({"input": "Weather?", "tools": [TOOL]})
        kept = await model.ask({**body, "trivium": {"steps": [tokens]}})
        lost = await model.ask({**body, "trivium": {"steps": [None]}})
    start = tokens["prompt_token_ids"] + tokens["generation_token_ids"]
    assert kept["trivium"]["tokens"]["fidelity"] == "exact"
    assert kept["trivium"]["tokens"]["prompt_token_ids"][:1] != start[:1]
    assert lost["trivium"]["tokens"]["fidelity"] == "forked"
    assert (
        lost["trivium"]["tokens"]["prompt_token_ids"][: len(tokens["prompt_token_ids"])] == tokens["prompt_token_ids"]
    )


async def test_ng_rollout_puts_whole_ids_on_the_last_item() -> None:
    """As NeMo Gym and NeMo RL read them."""
    async with serving(up=Upstream([MSG("ok")])) as urls, interface(backend="vllm", base_url=urls["up"]) as model:
        status, reply = await model.post("/ng-rollout/abc/v1/responses", {"input": "x"})
    item = reply["output"][-1]
    assert status == 200
    assert len(item["generation_token_ids"]) == len(item["generation_log_probs"]) > 0
    assert item["prompt_token_ids"][0] == 256


async def test_a_branch_from_before_a_break_in_the_ids_does_not_claim_them(output: Any) -> None:
    """The second step was retokenized; going on from the first starts a new segment, with its whole prompt."""
    odd = TC(("c1", "get_weather", '{"city": "Paris"}'))
    odd["choices"][0] |= {"token_ids": [1, 2, 3], "logprobs": {"content": [{"token": "x", "logprob": -0.1}] * 3}}
    odd["prompt_token_ids"] = [9, 9]
    up = Upstream([odd, MSG("Sunny."), MSG("Sunny.")])
    async with serving(up=up) as urls, interface(backend="vllm", base_url=urls["up"], model="m") as model:
        first = await model.ask({"input": "Weather?", "tools": [TOOL]})
        await model.go_on(first, output(first["output"][0]))
        again = await model.go_on(first, output(first["output"][0]))
    assert again["trivium"]["tokens"]["fidelity"] == "forked"
    assert again["trivium"]["tokens"]["prompt_token_ids"][0] == 256
