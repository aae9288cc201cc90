"""The office: what its tools do, what is kept of a session, and what a change is worth."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from resources_server import Response, ToolError
from resources_server.environments.workplace import Workplace
from resources_server.environments.workplace.world import TruthRefused
from wire.errors import UsageError
from wire.rollout import AcceptedCall

# The interface of NeMo Gym's workplace_assistant: required parameters first, then the optional ones.
TOOLS = {
    "company_directory_find_email_address": ("", "name"),
    "email_get_email_information_by_id": ("email_id field", ""),
    "email_search_emails": ("", "query date_min date_max page page_size"),
    "email_send_email": ("recipient subject body", ""),
    "email_delete_email": ("email_id", ""),
    "email_forward_email": ("email_id recipient", ""),
    "email_reply_email": ("email_id body", ""),
    "calendar_get_event_information_by_id": ("event_id field", ""),
    "calendar_search_events": ("", "query time_min time_max page page_size"),
    "calendar_create_event": ("event_name participant_email event_start duration", ""),
    "calendar_delete_event": ("event_id", ""),
    "calendar_update_event": ("event_id field new_value", ""),
    "analytics_get_visitor_information_by_id": ("visitor_id", ""),
    "analytics_create_plot": ("time_min time_max value_to_plot plot_type", ""),
    "analytics_total_visits_count": ("", "time_min time_max"),
    "analytics_engaged_users_count": ("", "time_min time_max"),
    "analytics_traffic_source_count": ("", "time_min time_max traffic_source"),
    "analytics_get_average_session_duration": ("", "time_min time_max"),
    "project_management_get_task_information_by_id": ("task_id field", ""),
    "project_management_search_tasks": ("", "task_name assigned_to_email list_name due_date board"),
    "project_management_create_task": ("task_name assigned_to_email list_name due_date board", ""),
    "project_management_delete_task": ("task_id", ""),
    "project_management_update_task": ("task_id field new_value", ""),
    "customer_relationship_manager_search_customers": (
        "",
        "customer_name customer_email product_interest status assigned_to_email last_contact_date_min last_contact_date_max "
        "follow_up_by_min follow_up_by_max page page_size",
    ),
    "customer_relationship_manager_add_customer": (
        "customer_name assigned_to_email status",
        "customer_email customer_phone last_contact_date product_interest notes follow_up_by",
    ),
    "customer_relationship_manager_delete_customer": ("customer_id", ""),
    "customer_relationship_manager_update_customer": ("customer_id field new_value", ""),
}


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    """A call as NeMo Gym's rows carry it: arguments as JSON text."""
    return {"name": name, "arguments": json.dumps(arguments)}


def office(*truth: dict[str, Any], **fields: Any) -> Workplace:
    """A seeded session of a task with this ground truth."""
    world = Workplace.of_row({"ground_truth": list(truth), **fields})
    world.seed()
    return world


def play(world: Workplace, name: str, /, **arguments: Any) -> Any:
    """One call as a model makes it: JSON text in, the tool's value out."""
    tool = Workplace.tools[name]
    return tool.bind(world)(**tool.check(json.dumps(arguments).encode()))


def reward(world: Workplace) -> float:
    return world.verify(Response()).reward


MEETING = {
    "event_name": "Review",
    "participant_email": "priya.raman@ternvale.example",
    "event_start": "2023-12-04 15:00:00",
    "duration": "30",
}
CREATE_MEETING = call("calendar_create_event", **MEETING)
MAIL = {"recipient": "jonas.weber@ternvale.example", "subject": "Hello", "body": "See you."}
PLOT = {"time_min": "2023-11-01", "time_max": "2023-11-30", "value_to_plot": "total_visits", "plot_type": "bar"}
SEND_MAIL = call("email_send_email", **MAIL)


