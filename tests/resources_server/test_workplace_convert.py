"""WorkBench's files as rows and as scored lines, on samples made by hand in its column format."""

import csv
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from resources_server import Response
from resources_server.environments.workplace import Workplace

SCRIPT = Path(__file__).parent.parent.parent / "data" / "workplace" / "convert_workbench.py"
TASKS = [
    {
        "task": "Delete my first meeting",
        "outcome": """['calendar.delete_event.func(event_id="00000256")']""",
        "base_template": "Delete {it}",
        "chosen_template": "Delete {it}",
        "domains": "['calendar']",
    },
    {
        "task": 'Tell Kim "hi, there"',
        "outcome": """['email.send_email.func(recipient="kim@corp", subject="hi", body="hi, \\\\"there\\\\"")']""",
        "base_template": "Tell",
        "chosen_template": "Tell",
        "domains": "['crm', 'email']",
    },
    {"task": "If it rains", "outcome": "[]", "base_template": "If", "chosen_template": "If", "domains": "['calendar']"},
]
RESULTS = {
    "Delete my first meeting": (
        """['calendar.search_events.func(query="x")', 'calendar.delete_event.func("256")']""",
        "",
    ),
    'Tell Kim "hi, there"': (
        """['email.delete_email.func(email_id="00000001")', 'no call at all', 'email.burn.func()']""",
        "",
    ),
    "If it rains": ("[]", "Agent stopped due to iteration limit or time limit."),
}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("convert_workbench", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["convert_workbench"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def written(path: Path, rows: list[dict[str, str]]) -> str:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def converted(script: ModuleType, tmp_path: Path, tasks: list[dict[str, str]], *more: str) -> list[dict[str, Any]]:
    output = tmp_path / "out.jsonl"
    assert script.main([written(tmp_path / "calendar.csv", tasks), *more, "--output", str(output)]) == 0
    return [json.loads(line) for line in output.read_text().splitlines()]


@pytest.mark.parametrize("names", [("task", "outcome"), ("query", "answer")])
def test_tasks_become_rows(script: ModuleType, tmp_path: Path, names: tuple[str, str]) -> None:
    """Both generations of its column names; toolkits from the domains; calls parsed, whatever quotes they hold."""
    tasks = [{names[0]: each["task"], names[1]: each["outcome"], "domains": each["domains"]} for each in TASKS]
    rows = converted(script, tmp_path, tasks)
    assert [row["toolkits"] for row in rows] == [["calendar"], ["customer_relationship_manager", "email"], ["calendar"]]
    assert rows[0]["ground_truth"] == [{"name": "calendar_delete_event", "arguments": '{"event_id": "00000256"}'}]
    assert json.loads(rows[1]["ground_truth"][0]["arguments"])["body"] == 'hi, "there"'
    assert rows[2]["ground_truth"] == []
    assert [row["responses_create_params"]["input"][1]["content"] for row in rows] == list(RESULTS)
    for row in rows:
        world = Workplace.of_row(row)
        world.seed()
        assert world.verify(Response()).reward == float(not row["ground_truth"])


def test_recorded_calls_are_made_again_and_judged(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line per task with the verdict of a live session; what is no call is told to nobody and changes nothing."""
    results = [
        {"task": task, "function_calls": calls, "full_response": "", "error": error}
        for task, (calls, error) in RESULTS.items()
    ]
    lines = converted(script, tmp_path, TASKS, "--results", written(tmp_path / "model-x.csv", results))
    assert [line["reward"] for line in lines] == [1.0, 0.0, 1.0]
    assert [line["outcome"] for line in lines] == ["completed", "completed", "max_steps"]
    assert lines[1]["metrics"]["side_effects"] == 1.0
    assert lines[1]["metrics"]["invalid_calls"] == 2.0
    assert lines[0]["response"]["output"][0]["arguments"] == '{"query": "x"}'
    assert lines[0]["provenance"] == {"model": "model-x"}
    assert capsys.readouterr().out == "model-x: 3 tasks, 33.3 % right, 33.3 % with side effects\n"
    for line in lines:
        again = Workplace.model_validate({"task": line, **line["state"]}).verify(
            Response(output=line["response"]["output"])
        )
        assert (again.reward, again.metrics) == (line["reward"], line["metrics"])


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ("not a list", "not a list of texts"),
        ('[\'__import__("os").system("true").x[0]\']', "no call"),
        ("['email.send_email.func(recipient=open(\"x\"))']", "no call"),
    ],
)
def test_a_cell_that_holds_no_calls_is_named(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], outcome: str, message: str
) -> None:
    """Exit 2 with `file:line`; text is parsed and never executed, so that only plain values get through."""
    tasks = written(tmp_path / "tasks.csv", [{**TASKS[0], "outcome": outcome}])
    assert script.main([tasks, "--output", str(tmp_path / "out.jsonl")]) == 2
    assert f"tasks.csv:2: {message}" in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()


def test_a_truth_that_the_company_refuses_is_left_out_and_counted(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing can be judged by it; the table says how many there were, and how many had no result."""
    tasks = [{**TASKS[0], "outcome": """['calendar.delete_event.func(event_id="99999999")']"""}, *TASKS[1:]]
    results = [{"query": tasks[0]["task"], "function_calls": "[]", "error": ""}]
    assert converted(script, tmp_path, tasks, "--results", written(tmp_path / "model-y.csv", results)) == []
    assert "1 left out: the outcome cannot be carried out, 2 left out: no result" in capsys.readouterr().out
