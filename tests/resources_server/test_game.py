"""Reset/step worlds: played over HTTP, scored by their steps."""

from typing import Any, ClassVar

import pytest

from resources_server import Environment, Game, Response, Step, Task, ToolError
from tests.resources_server.conftest import Serve

DONE: dict[str, Any] = {"response": {"output": []}}


class GuessTask(Task):
    secret: int


class Guess(Game[GuessTask]):
    """Guess a number in three moves."""

    scoring: ClassVar = "max"
    blocking: ClassVar[bool] = False

    def reset(self) -> str:
        return "Guess a number from 1 to 9."

    def step(self, action: int) -> Step:
        if not 1 <= action <= 9:
            raise ToolError("from 1 to 9")
        if action == self.task.secret:
            return Step("Right!", 1.0, done=True, info={"moves": len(self.rewards) + 1})
        hint = "higher" if action < self.task.secret else "lower"
        return Step({"hint": hint}, 0.1, truncated=len(self.rewards) == 2)


class Slow(Game[Task]):
    """An async game."""

    async def reset(self) -> str:
        return "go"

    async def step(self, action: str) -> Step:
        return Step(action.upper(), 0.5, done=action == "stop")


async def test_a_game_over_http(serve: Serve) -> None:
    """Reset seeds it, steps answer in Gymnasium's words, verify puts the rewards together."""
    async with serve(Guess) as world:
        first = await world.post("/reset", {"secret": 7})
        expected = {
            "observation": "Guess a number from 1 to 9.",
            "reward": 0.0,
            "terminated": False,
            "truncated": False,
        }
        assert first.json == expected | {"info": {"session_id": "s"}}
        assert (await world.post("/reset")).body == first.body
        hint = await world.post("/step", {"action": 3})
        assert hint.json["observation"] == {"hint": "higher"} and hint.json["reward"] == 0.1
        assert (await world.post("/step", {"action": 12})).json == {"error": ["from 1 to 9"]}
        assert (await world.post("/step", {"action": "x"})).json == {"error": ["action: should be an integer, got 'x'"]}
        won = await world.post("/step", {"action": 7}, Call_Id="1.0")
        assert (won.json["terminated"], won.json["info"]) == (True, {"moves": 2})
        assert (await world.post("/step", {"action": 7}, Call_Id="1.0")).body == won.body
        assert (await world.post("/step", {"action": 7})).json == {"error": ["the game is over"]}
        assert (await world.post("/reset")).status == 409
        done = (await world.post("/verify", {"secret": 7, **DONE})).json
        assert (done["reward"], done["metrics"]) == (1.0, {"moves": 2.0, "finished": 1.0})
        assert done["state"] == {"rewards": [0.1, 1.0], "done": True}
        assert (await world.post("/close")).status == 200
        assert (await world.post("/step", {"action": 7})).status == 410


async def test_seeding_a_game_gives_its_first_observation_and_the_form_of_a_move(serve: Serve) -> None:
    """For an agent that plays it; a move is no tool of the model's."""
    async with serve(Guess) as world:
        seeded = (await world.post("/seed_session", {"secret": 7})).json
        assert seeded["observation"] == "Guess a number from 1 to 9." and seeded["tools"] == []
        assert seeded["game"] == {"action": {"type": "integer"}}
        for _ in range(3):
            cut = await world.post("/step", {"action": 1})
        assert (cut.json["terminated"], cut.json["truncated"]) == (False, True)


async def test_an_async_game(serve: Serve) -> None:
    """The sum of its rewards."""
    async with serve(Slow) as world:
        await world.post("/seed_session", {})
        assert (await world.post("/step", {"action": "on"})).json["observation"] == "ON"
        await world.post("/step", {"action": "stop"})
        assert (await world.post("/verify", DONE)).json["reward"] == 1.0


async def test_a_game_nobody_played_is_worth_nothing(serve: Serve) -> None:
    """Not a failure: the policy did nothing."""
    async with serve(Slow) as world:
        await world.post("/seed_session", {})
        assert (await world.post("/verify", DONE)).json["reward"] == 0.0


@pytest.mark.parametrize(("scoring", "reward"), [("sum", 0.75), ("last", 0.25), ("max", 0.5)])
def test_how_steps_become_a_reward(scoring: str, reward: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Summed, the last, or the best."""
    world = Guess.restored({"secret": 1}, {"rewards": [0.5, 0.25]})
    monkeypatch.setattr(Guess, "scoring", scoring)
    verdict = world.verify(Response())
    assert not isinstance(verdict, float) and verdict.reward == reward


def test_a_step_without_its_action_fails_at_import() -> None:
    """The message names the class."""
    with pytest.raises(TypeError, match="game Bad: step takes one argument, called action"):

        class Bad(Game[Task]):
            def step(self, move: str) -> Step:
                return Step(move)


async def test_a_world_that_is_no_game_has_no_steps(serve: Serve) -> None:
    """404, as for any route that is not there."""

    class Plain(Environment[Task]):
        pass

    async with serve(Plain) as world:
        assert (await world.post("/step", {"action": 1})).status == 404


class Loud(Game[Task]):
    """Says much."""

    def reset(self) -> str:
        return "go"

    def step(self, action: str) -> Step:
        return Step(action * 1000, 0.5, done=True)


async def test_what_is_cut_of_a_step_is_what_the_player_sees(serve: Serve) -> None:
    """Beyond `max_output_bytes` the reply is still JSON, with its reward and its end."""
    async with serve(Loud, max_output_bytes=500) as world:
        await world.post("/reset", {"responses_create_params": {"input": "x"}})
        step = (await world.post("/step", {"action": "ab"})).json
        assert step["reward"] == 0.5 and step["terminated"] is True
        assert step["observation"].startswith("abab") and "[output cut: 2000 bytes" in step["observation"]
