"""Turns WorkBench's task files into rows for `workplace`, and its recorded results into scored lines.

    python data/workplace/convert_workbench.py TASKS.csv … --data-dir FOLDER --output rows.jsonl
    python data/workplace/convert_workbench.py TASKS.csv … --data-dir FOLDER --results RESULTS.csv … --output lines.jsonl

Task files have the columns `task` and `outcome` (older: `query` and `answer`), result files `task` (`query`) and `function_calls`.
With results, each task's recorded calls are made in an office with WorkBench's own tables (`--data-dir`, five CSV files) and what they
leave behind is judged as a live session is. Nothing of WorkBench's is in this repository; it is under the MIT licence.
"""

import argparse
import ast
import csv
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent)]

from resources_server import Response, ToolError  # noqa: E402  found by the line above, from wherever the script is run
from resources_server.environments.workplace import Workplace  # noqa: E402
from resources_server.environments.workplace.world import TruthRefused  # noqa: E402
from resources_server.mistakes import Mistake  # noqa: E402
from wire import strict_json  # noqa: E402
from wire.errors import UsageError  # noqa: E402

CLOCK = "2023-11-30 00:00:00"  # of WorkBench's world
SYSTEM = (
    "It is Thursday, November 30, 2023, 00:00. You work through the tools of an office: mail, calendar, web site analytics, project boards "
    "and customer relationship manager. Meetings are between 9:00 and 18:00. Do what is asked, and change nothing else."
)
KITS = {"crm": "customer_relationship_manager"}  # WorkBench's short names -> ours
ENDED = {"iteration limit": "max_steps", "context": "context_window", "maximum": "context_window"}
"""A word in WorkBench's `error` column -> how the episode ended."""

Row = dict[str, Any]


class Unreadable(ValueError):
    """A cell of a WorkBench file is not what it should be; the message names file and line."""


def rows(path: Path) -> Iterator[Row]:
    """The tasks of a file as rows.

    Raises:
        Unreadable: a column is missing, or a cell holds no calls.
    """
    for number, (where, cells) in enumerate(_lines(path)):
        kits = [KITS.get(kit, kit) for kit in _listed(cells.get("domains") or "[]", where)]
        truth = [
            {"name": name, "arguments": json.dumps(arguments)}
            for name, arguments in _calls(_either(cells, where, "outcome", "answer"), where)
        ]
        yield {
            "task_id": f"workbench-{path.stem}-{number}",
            "responses_create_params": {
                "input": [
                    {"role": "system", "content": SYSTEM},
                    {"role": "user", "content": _either(cells, where, "task", "query")},
                ]
            },
            "toolkits": kits,
            "template": cells.get("base_template") or "",
            "ground_truth": truth,
        }


@dataclass
class Recorded:
    """What a model did about one task."""

    calls: list[tuple[str, dict[str, Any]]]
    outcome: str
    broke_off: bool = False  # WorkBench noted an error


def recorded(path: Path) -> dict[str, list[Recorded]]:
    """The results of a file by the text of the task; a task that is asked twice has two."""
    found: dict[str, list[Recorded]] = {}
    for where, cells in _lines(path):
        error = cells.get("error") or ""
        outcome = next((name for word, name in ENDED.items() if word in error.lower()), "completed")
        calls = [_tolerant(each, where) for each in _listed(_either(cells, where, "function_calls"), where)]
        found.setdefault(_either(cells, where, "task", "query"), []).append(Recorded(calls, outcome, bool(error)))
    return found


def replayed(office: type[Workplace], row: Row, record: Recorded) -> Row:
    """The rollout line of a recorded episode: its calls made in a fresh office, and the verdict on it.

    Raises:
        TruthRefused: the row's own ground truth cannot be carried out in this company.
    """
    world = office.of_row(row)
    world.seed()
    output: list[dict[str, Any]] = []
    for number, (name, arguments) in enumerate(record.calls):
        call = {"type": "function_call", "call_id": f"call_{number}", "name": name, "arguments": json.dumps(arguments)}
        output += [
            call,
            {"type": "function_call_output", "call_id": f"call_{number}", "output": _made(world, name, arguments)},
        ]
    verdict = world.verify(Response(output=output))
    return {
        **row,
        "response": {"object": "response", "output": output},
        "reward": verdict.reward,
        "metrics": verdict.metrics,
        "reason": verdict.reason,
        "state": world.state(),
        "outcome": record.outcome,
        "failure": None,
        "mask_sample": False,
        "environment_ref": {"name": "workplace", "version": office.version},
    }


def _made(world: Workplace, name: str, arguments: dict[str, Any]) -> str:
    """The tool's answer as text, a refusal included."""
    tool = type(world).tools.get(name)
    if tool is None:
        return json.dumps({"error": [f"there is no tool {name!r}"]})
    try:
        value = tool.bind(world)(**tool.check(strict_json.dumps(arguments)))
    except (Mistake, ToolError) as error:
        return json.dumps({"error": [str(error)]})
    return value if isinstance(value, str) else json.dumps(value)


