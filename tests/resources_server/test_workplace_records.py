"""Canonical forms and the view that keeps only what changed, held against the grading room's own comparison."""

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources_server import Response, ToolError
from resources_server.environments.workplace import Workplace, canonical, company
from resources_server.environments.workplace.canonical import Kind
from resources_server.grading import state
from wire.errors import UsageError

SAME: list[tuple[Kind, str, str]] = [
    ("number", "30", "30.0"),
    ("number", "30", " 30 "),
    ("number", "30", "3e1"),
    ("number", "0", "-0.0"),
    ("moment", "2023-12-01 09:00", "2023-12-01 09:00:00"),
    ("moment", "2023-12-01T09:00:00", "2023-12-01 9:00"),
    ("moment", "2023-12-01", "2023-12-01 00:00:00"),
    ("date", "2023-12-01", "2023-12-1"),
    ("date", "2023-12-01", "2023-12-01 00:00:00"),
    ("address", "A@B.example", "a@b.EXAMPLE "),
    ("text", "Café", "CAFE\u0301"),
    ("text", "straße", "STRASSE"),
    ("choice", " Lead", "Lead"),
]
OTHER: list[tuple[Kind, str, str]] = [
    ("number", "30", "31"),
    ("number", "30", "thirty"),
    ("moment", "2023-12-01 09:00", "2023-12-01 21:00"),
    ("date", "2023-12-01", "2024-12-01"),
    ("text", "a b", "ab"),
    ("text", "030", "30"),  # a telephone number is no number
    ("choice", "Lead", "lead"),
]


@pytest.mark.parametrize(("kind", "one", "two"), SAME)
def test_two_ways_to_write_a_thing_are_equal(kind: Kind, one: str, two: str) -> None:
    """Both have one canonical form."""
    assert canonical.canonical(kind, one) == canonical.canonical(kind, two)


@pytest.mark.parametrize(("kind", "one", "two"), OTHER)
def test_different_things_stay_different(kind: Kind, one: str, two: str) -> None:
    """Normalising goes no further than it says."""
    assert canonical.canonical(kind, one) != canonical.canonical(kind, two)


@given(st.sampled_from(["text", "address", "choice", "number", "date", "moment"]), st.text(max_size=40))
def test_any_text_has_a_form_and_the_form_is_its_own(kind: Any, text: str) -> None:
    """Never an exception, and the same again when it is taken of the result."""
    form = canonical.canonical(kind, text)
    assert canonical.canonical(kind, form) == form


FORMS: dict[str, state.FormName | state.Canon] = {
    column: (lambda value, kind=kind: canonical.canonical(kind, value))  # type: ignore[misc]
    for layout in (company.EMAILS, company.EVENTS, company.TASKS, company.CUSTOMERS)
    for column, kind in layout.kinds.items()
}
KEYS = st.sampled_from(["00000000", "00000001", "00000002", "00000300", "00000301"])
NAMES = st.sampled_from(["Review", "REVIEW", "Other"])
STARTS = st.sampled_from(["2023-12-04 09:00", "2023-12-04 09:00:00", "2023-12-05 10:00:00"])
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("create_event"), NAMES, st.just("a@b.example"), STARTS, st.sampled_from(["30", "30.0", "60"])
        ),
        st.tuples(st.just("delete_event"), KEYS),
        st.tuples(st.just("update_event"), KEYS, st.just("event_name"), NAMES),
        st.tuples(st.just("update_event"), KEYS, st.just("event_start"), STARTS),
    ),
    max_size=6,
)


def calendar_after(steps: list[tuple[str, ...]]) -> Workplace:
    """An office in which these calls were made; what is refused changes nothing."""
    world = Workplace.of_row({"ground_truth": []})
    for name, *arguments in steps:
        try:
            getattr(world.calendar, name)(*arguments)
        except ToolError:
            continue
    return world


def whole_table(world: Workplace) -> dict[str, Any]:
    """The calendar as it is now, row by row: what a copy of the table would have been."""
    return {row["event_id"]: row for row in world.calendar._find(lambda _row, _text: True)}


@settings(max_examples=30, deadline=None)
@given(STEPS, STEPS)
def test_the_net_change_says_what_whole_tables_say(one: list[tuple[str, ...]], two: list[tuple[str, ...]]) -> None:
    """Comparing what was kept of two sessions finds the same as comparing full copies of their tables."""
    first, second = calendar_after(one), calendar_after(two)
    before = {"events": dict(Workplace.shared.events.rows)}
    full = state.match(
        before, {"events": whole_table(first)}, {"events": whole_table(second)}, forms=FORMS, ignore=["event_id"]
    )
    assert (first.changes() == second.changes()) == (full.reward == 1.0)


