"""The environment `tool_calls`: what each part of the reward is given for."""

import json
from typing import Any

import pytest

from resources_server import Response
from resources_server.environments.tool_calls import ToolCalls
from tests.stack import run, stack
from wire.testing import serving
from wire.testing.upstream import TC, Upstream

ROW = {
    "expected": [
        {"name": "set_timer", "arguments": {"minutes": 5}},
        {"name": "play_music", "arguments": {"query": "slow jazz", "room": "hall"}},
    ]
}
TIMER = ("set_timer", {"minutes": 5, "label": ""})
MUSIC = ("play_music", {"query": "Slow  Jazz", "room": "hall"})


@pytest.mark.parametrize(
    ("calls", "parts"),
    [
        ([TIMER, MUSIC], (1, 1, 1)),
        ([MUSIC, TIMER], (1, 1, 1)),
        ([TIMER], (0.5, 0.5, 0)),
        ([TIMER, ("play_music", {"query": "slow jazz"})], (1, 0.5, 1)),
        ([TIMER, TIMER], (0.5, 0.5, 1)),
        ([("call_person", {"name": "Bela"}), ("set_alarm", {"time": "05:00"})], (0, 0, 0)),
        ([TIMER, MUSIC, ("set_timer", {"minutes": 6})], (0, 0, 0)),
        ([], (0, 0, 0)),
    ],
)
def test_parts_of_the_reward(calls: list[tuple[str, dict[str, Any]]], parts: tuple[float, float, float]) -> None:
    """Names, arguments and count; too many calls are worth nothing, as is silence."""
    world = ToolCalls.of_row(ROW)
    for name, arguments in calls:
        tool = ToolCalls.tools[name]
        tool.bind(world)(**tool.check(json.dumps(arguments).encode()))
    verdict = world.verify(Response())
    assert (verdict.metrics["name"], verdict.metrics["arguments"], verdict.metrics["count"]) == parts
    assert verdict.reward == sum((verdict.reward_components or {}).values())
    assert (verdict.reward == 1.0) == (parts == (1, 1, 1))


async def test_one_turn_through_the_servers() -> None:
    """Only the tools in the row's `offer` are shown; the calls of the one turn are judged; parts are in the line."""
    upstream = Upstream([TC(("a", "set_timer", '{"minutes": 5}'), ("b", "set_timer", '{"minutes": "soon"}'))])
    row = {"responses_create_params": {"input": "?"}, **ROW, "offer": ["play_music", "set_timer"]}
    world = {"environment": "tool_calls"}
    async with (
        serving(up=upstream) as up,
        stack(up["up"], resources_server=world, agent_server={"agent": "single_turn"}) as urls,
    ):
        line = await run(urls, row)
    assert {tool["function"]["name"] for tool in upstream.bodies[0]["tools"]} == {"play_music", "set_timer"}
    assert line["reward_components"] == pytest.approx({"name": 0.125, "arguments": 0.3125, "count": 0})
    assert (line["outcome"], len(line["state"]["made"])) == ("max_steps", 1)