def test_there_are_the_27_tools_with_their_parameters() -> None:
    """Names, parameters and which are required are those that NeMo Gym's rows call; unknown ones are refused."""
    found = {}
    for name, tool in Workplace.tools.items():
        required = tool.schema.get("required", [])
        optional = [each for each in tool.schema["properties"] if each not in required]
        found[name] = (" ".join(required), " ".join(optional))
        assert tool.schema["additionalProperties"] is False
    assert found == TOOLS
    assert len(found) == 27


def test_the_company_has_its_rows() -> None:
    """Five tables and a directory, in the sizes that WorkBench has."""
    shared = Workplace.shared
    sizes = [len(each.rows) for each in (shared.emails, shared.events, shared.tasks, shared.customers)]
    assert sizes == [500, 300, 300, 200]
    assert sum(day.visits for day in shared.visits.days.values()) == 1000
    assert len(shared.addresses) == 20


def test_the_order_of_independent_creates_does_not_matter() -> None:
    """New rows are compared by content, so that ids given in another order cost nothing."""
    second = call("calendar_create_event", **{**MEETING, "event_start": "2023-12-05 09:00:00"})
    world = office(CREATE_MEETING, second, SEND_MAIL)
    play(world, "email_send_email", **MAIL)
    play(world, "calendar_create_event", **{**MEETING, "event_start": "2023-12-05 09:00:00"})
    play(world, "calendar_create_event", **MEETING)
    assert reward(world) == 1.0


def test_created_rows_are_a_multiset() -> None:
    """One meeting twice is not one meeting."""
    world = office(CREATE_MEETING)
    play(world, "calendar_create_event", **MEETING)
    assert reward(world) == 1.0
    play(world, "calendar_create_event", **MEETING)
    assert reward(world) == 0.0
    assert world.verify(Response()).metrics["side_effects"] == 1.0


@pytest.mark.parametrize(
    "arguments",
    [
        {"duration": 30},
        {"duration": "30.0"},
        {"event_start": "2023-12-04 15:00"},
        {"event_start": "2023-12-04T15:00:00"},
        {"participant_email": "Priya.Raman@ternvale.example"},
        {"event_name": "  review "},
    ],
)
def test_two_ways_to_write_a_value_are_one(arguments: dict[str, Any]) -> None:
    """Numbers, times and text are compared in one form."""
    world = office(CREATE_MEETING)
    play(world, "calendar_create_event", **{**MEETING, **arguments})
    assert reward(world) == 1.0


def test_repeated_updates_count_by_their_end() -> None:
    """A detour through another value is worth the same as the straight way."""
    world = office(call("project_management_update_task", task_id="00000007", field="due_date", new_value="2024-01-08"))
    for day in ("2024-01-02", "2024-01-08"):
        play(world, "project_management_update_task", task_id="00000007", field="due_date", new_value=day)
    verdict = world.verify(Response())
    assert (verdict.reward, verdict.metrics["undone"]) == (1.0, 0.0)


def test_an_update_to_the_same_value_is_no_change() -> None:
    """A no-op leaves nothing behind, though it is told in the metrics."""
    world = office()
    name = world.project_management.get_task_information_by_id("00000007", "task_name")["task_name"]
    play(world, "project_management_update_task", task_id="00000007", field="task_name", new_value=name.upper())
    verdict = world.verify(Response())
    assert (verdict.reward, verdict.metrics["undone"], verdict.metrics["side_effects"]) == (1.0, 1.0, 0.0)


def test_what_was_taken_back_is_no_change_but_is_told() -> None:
    """Create and delete, change and change back: reward 1 on a task that wants nothing, every write counted as undone."""
    world = office()
    key = play(world, "calendar_create_event", **MEETING)
    play(world, "calendar_delete_event", event_id=key)
    old = world.email.get_email_information_by_id("00000003", "subject")
    status = play(world, "customer_relationship_manager_search_customers", customer_name="")["customers"][0]["status"]
    other = "Won" if status != "Won" else "Lost"
    for value in (other, status):
        play(world, "customer_relationship_manager_update_customer", customer_id="0", field="status", new_value=value)
    verdict = world.verify(Response())
    assert (verdict.reward, verdict.metrics["undone"]) == (1.0, 4.0)
    assert world.email.get_email_information_by_id("00000003", "subject") == old


