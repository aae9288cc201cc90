"""The agents for worlds of one turn and for reset/step worlds."""

from typing import Any

import pytest

from agent_server.agents.gym import Gym
from agent_server.agents.single_turn import SingleTurn
from agent_server.settings import AgentServerSettings
from tests.agent_server.stage import THINKING, Counter, Sent, call, outputs, stage, text
from wire.errors import UsageError


def game(over_after: int = 2, **seed: Any) -> Counter:
    """A world that repeats what was done, and is over after so many steps."""
    done: list[str] = []

    def step(request: Sent) -> tuple[int, Any]:
        action = request.json["action"]
        if action == "illegal":
            return 422, {"error": ["action: no such move"]}
        done.append(action)
        over = len(done) >= over_after
        seen = {"observation": f"you did {action}", "reward": 1.0, "terminated": over, "truncated": False, "info": {}}
        return 200, seen

    start = {"observation": "a door", "reward": 0, "terminated": False, "truncated": False, "info": {}}
    world = Counter(on={"/reset": (200, start), "/step": step}, seed={"tools": [], **seed})
    world.on["/verify"] = lambda _: (200, {"reward": float(len(done))})
    return world


async def test_a_game_is_played_by_text_until_the_world_says_that_it_is_over() -> None:
    """Observations are the user's turns; the last one is not shown to anybody."""
    async with stage([text("north")], [text("south")], world=game(), agent=Gym) as on:
        line = await on.run()
        first, second = on.model.sent
    assert [item["content"] for item in first.json["input"]] == ["Count.", "a door"]
    assert second.json["input"] == [{"type": "message", "role": "user", "content": "you did north"}]
    assert (line["outcome"], line["reward"]) == ("completed", 2.0)
    assert [step["calls"][0]["status"] for step in line["steps"]] == ["ok", "ok"]


async def test_a_first_observation_from_seeding_needs_no_reset() -> None:
    """A move that the world refuses is told, and the game goes on."""
    turns = [[text("illegal")], [THINKING], [text("a")], [text("b")]]
    async with stage(*turns, world=game(observation="a wall"), agent=Gym) as on:
        line = await on.run()
        assert not on.world.to("/reset")
        assert on.model.sent[0].json["input"][1]["content"] == "a wall"
        assert "no such move" in on.model.sent[1].json["input"][0]["content"]
    assert line["reward"] == 2.0
    assert line["steps"][0]["calls"][0]["status"] == "tool_error"


async def test_a_game_is_played_by_a_tool() -> None:
    """Each call of `act` is a step; one after the end, and one that is wrong, are told so."""
    calls = [call("act", '{"action": "a"}', "1"), call("go", "{}", "2"), call("act", '{"action": "b"}', "3")]
    turn = [*calls, call("act", '{"action": "c"}', "4")]
    async with stage(turn, world=game(), agent=Gym, options={"action": "tool"}) as on:
        line = await on.run()
        assert [tool["name"] for tool in on.model.sent[0].json["tools"]] == ["act"]
    told = outputs(line)
    assert (told[0], told[2]) == ("you did a", "you did b")
    assert "no tool 'go'" in told[1]
    assert "over" in told[3]
    assert line["reward"] == 2.0


async def test_an_action_that_is_no_text_is_read_as_json() -> None:
    """With an `action_schema` of another type; what is no JSON is told, and no move was made."""
    turns = [[text("north")], [text("[1, 2]")], [text(" 3")]]
    async with stage(*turns, world=game(), agent=Gym, options={"action_schema": {"type": "array"}}) as on:
        line = await on.run()
        assert [each.json for each in on.world.to("/step")] == [{"action": [1, 2]}, {"action": 3}]
        assert "not valid JSON" in on.model.sent[1].json["input"][0]["content"]
    assert line["reward"] == 2.0


async def test_a_game_ends_with_max_steps() -> None:
    """Every step was a move, and the world is asked for the verdict as it stands."""
    async with stage(*([text("x")] for _ in range(9)), world=game(99), agent=Gym, max_steps=3) as on:
        line = await on.run()
    assert (line["outcome"], line["reward"]) == ("max_steps", 3.0)


@pytest.mark.parametrize(
    ("turn", "outcome"), [([text("4")], "completed"), ([call("increment")], "max_steps"), ([THINKING], "stalled")]
)
async def test_a_single_turn_is_the_whole_episode(turn: list[dict[str, Any]], outcome: str) -> None:
    """The model is asked once; its calls are run for the verdict."""
    async with stage(turn, agent=SingleTurn) as on:
        line = await on.run()
        assert len(on.model.sent) == 1
    assert line["outcome"] == outcome
    assert line["reward"] == float(outcome == "max_steps")


def test_an_unknown_option_is_refused_at_start() -> None:
    """The message names it and what there is."""
    with pytest.raises(UsageError, match=r"options.actoin.*\(options of gym: action, action_schema\)"):
        Gym(AgentServerSettings(options={"actoin": "text"}))