def _lines(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The records of a CSV file, each with `file:line`."""
    csv.field_size_limit(2**30)  # a recorded response can be long
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream)
        for cells in reader:
            yield f"{path}:{reader.line_num}", cells


def _either(cells: dict[str, str], where: str, *names: str) -> str:
    for name in names:
        if cells.get(name) is not None:
            return cells[name]
    raise Unreadable(f"{where}: there is no column {' or '.join(names)}")


def _listed(text: str, where: str) -> list[str]:
    try:
        value = ast.literal_eval(text.strip() or "[]")
    except (ValueError, SyntaxError) as error:
        raise Unreadable(f"{where}: not a list of texts: {text[:80]!r}") from error
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Unreadable(f"{where}: not a list of texts: {text[:80]!r}")
    return value


def _calls(text: str, where: str) -> list[tuple[str, dict[str, Any]]]:
    """`['calendar.delete_event.func(event_id="00000256")']` as names and arguments; never executed, only parsed."""
    return [_call(each, where) for each in _listed(text, where)]


def _call(text: str, where: str) -> tuple[str, dict[str, Any]]:
    try:
        node = ast.parse(text.strip(), mode="eval").body
        if not isinstance(node, ast.Call):
            raise ValueError("no call")
        name = ast.unparse(node.func).removesuffix(".func").replace(".", "_")
        known = Workplace.tools[name].parameters if name in Workplace.tools else ()
        given = dict(zip(known, (ast.literal_eval(each) for each in node.args), strict=False))
        given |= {each.arg: ast.literal_eval(each.value) for each in node.keywords if each.arg}
    except (ValueError, SyntaxError) as error:
        raise Unreadable(f"{where}: no call: {text[:80]!r}") from error
    return name, {key: value for key, value in given.items() if value is not None}


def _tolerant(text: str, where: str) -> tuple[str, dict[str, Any]]:
    """A call that a model made; what it wrote may be no call at all, and then it is one that no tool answers."""
    try:
        return _call(text, where)
    except Unreadable:
        return text[:80], {}


@dataclass
class Score:
    """One line of the accuracy table."""

    tasks: int = 0
    right: int = 0
    side_effects: int = 0  # tasks that came out wrong and changed something, as WorkBench counts them
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, line: Row, broke_off: bool) -> None:
        """Count a scored line; one that broke off is wrong in WorkBench's table, whatever it left behind."""
        self.tasks += 1
        self.right += line["reward"] == 1.0 and not broke_off
        self.side_effects += line["reward"] != 1.0 and line["metrics"]["side_effects"] > 0

    def __str__(self) -> str:
        share = 100 / max(self.tasks, 1)
        gone = "".join(f", {count} left out: {why}" for why, count in self.left_out.items())
        return f"{self.tasks} tasks, {self.right * share:.1f} % right, {self.side_effects * share:.1f} % with side effects{gone}"


def scored(
    office: type[Workplace], tasks: Iterable[Row], results: dict[str, list[Recorded]], score: Score
) -> Iterator[Row]:
    """The tasks that were tried, each with its verdict."""
    for row in tasks:
        records = results.get(row["responses_create_params"]["input"][1]["content"])
        if not records:
            score.left_out["no result"] += 1
            continue
        record = records.pop(0)
        try:
            line = replayed(office, row, record)
        except TruthRefused:
            score.left_out["the outcome cannot be carried out"] += 1
            continue
        score.add(line, record.broke_off)
        yield line


def main(arguments: list[str] | None = None) -> int:
    """Convert, and with results print one line of the accuracy table per result file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "tasks", nargs="+", type=Path, help="WorkBench's *_tasks_and_outcomes.csv or *_queries_and_answers.csv"
    )
    parser.add_argument("--data-dir", type=Path, help="folder with WorkBench's five tables; our own company by default")
    parser.add_argument("--results", nargs="+", type=Path, default=[], help="result files of the same tasks")
    parser.add_argument("--output", type=Path, required=True, help="the JSONL file to write")
    options = parser.parse_args(arguments)
    try:
        lines = _converted(options)
    except (Unreadable, UsageError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    options.output.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return 0


def _converted(options: argparse.Namespace) -> list[Row]:
    tasks = [row for path in options.tasks for row in rows(path)]
    if not options.results:
        return tasks
    folder = {"data_dir": options.data_dir, "known_assignees": True} if options.data_dir else {}
    office = Workplace.bound({"clock": CLOCK, **folder})
    lines: list[Row] = []
    for path in options.results:
        score = Score()
        lines += ({**line, "provenance": {"model": path.stem}} for line in scored(office, tasks, recorded(path), score))
        sys.stdout.write(f"{path.stem}: {score}\n")
    return lines


if __name__ == "__main__":
    sys.exit(main())
