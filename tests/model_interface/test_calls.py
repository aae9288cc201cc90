"""One call of the model from request to answer, with the scripted backend."""

from typing import Any

import pytest
from pydantic import BaseModel

from model_interface.backend import read_options
from model_interface.settings import ModelInterfaceSettings
from tests.model_interface.conftest import TOOL, interface
from wire.errors import UsageError
from wire.testing import serving
from wire.testing.upstream import MSG, TC, Upstream

SCRIPT = {"turns": [{"calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]}, "It rains."], "tokens": True}


async def test_a_conversation_goes_on_from_the_previous_response(output: Any) -> None:
    """Only the call's output is sent; the script's second turn comes, and names what it followed."""
    async with interface(backend="scripted", options=SCRIPT) as model:
        first = await model.ask({"input": "Weather?", "tools": [TOOL]})
        second = await model.go_on(first, output(first["output"][0]))
    assert first["output"][0]["arguments"] == '{"city":"Paris"}'
    assert second["output"][0]["content"][0]["text"] == "It rains."
    assert second["previous_response_id"] == first["id"]


async def test_a_lost_conversation_is_said_so_and_taken_up_again_with_its_ids(output: Any) -> None:
    """404 previous_response_not_found; the whole conversation with its ids then gives an exact delta."""
    async with interface(backend="scripted", options=SCRIPT) as model:
        first = await model.ask({"input": "Weather?"})
        new = output(first["output"][0])
        status, body = await model.post("/v1/responses", {"previous_response_id": "resp_gone", "input": [new]})
        assert (status, body["error"]["code"]) == (404, "previous_response_not_found")
        items = [{"role": "user", "content": "Weather?"}, *first["output"], new]
        again = await model.ask({"input": items, "trivium": {"steps": [first["trivium"]["tokens"]]}})
        straight = await model.go_on(first, new)
    assert again["trivium"]["tokens"] == straight["trivium"]["tokens"]
    assert again["trivium"]["tokens"]["fidelity"] == "exact"


async def test_going_on_twice_from_one_response_makes_two_branches(output: Any) -> None:
    """The second continuation does not see the first one's items."""
    async with interface(backend="scripted", options=SCRIPT) as model:
        first = await model.ask({"input": "Weather?"})
        one = await model.go_on(first, output(first["output"][0], "sun"))
        two = await model.go_on(first, output(first["output"][0], "sun"))
    assert one["trivium"]["tokens"] == two["trivium"]["tokens"]
    assert one["id"] != two["id"]


@pytest.mark.parametrize("backend", ["chat", "vllm"])
async def test_a_refused_step_changes_nothing(backend: str, output: Any) -> None:
    """Whatever of it came before the item that is refused: the right one after it is asked as if there had been none."""
    script = [TC(("c1", "get_weather", "{}")), TC(("c2", "get_weather", "{}")), MSG("Sunny.")]
    bodies, tokens = [], []
    for wrong in (False, True):
        up = Upstream(script)
        async with serving(up=up) as urls, interface(backend=backend, base_url=urls["up"], model="m") as model:
            first = await model.ask({"input": "Weather?", "tools": [TOOL]})
            second = await model.go_on(first, output(first["output"][0]))
            right = output(second["output"][0])
            if wrong:
                step = {"previous_response_id": second["id"], "input": [right, output({"call_id": "nobody's"})]}
                status, reply = await model.post("/v1/responses", step, X_Inherit_Params="1")
                assert (status, reply["error"]["param"]) == (400, "input[5].call_id")
            third = await model.go_on(second, right)
        bodies.append(up.bodies)
        tokens.append(third["trivium"]["tokens"])
    assert bodies[0] == bodies[1]
    assert tokens[0] == tokens[1]


async def test_what_is_wrong_in_a_request_is_named() -> None:
    """An unknown field, role, item type or parameter gives a 4xx with its path."""
    cases: list[tuple[Any, str]] = [
        ({"input": "x", "max_ouput_tokens": 3}, "max_ouput_tokens"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": [{"type": "function_cal"}]}, "input[0].type"),
        ({"input": "x", "temperature": "hot"}, "temperature"),
        ({"model": "m"}, "input"),
    ]
    async with interface(backend="scripted") as model:
        for body, param in cases:
            status, reply = await model.post("/v1/responses", body)
            assert 400 <= status < 500
            assert reply["error"]["param"] == param


async def test_conversations_are_bounded_in_number() -> None:
    """With room for one, the older of two is forgotten."""
    async with interface(backend="scripted", conversations={"max": 1}) as model:
        first = await model.ask({"input": "a"})
        second = await model.ask({"input": "b"})
        body = {"previous_response_id": first["id"], "input": "c"}
        assert (await model.post("/v1/responses", body))[0] == 404
        await model.go_on(second, {"role": "user", "content": "c"})


def test_a_boolean_is_no_number_among_a_backends_options() -> None:
    """As in every other section of a config; each wrong one is named."""
    settings = ModelInterfaceSettings(backend="chat", options={"tries": True, "share": False, "loud": True})
    with pytest.raises(UsageError) as refused:
        read_options(Knobs, settings)
    assert str(refused.value).count("a number is wanted") == 2
    assert "model_interface.options.tries is True" in str(refused.value)


class Knobs(BaseModel):
    tries: int
    share: float
    loud: bool
