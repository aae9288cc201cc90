"""The environment `scheduler` and the agent `dialogue`: no thing that the user says may be skipped, and the last word counts."""

import json
from pathlib import Path
from typing import Any

import pytest

from resources_server import Response, ToolError
from resources_server.environments.scheduler import Scheduler, Turn, Want, goals
from tests.stack import run, stack
from wire import jsonl
from wire.testing import serving
from wire.testing.upstream import MSG, TC, Answer, Upstream

DATA = Path(__file__).parents[2] / "data" / "scheduler"
AT = {"kind": "at", "title": "Dentist", "day": "Monday", "latest": "12:00", "minutes": 30}
ROW: dict[str, Any] = {
    "calendar": [{"title": "Training", "day": "Monday", "start": "09:00", "minutes": 60}],
    "turns": [
        {"say": "Put the dentist on Monday morning, 30 minutes.", "wants": [AT]},
        {"say": "Rather on Tuesday morning.", "wants": [AT | {"day": "Tuesday"}]},
    ],
    "plan": [],
}
PLAYED = {**ROW, "responses_create_params": {"input": ROW["turns"][0]["say"]}}
WORLD = {"environment": "scheduler"}
DIALOGUE = {"agent": "dialogue"}


def seeded(row: dict[str, Any] = ROW) -> Scheduler:
    world = Scheduler.of_row(row)
    world.seed()
    return world


def test_the_last_word_counts_and_every_word_must_have_been_heard() -> None:
    """What is right at once, before the user has said it, is worth nothing."""
    world = seeded()
    world.add_appointment("dentist", "Tuesday", "08:00", 30)
    assert "heard 1 of 2" in str(world.verify(Response()).reason)
    assert world.step("Done.").observation == "Rather on Tuesday morning."
    assert world.verify(Response()).reward == 1.0
    assert world.step("Done.").done
    assert world.verify(Response()).metrics["turns_kept"] == 0.5


@pytest.mark.parametrize("fault", ["moved", "removed", "added", "long", "late"])
def test_nothing_else_may_change(fault: str) -> None:
    """What was not asked for costs the reward, and is named."""
    world = seeded()
    world.step("")
    world.add_appointment("Dentist", "Tuesday", "15:00" if fault == "late" else "08:00", 45 if fault == "long" else 30)
    if fault == "moved":
        world.move_appointment("Training", "Monday", "10:00")
    if fault == "removed":
        world.remove_appointment("Training")
    if fault == "added":
        world.add_appointment("Break", "Friday", "10:00", 15)
    verdict = world.verify(Response())
    assert verdict.reward == 0.0 and verdict.reason


@pytest.mark.parametrize(("start", "minutes"), [("09:30", 30), ("08:30", 90), ("07:45", 30), ("17:45", 30)])
def test_what_does_not_fit_is_refused_and_changes_nothing(start: str, minutes: int) -> None:
    """Overlaps, and times outside the day."""
    world = seeded()
    with pytest.raises(ToolError, match=r"overlaps|between"):
        world.add_appointment("Dentist", "Monday", start, minutes)
    assert len(world.appointments) == 1


def test_goals_fold_what_was_said() -> None:
    """Cancelling takes back a wish, a new wish takes back a cancellation, and a new place that it is after another."""
    at, gone, late = (Want(kind=kind, title="x", other="y") for kind in ("at", "gone", "after"))
    said = [[at, late], [gone], [at]]
    turns = [Turn(say="", wants=wants) for wants in said]
    assert [[want.kind for want in goals(turns[:heard])] for heard in (1, 2, 3)] == [["at", "after"], ["gone"], ["at"]]
    assert [want.kind for want in goals([turns[0], turns[2]])] == ["at"]


def call(name: str, **arguments: Any) -> Answer:
    return TC((f"c_{name}", name, json.dumps(arguments)))


async def test_the_user_speaks_again_when_the_model_has_answered() -> None:
    """The next message is a user's item of the response, and the model is asked again with all of it."""
    upstream = Upstream(
        [
            call("add_appointment", title="Dentist", day="Monday", start="10:00", minutes=30),
            MSG("It is on Monday at ten."),
            call("move_appointment", title="Dentist", day="Tuesday", start="10:00"),
            MSG("Moved."),
        ]
    )
    async with serving(up=upstream) as up, stack(up["up"], resources_server=WORLD, agent_server=DIALOGUE) as urls:
        line = await run(urls, PLAYED)
    assert (line["failure"], line["outcome"], line["reward"]) == (None, "completed", 1.0)
    said = [(item["role"]) for item in line["response"]["output"] if item["type"] == "message"]
    assert said == ["assistant", "user", "assistant"]
    assert [message["content"] for message in upstream.bodies[-1]["messages"] if message["role"] == "user"] == [
        turn["say"] for turn in ROW["turns"]
    ]
    assert [[each["name"] for each in step["calls"]] for step in line["steps"]] == [
        ["add_appointment"],
        ["step"],
        ["move_appointment"],
        ["step"],
    ]
    assert upstream.refused == []


async def test_an_agent_that_does_not_ask_for_more_earns_nothing() -> None:
    """With `tool_loop` the first answer ends the episode: the user was not heard to the end."""
    upstream = Upstream([call("add_appointment", title="Dentist", day="Tuesday", start="10:00", minutes=30), MSG("ok")])
    async with serving(up=upstream) as up, stack(up["up"], resources_server=WORLD) as urls:
        line = await run(urls, PLAYED)
    assert (line["reward"], line["reason"]) == (0.0, "heard 1 of 2 things that the user said")


async def test_the_model_cannot_call_the_users_turn() -> None:
    """`step` is no tool: the call is refused before it is sent."""
    upstream = Upstream([call("step", action="next"), MSG("a"), MSG("b")])
    async with serving(up=upstream) as up, stack(up["up"], resources_server=WORLD, agent_server=DIALOGUE) as urls:
        line = await run(urls, PLAYED)
    assert line["steps"][0]["calls"][0]["status"] == "unknown_tool"
    assert (line["metrics"]["turns_heard"], line["reward"]) == (1.0, 0.0)


async def test_a_world_whose_user_does_not_speak_is_told_as_such() -> None:
    """The agent's own mistake in the config is a failure that names it."""
    upstream = Upstream([MSG("3")])
    row = {"responses_create_params": {"input": "?"}, "initial_count": 0, "expected_count": 0}
    async with (
        serving(up=upstream) as up,
        stack(up["up"], resources_server={"environment": "counter"}, agent_server=DIALOGUE) as urls,
    ):
        line = await run(urls, row)
    assert line["failure"]["kind"] == "environment_error" and "dialogue" in line["failure"]["message"]


async def test_the_bundled_dialogues_are_played_to_the_end_by_their_solutions() -> None:
    """The backend `reference`, through all three servers."""
    world = {**WORLD, "solutions": True}
    agent = {**DIALOGUE, "max_steps": 40}
    rows = [row for _, row in jsonl.read(DATA / "example.jsonl")][:6]
    async with stack(resources_server=world, agent_server=agent, model_interface={"backend": "reference"}) as urls:
        lines = [await run(urls, row) for row in rows]
    assert [(line["reward"], line["outcome"]) for line in lines] == [(1.0, "completed")] * len(rows)
    assert all(line["metrics"]["turns_kept"] == 1.0 for line in lines)


def test_no_prompt_says_more_than_the_first_turn() -> None:
    """The later turns come later."""
    for _, row in jsonl.read(DATA / "train.jsonl"):
        assert row["responses_create_params"]["input"][-1]["content"] == row["turns"][0]["say"]
