"""The office over HTTP: rows of NeMo Gym as they are, sessions side by side, and what a session weighs."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from resources_server.environments.workplace import Workplace
from wire import strict_json

SEND = {"recipient": "jonas.weber@ternvale.example", "subject": "Hello", "body": "See you."}
MEET = {
    "event_name": "Review",
    "participant_email": "priya.raman@ternvale.example",
    "event_start": "2023-12-04 15:00:00",
    "duration": "30",
}
TRUTH = [
    {"name": "calendar_create_event", "arguments": json.dumps(MEET)},
    {"name": "email_send_email", "arguments": json.dumps(SEND)},
]
DONE = {"output": [{"type": "message", "role": "assistant", "content": "Done."}]}


def nemo_gym_row(**fields: Any) -> dict[str, Any]:
    """A row in the shape in which NeMo Gym publishes its workplace_assistant tasks: schemas of all 27 tools in each."""
    schemas = [
        {key: value for key, value in tool.definition.items() if key != "description"}
        for tool in Workplace.tools.values()
    ]
    return {
        "id": 17,
        "responses_create_params": {
            "input": [
                {"role": "system", "content": "Today is …"},
                {"role": "user", "content": "Book it and tell Jonas."},
            ],
            "tools": schemas,
            "parallel_tool_calls": False,
            "temperature": 1.0,
        },
        "category": "workplace_assistant_calendar",
        "environment_name": "workplace_assistant",
        "agent_ref": {"type": "responses_api_agents", "name": "workplace_assistant_simple_agent"},
        **fields,
    }


@pytest.mark.parametrize("fields", [{"ground_truth": TRUTH}, {"verifier_metadata": {"ground_truth": TRUTH}}])
async def test_a_row_of_nemo_gym_runs_unchanged(serve: Callable[..., Any], fields: dict[str, Any]) -> None:
    """Truth at the top level or nested: its own calls, in another order and with numbers as numbers, are worth 1."""
    row = nemo_gym_row(**fields)
    async with serve(Workplace) as world:
        seeded = (await world.post("/seed_session", row)).json
        assert len(seeded["tools"]) == 27
        assert (await world.post("/email_send_email", SEND)).status == 200
        assert (await world.post("/calendar_create_event", {**MEET, "duration": 30})).text.strip('"') == "00000300"
        verified = (await world.post("/verify", {**row, "response": DONE})).json
        assert verified["reward"] == 1.0
        assert verified["state"].keys() == {"email", "calendar"}
        assert verified["id"] == 17


async def test_a_session_offers_the_tools_of_the_rows_toolkits(serve: Callable[..., Any]) -> None:
    """Seven of 27 for mail; a call of another toolkit is told to the model and changes nothing."""
    row = {"responses_create_params": {"input": "Hi"}, "toolkits": ["email"], "ground_truth": []}
    async with serve(Workplace) as world:
        seeded = (await world.post("/seed_session", row)).json
        assert len(seeded["tools"]) == 7
        refused = await world.post("/calendar_create_event", MEET)
        assert refused.status in (404, 422)
        assert (await world.post("/verify", {**row, "response": DONE})).json["reward"] == 1.0


async def test_sessions_side_by_side_do_not_touch(serve: Callable[..., Any]) -> None:
    """The same row twice: what one deletes the other still has, and each is judged by its own doing."""
    truth = [{"name": "email_delete_email", "arguments": '{"email_id": "00000007"}'}]
    row = {"responses_create_params": {"input": "Hi"}, "ground_truth": truth}
    async with serve(Workplace) as world:
        for session in ("one", "two"):
            await world.post("/seed_session", row, session=session)
        await world.post("/email_delete_email", {"email_id": "00000007"}, session="one")
        read = await world.post(
            "/email_get_email_information_by_id", {"email_id": "7", "field": "email_id"}, session="two"
        )
        assert read.json == {"email_id": "00000007"}
        rewards = [
            (await world.post("/verify", {**row, "response": DONE}, session=each)).json["reward"]
            for each in ("one", "two")
        ]
        assert rewards == [1.0, 0.0]


async def test_what_is_wrong_with_a_call_is_a_sentence(serve: Callable[..., Any]) -> None:
    """Junk, unknown arguments, unknown ids, impossible pages: 422 with what would be right, and the session goes on."""
    row = {"responses_create_params": {"input": "Hi"}, "ground_truth": []}
    wrong = [
        ("/email_delete_email", b"{", "valid JSON"),
        ("/email_delete_email", {"id": 3}, "email_id"),
        ("/email_delete_email", {"email_id": "3", "force": True}, "force"),
        ("/email_delete_email", {"email_id": {"x": 1}}, "should be a string"),
        ("/email_delete_email", {"email_id": "12345678"}, "no email has the id '12345678'"),
        ("/email_search_emails", {"page_size": 1000}, "page_size"),
        ("/calendar_update_event", {"event_id": "1", "field": "colour", "new_value": "red"}, "field"),
        (
            "/analytics_create_plot",
            {"time_min": "x", "time_max": "y", "value_to_plot": "total_visits", "plot_type": "bar"},
            "date",
        ),
    ]
    async with serve(Workplace) as world:
        await world.post("/seed_session", row)
        for path, body, told in wrong:
            answer = await world.post(path, body)
            assert answer.status == 422, path
            assert told in " ".join(answer.json["error"]), answer.text
        verified = (await world.post("/verify", {**row, "response": DONE})).json
        assert verified["reward"] == 1.0
        assert verified.get("state", {}) == {}


async def test_a_truth_that_cannot_be_carried_out_is_told_without_quoting_it(serve: Callable[..., Any]) -> None:
    """The seed fails and says which call it is; nothing of the truth's arguments is in the message."""
    truth = [{"name": "email_send_email", "arguments": strict_json.dumps({**SEND, "recipient": "SECRET"}).decode()}]
    async with serve(Workplace) as world:
        answer = await world.post("/seed_session", {"responses_create_params": {"input": "Hi"}, "ground_truth": truth})
        assert answer.status >= 400
        assert "ground truth, call 0 (email_send_email)" in answer.text
        assert "SECRET" not in answer.text
