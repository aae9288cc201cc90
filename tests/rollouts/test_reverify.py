"""Judging again: the same verdict from the line as from the live world, another one from a changed verifier, a count for the rest."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from rollouts.diff import diff
from rollouts.fingerprint import Record, Run
from rollouts.reverify import reverify
from tests.stack import run, stack, trivium
from wire import jsonl
from wire.errors import UsageError

STRICTER = '''
"""The warehouse with a verdict that also asks for an answer, and one that breaks."""

from resources_server import Response
from resources_server.environments import counter


class Never(counter.Counter):
    version = "2"

    def verify(self, response: Response) -> float:
        return 0.5 if self.count else 1 / 0
'''


async def play(folder: Path) -> Path:
    """Four rollouts of the counter: two reach the goal, two do not."""
    path = folder / "out.jsonl"
    turns = [{"calls": [{"name": "increment_counter", "arguments": {"count": 2}}]}, {"text": "done"}]
    async with stack(
        resources_server={"environment": "counter"},
        model_interface={"backend": "scripted", "options": {"turns": turns}},
    ) as urls:
        rows = [
            {"responses_create_params": {"input": "Go."}, "initial_count": start, "expected_count": 4}
            for start in (2, 2, 1, -2)
        ]
        lines = await asyncio.gather(*(run(urls, row) for row in rows))
    with jsonl.Appender(path) as out:
        for number, line in enumerate(lines):
            out.append({**line, "task_index": number, "rollout_index": 0})
    return path


async def test_an_unchanged_verifier_says_the_same(tmp_path: Path) -> None:
    """The stored state is enough; nothing runs but the class."""
    path = await play(tmp_path)
    outcome = (await asyncio.to_thread(reverify, [path]))["counter"]
    assert (outcome.same, outcome.after.n, outcome.before.mean, outcome.after.mean) == (4, 4, 0.5, 0.5)


async def test_a_changed_verifier_is_told_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewards move, and a verdict that raises is a failure and no 0."""
    (tmp_path / "stricter.py").write_text(STRICTER)
    monkeypatch.syspath_prepend(str(tmp_path))
    path = await play(tmp_path)
    written: list[dict[str, Any]] = []
    found = await asyncio.to_thread(reverify, [path], environment="stricter:Never", write=written.append)
    outcome = found["stricter:Never"]
    assert (outcome.higher, outcome.lower, dict(outcome.lost)) == (1, 2, {"verifier_error": 1})
    assert outcome.changes[0].place == f"{path}:1"
    assert [line["reward"] for line in written] == [0.5, 0.5, 0.5, None]
    assert written[3]["mask_sample"] is True
    assert "ZeroDivisionError" in written[3]["failure"]["message"]
    assert written[0]["environment_ref"]["version"] == "2"


def test_lines_that_cannot_be_judged_are_counted(tmp_path: Path) -> None:
    """A failure before the verdict has nothing to judge; one of the verifier has."""
    path = tmp_path / "out_failures.jsonl"
    row = {"responses_create_params": {"input": "Go."}, "initial_count": 0, "expected_count": 0, "reward": None}
    with jsonl.Appender(path) as out:
        named = {**row, "environment_ref": {"name": "counter"}}
        out.append({**named, "response": None, "failure": {"stage": "model"}})
        judged = {**named, "response": {"output": []}, "failure": {"stage": "verify"}}
        out.append({**judged, "state": {"count": 0}})
        out.append(judged)
        out.append({**row, "response": {"output": []}})
    outcomes = reverify([path])
    assert (outcomes["counter"].gained, sum(outcomes["counter"].not_judged.values())) == (1, 2)
    assert sum(outcomes["None"].not_judged.values()) == 1


async def test_the_commands_print_tables(tmp_path: Path) -> None:
    """`reverify`, `diff` and `profile` on a real run; `reverify` writes lines and refuses to overwrite."""
    path = await play(tmp_path)
    told = await asyncio.to_thread(trivium, "reverify", str(path), "--output", "again.jsonl", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert len(list(jsonl.read(tmp_path / "again.jsonl"))) == 4
    refused = await asyncio.to_thread(trivium, "reverify", str(path), "--output", "again.jsonl", cwd=tmp_path)
    assert (refused.returncode, "exists" in refused.stderr) == (2, True)
    compared = await asyncio.to_thread(trivium, "diff", str(path), "again.jsonl", cwd=tmp_path)
    assert "second less first: +0.0000" in " ".join(compared.stdout.split())
    profiled = await asyncio.to_thread(trivium, "profile", str(path), "--html", "page.html", cwd=tmp_path)
    assert profiled.returncode == 0, profiled.stderr
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_runs_without_a_common_environment_cannot_be_compared(tmp_path: Path) -> None:
    """The message names what each has."""
    for name in ("a", "b"):
        with jsonl.Appender(tmp_path / f"{name}.jsonl") as out:
            out.append({"reward": 1.0, "task_index": 0, "rollout_index": 0, "environment_ref": {"name": name}})
    with pytest.raises(UsageError, match=r"a\.jsonl has a; .*b\.jsonl has b"):
        diff(tmp_path / "a.jsonl", tmp_path / "b.jsonl")


def test_what_else_changed_is_what_makes_lines_comparable(tmp_path: Path) -> None:
    """The settings in the two runs' records; ids and times of a run are always others and are not told."""
    for name, model in (("a", "small"), ("b", "large")):
        with jsonl.Appender(tmp_path / f"{name}.jsonl") as out:
            out.append({"reward": 1.0, "task_index": 0, "rollout_index": 0, "environment_ref": {"name": "shop"}})
        fingerprint = {"agent_server": {"max_steps": 5}, "model_interface": {"model": model}}
        Record(tmp_path / f"{name}_run.json", tmp_path / f"{name}_run.rows").save(
            Run(fingerprint, ["shop"], started_at=name), b""
        )
    found = diff(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert found.settings == [("model_interface.model", "small", "large")]