@settings(max_examples=20, deadline=None)
@given(STEPS)
def test_a_stored_session_goes_on_where_it_stopped(steps: list[tuple[str, ...]]) -> None:
    """State through JSON values and back: same rows, same verdict, and ids that were given stay given."""
    world = calendar_after(steps)
    again = Workplace.model_validate({"task": {"ground_truth": []}, **world.state()})
    assert whole_table(again) == whole_table(world)
    assert again.verify(Response()) == world.verify(Response())
    made = [each.calendar.create_event("x", "a@b.example", "2023-12-04 09:00", "30") for each in (world, again)]
    assert made[0] == made[1]


def test_a_copied_world_shares_the_company() -> None:
    """A deep copy has changes of its own and the same tables."""
    world = calendar_after([("delete_event", "00000001")])
    other = copy.deepcopy(world)
    other.calendar.delete_event("00000002")
    assert other.calendar._company is world.calendar._company
    assert world.calendar.deleted == ["00000001"]


TABLES = {
    "emails": "email_id,inbox/outbox,sender/recipient,subject,sent_datetime,body\n"
    "00000373,inbox,kim@corp,Hello,2023-10-01 09:15:02,\"Hi,\nthere\"\n",
    "calendar_events": "event_id,event_name,participant_email,event_start,duration\n00000013,sync up,kim@corp,2023-08-01 09:00,90\n",
    "analytics_data": "date_of_visit,visitor_id,page_views,session_duration_seconds,traffic_source,user_engaged\n"
    "2023-10-22,0860,8,4,referral,False\n2023-10-22,0860,8,8,direct,True\n",
    "project_tasks": "task_id,task_name,assigned_to_email,list_name,due_date,board\n"
    "00000149,Add it,Lee@corp,Backlog,2023-11-27,Front end\n",
    "customer_relationship_manager_data": "customer_id,assigned_to_email,customer_name,customer_email,customer_phone,last_contact_date,"
    "product_interest,status,follow_up_by,notes\n00000189,kim@corp,Jo Ray,jo@lab,,2023-11-30,Consulting,Lost,2023-12-22,\n",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small company in WorkBench's files."""
    for name, text in TABLES.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


def test_another_company_is_loaded_from_five_files(folder: Path) -> None:
    """WorkBench's columns; the directory is made of the tables' addresses where it has no file."""
    world = Workplace.bound({"data_dir": str(folder)}).of_row({"ground_truth": []})
    assert world.calendar.get_event_information_by_id("13", "event_start") == {"event_start": "2023-08-01 09:00:00"}
    assert world.email.get_email_information_by_id("373", "body") == {"body": "Hi,\nthere"}
    assert world.company_directory.find_email_address("") == ["Lee@corp", "kim@corp"]
    assert world.analytics.get_average_session_duration() == {"2023-10-22": 6.0}
    assert world.calendar.create_event("x", "kim@corp", "2023-12-01 09:00", "30") == "00000014"
    assert len(Workplace.shared.events.rows) == 300
    (folder / "email_addresses.csv").write_text("ann@corp\nbob@corp\n")
    company.load.cache_clear()
    named = Workplace.bound({"data_dir": str(folder)}).of_row({"ground_truth": []})
    assert named.company_directory.find_email_address("bob") == ["bob@corp"]


def test_tasks_go_to_people_who_are_known_where_that_is_asked_for(folder: Path) -> None:
    """WorkBench refuses other assignees; rows of another company could not be played that way, so it is an option."""
    strict = Workplace.bound({"data_dir": str(folder), "known_assignees": True}).of_row({"ground_truth": []})
    with pytest.raises(ToolError, match="'you@corp' is nobody here"):
        strict.project_management.update_task("149", "assigned_to_email", "you@corp")
    strict.project_management.update_task("149", "assigned_to_email", "KIM@corp")
    free = Workplace.of_row({"ground_truth": []})
    assert free.project_management.update_task("149", "assigned_to_email", "you@corp") == "Task 00000149 was updated."


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("emails", "subject,", "topic,", r"emails\.csv:1: column 'subject' is missing"),
        ("calendar_events", "2023-08-01 09:00", "soon", r"calendar_events\.csv:2: event_start 'soon' is no moment"),
        ("project_tasks", "2023-11-27", "27.11.", r"project_tasks\.csv:2: due_date '27\.11\.' is no date"),
    ],
)
def test_a_bad_file_is_named_with_its_line(folder: Path, name: str, old: str, new: str, message: str) -> None:
    """Nothing is guessed: what does not fit is told before the first session."""
    (folder / f"{name}.csv").write_text(TABLES[name].replace(old, new))
    with pytest.raises(UsageError, match=message):
        company.load(folder)


def test_a_missing_file_or_a_clock_that_is_none_is_told(folder: Path) -> None:
    """The message says which files a company has."""
    (folder / "emails.csv").unlink()
    with pytest.raises(UsageError, match=r"emails\.csv is missing"):
        Workplace.bound({"data_dir": str(folder)})
    with pytest.raises(UsageError, match="clock 'noon' is no time"):
        Workplace.bound({"clock": "noon"})