def test_reads_never_matter() -> None:
    """Any number of searches and look-ups leaves neither a change nor a state."""
    world = office()
    play(world, "email_search_emails", query="november", page=2)
    play(world, "analytics_total_visits_count")
    play(world, "company_directory_find_email_address", name="priya")
    assert reward(world) == 1.0
    assert world.state() == {}


def test_deleting_then_creating_overwrites_nothing() -> None:
    """An id is never given twice, whatever was deleted in between."""
    world = office()
    first = play(world, "project_management_create_task", **TASK)
    play(world, "project_management_delete_task", task_id=first)
    play(world, "project_management_delete_task", task_id="00000299")
    second = play(world, "project_management_create_task", **TASK)
    assert (first, second) == ("00000300", "00000301")
    assert world.project_management.get_task_information_by_id("00000298", "task_id") == {"task_id": "00000298"}


TASK = {
    "task_name": "Count the chairs",
    "assigned_to_email": "greta.lindholm@ternvale.example",
    "list_name": "Backlog",
    "due_date": "2023-12-11",
    "board": "Design",
}


def test_an_alternative_truth_is_worth_as_much() -> None:
    """A row may accept other changes beside its ground truth, and nothing in between."""
    plot = {"time_min": "2023-11-21", "value_to_plot": "total_visits", "plot_type": "bar"}
    truths = [call("analytics_create_plot", **plot, time_max=f"2023-11-{day}") for day in (29, 30)]
    for day, worth in ((28, 0.0), (29, 1.0), (30, 1.0)):
        world = office(truths[0], accept=[[truths[1]]])
        assert play(world, "analytics_create_plot", **plot, time_max=f"2023-11-{day}").endswith(
            f"{day}_total_visits_bar.png"
        )
        assert reward(world) == worth


def test_wrong_and_missing_changes_are_told_apart() -> None:
    """Side effects are changes that the truth does not make; what it makes and the session did not is missing."""
    world = office(CREATE_MEETING, SEND_MAIL)
    play(world, "email_send_email", **MAIL)
    play(world, "email_delete_email", email_id="00000001")
    verdict = world.verify(Response())
    assert (verdict.reward, verdict.metrics["side_effects"], verdict.metrics["missing"]) == (0.0, 1.0, 1.0)
    assert verdict.reason == "changes: 1 wrong (emails deleted), 1 missing (calendar_events created)"


def test_refused_calls_and_steps_are_counted() -> None:
    """A call that came to a sentence for the model is invalid; a step is an answer of the model, with all its calls."""
    world = office()
    turn = [{"type": "function_call", "name": "email_delete_email"}, {"type": "function_call", "name": "email_delet"}]
    told = [
        {"type": "function_call_output", "output": '{"error": ["no"]}'},
        {"type": "function_call_output", "output": "ok"},
    ]
    answer = {"type": "message", "role": "assistant", "content": "done"}
    metrics = world.verify(Response(output=[*turn, *told, answer])).metrics
    assert (metrics["steps"], metrics["invalid_calls"]) == (2.0, 1.0)
    world.calls.extend(AcceptedCall(name="x", arguments={}, status="tool_error", order=n) for n in range(2))
    assert world.verify(Response()).metrics["invalid_calls"] == 2.0


def test_the_stored_state_is_the_net_change_and_judges_again() -> None:
    """A line holds what the session changed and nothing of the tables; the verdict from it is the live one."""
    row = {"ground_truth": [CREATE_MEETING, SEND_MAIL]}
    world = Workplace.of_row(row)
    world.seed()
    play(world, "calendar_create_event", **MEETING)
    play(world, "email_send_email", **MAIL)
    state = json.loads(json.dumps(world.state()))
    assert state.keys() == {"calendar", "email"}
    assert len(json.dumps(state)) < 1000
    again = Workplace.model_validate({"task": row, **state})
    assert again.verify(Response()) == world.verify(Response())
    assert play(again, "calendar_search_events", query="review")["pagination"]["total_events"] > 0


