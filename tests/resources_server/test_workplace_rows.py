"""The rows of `workplace`: every one solvable, none solved by a shortcut, all of them what the script makes."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from resources_server import Response
from resources_server.environments.workplace import Workplace
from wire import jsonl, strict_json

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "data" / "workplace"


def rows(name: str) -> list[dict[str, Any]]:
    return [row for _, row in jsonl.read(DATA / f"{name}.jsonl")]


@pytest.fixture(scope="module")
def all_rows() -> list[dict[str, Any]]:
    return rows("train") + rows("validation")


def question(row: dict[str, Any]) -> str:
    return str(row["responses_create_params"]["input"][1]["content"])


def test_the_committed_files_are_what_the_script_makes() -> None:
    """Tables and rows come out of one seed, byte for byte; each truth is carried out on the way."""
    made = subprocess.run(
        [sys.executable, str(DATA / "make.py"), "--check"], capture_output=True, text=True, cwd="/", check=False
    )
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")


def test_there_are_enough_rows_of_enough_kinds(all_rows: list[dict[str, Any]]) -> None:
    """At least 400 tasks from 40 templates, one to six calls, about 15 % without a change, several toolkits in some."""
    assert len(all_rows) >= 400
    assert len({row["template"] for row in all_rows}) >= 40
    calls = Counter(len(row["ground_truth"]) for row in all_rows)
    assert set(calls) == set(range(7))
    assert 0.14 <= calls[0] / len(all_rows) <= 0.16
    assert sum(len(row["toolkits"]) > 1 for row in all_rows) >= 50
    named = {call["name"] for row in all_rows for call in row["ground_truth"]}
    writing = {name for name, tool in Workplace.tools.items() if not tool.read_only}
    assert named == writing


def test_training_and_validation_share_no_template_and_no_question(all_rows: list[dict[str, Any]]) -> None:
    """Validation asks what training never asked, in kinds that it never saw."""
    train, validation = rows("train"), rows("validation")
    assert not {row["template"] for row in train} & {row["template"] for row in validation}
    assert len({question(row) for row in all_rows}) == len(all_rows) == len({row["task_id"] for row in all_rows})
    assert len(validation) >= 80


def test_every_solution_is_worth_1_and_doing_nothing_only_where_nothing_is_to_be_done(
    all_rows: list[dict[str, Any]],
) -> None:
    """The reference calls are within the toolkits offered; an agent that only answers is right on no-change tasks alone."""
    for row in all_rows:
        idle, busy = Workplace.of_row(row), Workplace.of_row(row)
        idle.seed()
        busy.seed()
        for call in busy.solution():
            assert call.name in busy.offered()
            tool = Workplace.tools[call.name]
            tool.bind(busy)(**tool.check(strict_json.dumps(call.arguments)))
        assert busy.verify(Response()).reward == 1.0, row["task_id"]
        assert busy.verify(Response()).metrics["undone"] == 0.0, row["task_id"]
        assert idle.verify(Response()).reward == float(not row["ground_truth"]), row["task_id"]


def test_a_part_of_the_solution_is_worth_nothing(all_rows: list[dict[str, Any]]) -> None:
    """Leaving out any one call is wrong: no call of a truth is there for show."""
    for row in all_rows:
        for left_out in range(len(row["ground_truth"])):
            world = Workplace.of_row(row)
            for place, call in enumerate(world.solution()):
                if place != left_out:
                    Workplace.tools[call.name].bind(world)(**call.arguments)
            verdict = world.verify(Response())
            assert (verdict.reward, verdict.metrics["missing"]) == (0.0, 1.0), row["task_id"]


def test_what_a_question_names_is_there_once() -> None:
    """A customer or a task that is called by its name is found by it, and by it alone, in a search."""
    world = Workplace.of_row({"ground_truth": []})
    shared = Workplace.shared
    for row in shared.customers.rows.values():
        found = world.customer_relationship_manager.search_customers(customer_name=row["customer_name"])
        assert found["customers"] == [row]
    for row in shared.tasks.rows.values():
        assert world.project_management.search_tasks(task_name=row["task_name"]) == [row]
    for address in shared.addresses:
        first, last = address.split("@")[0].split(".")
        assert (
            world.company_directory.find_email_address(first)
            == world.company_directory.find_email_address(last)
            == [address]
        )


def test_no_two_meetings_or_mails_are_at_the_same_time() -> None:
    """First, last, next and latest have one answer; meetings do not overlap and lie between 9 and 18."""
    starts = sorted(row["event_start"] for row in Workplace.shared.events.rows.values())
    sent = [row["sent_datetime"] for row in Workplace.shared.emails.rows.values()]
    assert len(set(starts)) == len(starts)
    assert len(set(sent)) == len(sent)
    assert max(sent) < Workplace.shared.clock
    assert all("09:00:00" <= start[11:] < "18:00:00" for start in starts)


def test_rows_are_lean_and_tell_the_model_no_truth(all_rows: list[dict[str, Any]]) -> None:
    """No schemas in a row; files below a megabyte; the date and time stand in the prompt, ids of the truth do not."""
    for name in ("train", "validation", "example"):
        assert (DATA / f"{name}.jsonl").stat().st_size < 1 << 20
    for row in all_rows:
        system, user = row["responses_create_params"]["input"]
        assert row["responses_create_params"].keys() == {"input"}
        assert "November 30, 2023" in system["content"] or "2023-11-30" in system["content"]
        if not row["template"].endswith("_by_id"):
            ids = [
                value
                for call in row["ground_truth"]
                for key, value in json.loads(call["arguments"]).items()
                if key.endswith("_id")
            ]
            assert not any(each in user["content"] for each in ids)


def test_examples_begin_with_the_easiest() -> None:
    """A dozen and a few rows for a first run: one toolkit and one call to begin with, no-change tasks among them."""
    examples = rows("example")
    assert 12 <= len(examples) <= 20
    for row in examples[:6]:
        assert len(row["toolkits"]) == len(row["ground_truth"]) == 1
    assert sum(not row["ground_truth"] for row in examples) >= 2
    assert any(len(row["ground_truth"]) > 1 for row in examples)
    assert any(len(row["toolkits"]) > 1 for row in examples)
