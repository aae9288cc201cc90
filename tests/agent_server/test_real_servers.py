"""The agents among the real servers, where the small ones of the other tests could be too kind."""

import asyncio
from typing import Any

import pytest

from resources_server import Environment, Response, Task, tool
from resources_server.game import Game, Step
from tests.stack import run, stack
from wire.testing import serving
from wire.testing.upstream import MSG, TC, Upstream

COUNT = {"responses_create_params": {"input": "Count."}, "initial_count": 0, "expected_count": 3}


class GuessTask(Task):
    """A number to guess."""

    goal: int


class Guess(Game[GuessTask]):
    """Higher or lower."""

    def reset(self) -> str:
        """Say what is to be done."""
        return "Guess a number from 1 to 9."

    def step(self, action: int) -> Step:
        """One guess."""
        if action == self.task.goal:
            return Step("right", 1.0, done=True)
        return Step("higher" if action < self.task.goal else "lower")


class Sleepy(Environment[Task]):
    """A world whose tool does not end."""

    @tool
    async def nap(self) -> str:
        """Sleep."""
        await asyncio.Event().wait()
        return "awake"

    def verify(self, response: Response) -> float:
        """Never asked."""
        return 0.0


@pytest.mark.parametrize(
    ("action", "answers"),
    [
        ("text", [MSG("5"), MSG("seven"), MSG("7")]),
        (
            "tool",
            [TC(("a", "act", '{"action": 5}')), TC(("b", "act", '{"action": "x"}')), TC(("c", "act", '{"action": 7}'))],
        ),
    ],
)
async def test_a_game_with_typed_moves_is_played(action: str, answers: list[Any]) -> None:
    """By text and by tool; a move of the wrong type is told and costs no step."""
    upstream = Upstream(answers)
    agent = {"agent": "gym", "options": {"action": action, "action_schema": {"type": "integer"}}}
    world = {"environment": "tests.agent_server.test_real_servers:Guess"}
    async with serving(up=upstream) as up, stack(up["up"], resources_server=world, agent_server=agent) as urls:
        line = await run(urls, {"responses_create_params": {"input": "Play."}, "goal": 7})
    assert line["failure"] is None
    assert (line["outcome"], line["reward"], line["metrics"]["moves"]) == ("completed", 1.0, 2.0)
    assert upstream.refused == []


async def test_conversations_that_were_dropped_are_sent_again() -> None:
    """The model interface remembers one conversation, eight are played: each comes to the same end as alone."""
    turns = [TC((f"c{step}", "increment_counter", '{"count": 1}')) for step in range(3)]
    upstream = Upstream(turns=[*turns, MSG("three")])
    async with (
        serving(up=upstream) as up,
        stack(
            up["up"], resources_server={"environment": "counter"}, model_interface={"conversations": {"max": 1}}
        ) as urls,
    ):
        lines = await asyncio.gather(*(run(urls, COUNT) for _ in range(8)))
    assert [(line["reward"], len(line["steps"])) for line in lines] == [(1.0, 4)] * 8
    assert upstream.refused == []
    assert len(upstream.bodies) == 32


async def test_reasoning_alone_is_asked_again() -> None:
    """The strict upstream takes the history of a turn that said nothing."""
    upstream = Upstream([MSG(None, reasoning_content="hm"), MSG("three")])
    async with serving(up=upstream) as up, stack(up["up"], resources_server={"environment": "counter"}) as urls:
        line = await run(urls, COUNT)
    assert (line["outcome"], len(line["steps"]), upstream.refused) == ("completed", 2, [])


async def test_a_tool_that_takes_too_long_is_a_failure_of_the_tool() -> None:
    """The world's own bound, far below the rollout's: `tool_timeout`, and nothing is scored."""
    world = {"environment": "tests.agent_server.test_real_servers:Sleepy", "tool_timeout_s": 0.2}
    upstream = Upstream([TC(("c1", "nap", "{}"))])
    async with serving(up=upstream) as up, stack(up["up"], resources_server=world) as urls:
        line = await run(urls, {"responses_create_params": {"input": "Nap."}})
    assert (line["failure"]["kind"], line["reward"]) == ("tool_timeout", None)
    assert line["steps"][0]["calls"][0]["status"] == "tool_timeout"