def test_two_sessions_never_touch() -> None:
    """What one session writes, the other and the shared company never see."""
    one, two = office(), office()
    play(one, "email_delete_email", email_id="00000009")
    play(one, "project_management_update_task", task_id="00000009", field="board", new_value="Design")
    play(one, "calendar_create_event", **MEETING)
    assert (
        play(two, "email_get_email_information_by_id", email_id="00000009", field="email_id")["email_id"] == "00000009"
    )
    assert two.state() == {}
    assert len(Workplace.shared.emails.rows) == 500
    assert office().changes() == two.changes()


def test_a_fresh_session_holds_little() -> None:
    """Below 64 KB each: the tables are shared, and a session has only its row and its own changes."""

    def held(value: object, seen: set[int]) -> int:
        if id(value) in seen or isinstance(value, type) or value is Workplace.shared:
            return 0
        seen.add(id(value))
        parts: list[Any] = list(value.items()) if isinstance(value, dict) else []
        parts += list(value) if isinstance(value, list | tuple | set | frozenset) else []
        if hasattr(value, "__pydantic_fields_set__"):
            parts += [value.__dict__, value.__pydantic_private__, value.__pydantic_fields_set__]  # type: ignore[attr-defined]
        return sys.getsizeof(value) + sum(held(part, seen) for part in parts)

    assert held(office(CREATE_MEETING, SEND_MAIL), set()) < 64 * 1024


def test_seeding_and_judging_touch_no_table() -> None:
    """Both play the truth's writes by id and look at no other row, so that their time does not grow with the company."""
    looked: list[str] = []

    class Watched(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            looked.append(key)
            return super().__getitem__(key)

        def get(self, key: str, default: Any = None) -> Any:
            looked.append(key)
            return super().get(key, default)

        def __iter__(self) -> Any:
            raise AssertionError("the table was walked through")

    world = office(call("project_management_update_task", task_id="7", field="board", new_value="Design"))
    tasks = Workplace.shared.tasks
    object.__setattr__(tasks, "rows", Watched(original := tasks.rows))
    try:
        world.seed()
        world.verify(Response())
    finally:
        object.__setattr__(tasks, "rows", original)
    assert set(looked) == {"00000007"}
    assert len(looked) < 12


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("email_delete_email", {"email_id": "99999999"}, "no email has the id '99999999'"),
        ("email_forward_email", {"email_id": "00000001", "recipient": "nobody"}, "recipient"),
        ("calendar_create_event", {**MEETING, "event_start": "tomorrow"}, "is not a time"),
        ("calendar_create_event", {**MEETING, "event_start": "2023-02-30 10:00:00"}, "is not a time"),
        ("calendar_create_event", {**MEETING, "duration": "half an hour"}, "is not a number"),
        ("calendar_create_event", {**MEETING, "duration": -5}, "above 0"),
        ("calendar_create_event", {**MEETING, "duration": "1e999999999"}, "is not a number"),
        ("project_management_create_task", {**TASK, "board": "design"}, "is none of Back end, Front end, Design"),
        ("project_management_search_tasks", {}, "nothing to search for"),
        ("customer_relationship_manager_update_customer", {"customer_id": "1", "field": "status", "new_value": "Sold"}, "none of"),
        ("analytics_create_plot", {**PLOT, "time_min": "2023-11-30", "time_max": "2023-11-01"}, "after"),
        ("analytics_get_visitor_information_by_id", {"visitor_id": "99999"}, "no visitor"),
        ("email_send_email", {**MAIL, "body": "x" * 20_001}, "20001 characters"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_told_and_changes_nothing(name: str, arguments: dict[str, Any], sentence: str) -> None:
    """A refusal is a sentence for the model; the office stays as it was."""
    world = office()
    with pytest.raises(ToolError, match=sentence):
        play(world, name, **arguments)
    assert world.state() == {}


HOSTILE = [
    "",
    " ",
    "\x00",
    "'; DROP TABLE emails; --",
    "{0.__class__}",
    "%s%n",
    "💣" * 50,
    "../../etc/passwd",
    "a" * 10_000,
    "\u202e",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_just_text(text: str) -> None:
    """Any text may be written and is found again; none is ever interpreted."""
    world = office(call("email_send_email", **{**MAIL, "subject": text}))
    world.email.send_email(MAIL["recipient"], text, MAIL["body"])
    assert reward(world) == 1.0
    assert world.email.get_email_information_by_id("500", "subject") == {"subject": text}
    assert isinstance(world.email.search_emails(text)["emails"], list)
    assert isinstance(world.company_directory.find_email_address(text), list)
    with pytest.raises(ToolError, match="no email has the id"):
        world.email.delete_email(text)


def test_pages_are_cut_and_counted() -> None:
    """A page holds at most its size, says how many there are, and the last one the rest."""
    world = office()
    first = play(world, "customer_relationship_manager_search_customers", page_size=30)
    assert len(first["customers"]) == 30
    assert first["pagination"] == {"total_customers": 200, "page": 1, "page_size": 30, "total_pages": 7}
    last = play(world, "customer_relationship_manager_search_customers", page_size=30, page=7)
    beyond = play(world, "customer_relationship_manager_search_customers", page_size=30, page=10**30)
    assert (len(last["customers"]), beyond["customers"]) == (20, [])
    assert len(play(world, "email_search_emails", query=None, page=None)["emails"]) == 5


@pytest.mark.parametrize("page", [{"page": 0}, {"page": -1}, {"page_size": 0}, {"page_size": 51}])
def test_a_page_that_cannot_be_is_refused(page: dict[str, int]) -> None:
    """Both limits are in the schema; a call past them is refused there, or by the tool."""
    with pytest.raises(ToolError):
        office().email.search_emails(page=page.get("page", 1), page_size=page.get("page_size", 5))
    assert Workplace.tools["email_search_emails"].schema["properties"]["page_size"]["maximum"] == 50


def test_lists_are_newest_first_with_own_rows_among_them() -> None:
    """New and changed rows stand where their time puts them; deleted ones are gone."""
    world = office()
    day = {"time_min": "2023-12-04", "time_max": "2023-12-04"}
    before = play(world, "calendar_search_events", **day, page_size=50)["events"]
    world.calendar.delete_event(before[0]["event_id"])
    world.calendar.update_event(before[1]["event_id"], "event_start", "2023-12-04 23:00:00")
    world.calendar.create_event("Review", "a@b.example", "2023-12-04 23:30:00", "30")
    after = play(world, "calendar_search_events", **day, page_size=50)["events"]
    assert [each["event_start"][11:] for each in after[:2]] == ["23:30:00", "23:00:00"]
    assert before[0]["event_id"] not in [each["event_id"] for each in after]
    assert after == sorted(after, key=lambda each: each["event_start"], reverse=True)


def test_the_clock_dates_what_is_sent() -> None:
    """New mail is sent at the time of the options; replies and forwards are named as such."""
    world = Workplace.bound({"clock": "2023-11-30 00:00:00"}).of_row({"ground_truth": []})
    world.email.reply_email("00000001", "Fine.")
    world.email.forward_email("00000001", "a@b.example")
    subject = Workplace.shared.emails.rows["00000001"]["subject"]
    sent = list(world.email.created.values())
    assert [each["subject"] for each in sent] == [f"RE: {subject}", f"FW: {subject}"]
    assert {each["sent_datetime"] for each in sent} == {"2023-11-30 00:00:00"}


def test_toolkits_narrow_what_is_offered() -> None:
    """A row names the toolkits that it needs, and the directory comes with them; single tools come alone."""
    offered = office(toolkits=["email", "crm"]).offered()
    assert {name.rpartition("_")[0].split("_")[0] for name in offered} == {"company", "email", "customer"}
    assert len(offered) == 1 + 6 + 4
    assert len(office().offered()) == 27
    assert office(toolkits=["email_send_email", "calendar"]).offered()[0] == "email_send_email"
    assert office(toolkits=["email_send_email"]).offered() == ["email_send_email"]
    with pytest.raises(UsageError, match="no toolkit is called 'post'"):
        Workplace.of_row({"ground_truth": [], "toolkits": ["post"]})
    with pytest.raises(UsageError, match="there is no tool 'email_burn'"):
        office(toolkits=["email_burn"])


def test_a_row_of_nemo_gym_is_understood_in_both_forms() -> None:
    """The truth may stand at the top level or under `verifier_metadata`, arguments as text or as an object."""
    inner = {"verifier_metadata": {"ground_truth": [{"name": "email_send_email", "arguments": MAIL}]}}
    for row in ({"id": 4, "ground_truth": [SEND_MAIL], "category": "workplace_assistant_email"}, inner):
        world = Workplace.of_row(row)
        world.seed()
        for each in world.solution():
            play(world, each.name, **each.arguments)
        assert reward(world) == 1.0
        assert reward(Workplace.of_row(row)) == 0.0


def test_a_row_without_truth_or_with_one_that_cannot_be_is_refused() -> None:
    """Before a model is asked: nothing an agent does could be judged by it. No argument is quoted."""
    with pytest.raises(UsageError, match="ground_truth"):
        Workplace.of_row({"responses_create_params": {}})
    with pytest.raises(UsageError, match="ground_truth"):
        Workplace.of_row({"ground_truth": [{"name": "email_delete_email", "arguments": "{"}]})
    with pytest.raises(TruthRefused, match="call 0"):
        office(call("email_delete_email", email_id="00009999"))
    with pytest.raises(TruthRefused, match="there is no tool 'email_burn'"):
        office(call("email_burn"))


def test_a_plot_is_recorded_each_time_it_is_made() -> None:
    """Its path follows from the arguments; made twice it is in the record twice, as in WorkBench."""
    plot = {
        "time_min": "2023-11-01",
        "time_max": "2023-11-30 00:00:00",
        "value_to_plot": "user_engaged",
        "plot_type": "line",
    }
    world = office(call("analytics_create_plot", **plot))
    for worth in (1.0, 0.0):
        assert play(world, "analytics_create_plot", **plot) == "plots/2023-11-01_2023-11-30_user_engaged_line.png"
        assert reward(world) == worth


ANALYTICS: list[tuple[Callable[[Any], float], str]] = [
    (lambda rows: len(rows), "analytics_total_visits_count"),
    (lambda rows: sum(row["user_engaged"] == "True" for row in rows), "analytics_engaged_users_count"),
    (
        lambda rows: round(sum(float(row["session_duration_seconds"]) for row in rows) / len(rows), 2),
        "analytics_get_average_session_duration",
    ),
]


@pytest.mark.parametrize(("value", "name"), ANALYTICS)
def test_days_are_summed_as_the_visits_say(value: Callable[[Any], float], name: str) -> None:
    """Each number by day is what the single visits of that day give; both ends of the range belong to it."""
    world = office()
    rows = [row for visits in Workplace.shared.visits.by_visitor.values() for row in visits]
    found = play(world, name, time_min="2023-10-02", time_max="2023-10-09")
    days = sorted({row["date_of_visit"] for row in rows if "2023-10-02" <= row["date_of_visit"] <= "2023-10-09"})
    assert found == {day: value([row for row in rows if row["date_of_visit"] == day]) for day in days}


def test_visits_are_told_apart_by_source() -> None:
    """The four sources of a day add up to its visits."""
    world = office()
    sources = ("direct", "referral", "search engine", "social media")
    parts = [play(world, "analytics_traffic_source_count", traffic_source=source) for source in sources]
    total = play(world, "analytics_traffic_source_count")
    assert {day: sum(part[day] for part in parts) for day in total} == total
