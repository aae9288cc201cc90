"""An output that exists is gone on with: nothing twice, nothing forgotten, nothing mixed with another run."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rollouts.collect import check_inputs
from tests.rollouts.runs import Runs, keys, lines, row, write
from tests.rollouts.scripted_agent import ScriptedAgent, failed, scored
from wire.errors import UsageError

FOUR_TWICE = [(task, repeat) for task in range(4) for repeat in range(2)]


def keep(path: Path, wanted: int) -> None:
    """Cut a file to its first lines."""
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:wanted]))


def failure_line(task: int, repeat: int, attempt: int, kind: str = "model_timeout") -> dict[str, Any]:
    """What a failed attempt leaves."""
    return {**failed(row(task), kind), "task_index": task, "rollout_index": repeat, "attempt": attempt}


async def test_only_what_is_missing_or_failed_runs(runs: Runs, agent: ScriptedAgent) -> None:
    """Case D03: five of eight keys are there and one has failed twice: three rollouts run, progress ends at 8/8."""
    await runs.collect([row(each) for each in range(4)], repeats=2)
    kept = [each for each in lines(runs.output) if (each["task_index"], each["rollout_index"]) != (3, 0)][:5]
    write(runs.output, kept)
    write(runs.failures, [failure_line(3, 0, 1), failure_line(3, 0, 2)])
    agent.asked.clear()

    summary = await runs.collect(repeats=2)

    assert len(agent.asked) == 3 and keys(runs.output) == FOUR_TWICE
    assert summary.line == "8 ok, 0 failed, 0 missing" and summary.exit_code == 0
    assert runs.heard.ticks[0].done == 5
    assert [each.done for each in runs.heard.ticks][-1] == 8 and max(each.done for each in runs.heard.ticks) == 8
    assert next(each for each in lines(runs.output) if each["task_index"] == 3 and each["attempt"] == 3)


async def test_a_finished_run_asks_nothing(runs: Runs, agent: ScriptedAgent) -> None:
    """No call, exit 0, the same run id."""
    first = await runs.collect([row(0), row(1)])
    agent.asked.clear()
    again = await runs.collect()

    assert not agent.asked and again.exit_code == 0 and again.run_id == first.run_id


async def test_more_repeats_run_only_the_new_ones(runs: Runs, agent: ScriptedAgent) -> None:
    """Repeats may grow: four tasks at two repeats become three."""
    await runs.collect([row(each) for each in range(4)], repeats=2)
    agent.asked.clear()
    summary = await runs.collect(repeats=3)

    assert len(agent.asked) == 4 and summary.counts.ok == 12


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda rows: [*rows[:2], {**rows[2], "responses_create_params": {"input": "other"}}, rows[3]], "rows.jsonl:3"),
        (lambda rows: [rows[0], rows[2], rows[1], rows[3]], "rows.jsonl:2"),
        (lambda rows: rows[:3], "task 3"),
    ],
    ids=["edited", "swapped", "gone"],
)
async def test_other_rows_are_refused(runs: Runs, change: Any, names: str) -> None:
    """The first row that is another one is named, and nothing is changed."""
    rows = [row(each) for each in range(4)]
    await runs.collect(rows)
    before = runs.output.read_bytes()

    with pytest.raises(UsageError, match=names):
        check_inputs(runs.plan(change(rows)))
    assert runs.output.read_bytes() == before


async def test_rows_may_be_added(runs: Runs, agent: ScriptedAgent) -> None:
    """A longer data set with the same beginning goes on."""
    rows = [row(each) for each in range(4)]
    await runs.collect(rows[:3])
    agent.asked.clear()
    summary = await runs.collect(rows)

    assert len(agent.asked) == 1 and summary.counts.ok == 4


async def test_a_limit_forgets_nothing(runs: Runs, agent: ScriptedAgent) -> None:
    """A resume over fewer rows is allowed; one over all of them still knows the rows that were left out."""
    rows = [row(each) for each in range(4)]
    await runs.collect(rows)
    assert (await runs.collect(limit=2)).outside == 2

    with pytest.raises(UsageError, match="task 3"):
        check_inputs(runs.plan([*rows[:3], row(9)]))


async def test_another_config_is_refused(runs: Runs) -> None:
    """The first field that differs is named, with both values."""
    await runs.collect([row(0)], fingerprint={"agent": {"max_steps": 4}, "model": "a"})

    with pytest.raises(UsageError, match=r"agent\.max_steps was 4 and is now 5.*--fresh"):
        check_inputs(runs.plan(fingerprint={"agent": {"max_steps": 5}, "model": "b"}))


async def test_fresh_clears_everything(runs: Runs) -> None:
    """Other rows, other config: a new run, with none of the old lines."""
    first = await runs.collect([row(0), row(1, does="model_refused")])
    summary = await runs.collect([row(7)], fresh=True, fingerprint={"model": "b"})

    assert [each["number"] for each in lines(runs.output)] == [7] and not lines(runs.failures)
    assert summary.run_id != first.run_id


async def test_a_torn_last_line_is_run_again(runs: Runs, agent: ScriptedAgent) -> None:
    """Ruling 3: cut back to the last newline, in either file."""
    await runs.collect([row(each) for each in range(3)])
    whole = runs.output.read_bytes()
    runs.output.write_bytes(whole[:-7])
    runs.failures.write_bytes(b'{"task_index": 0')
    agent.asked.clear()

    summary = await runs.collect()

    assert len(agent.asked) == 1 and summary.counts.ok == 3 and keys(runs.output) == [(0, 0), (1, 0), (2, 0)]
    assert any("torn" in each for each in runs.heard.notes)


@pytest.mark.parametrize(
    "text", ["not json", "[1]", '{"number": 1}', '{"task_index": 0, "rollout_index": 0, "reward": null}']
)
async def test_any_other_bad_line_stops(runs: Runs, text: str) -> None:
    """The line is named; the file is left as it was."""
    await runs.collect([row(each) for each in range(3)])
    whole = runs.output.read_text().splitlines()
    runs.output.write_text("\n".join([whole[0], text, whole[2]]) + "\n")
    before = runs.output.read_bytes()

    with pytest.raises(UsageError, match=r"out\.jsonl:2: "):
        check_inputs(runs.plan())
    assert runs.output.read_bytes() == before


async def test_a_key_that_is_there_twice_stops(runs: Runs) -> None:
    """No reader could tell which one counts."""
    await runs.collect([row(0)])
    runs.output.write_bytes(runs.output.read_bytes() * 2)

    with pytest.raises(UsageError, match=r"out\.jsonl:2: task 0, repeat 0"):
        check_inputs(runs.plan())


async def test_spent_attempts_stay_failed_until_there_are_more(runs: Runs, agent: ScriptedAgent) -> None:
    """Attempts of earlier runs count."""
    await runs.collect([row(0, does=["model_error", "model_error", "ok"])], attempts=2)
    summary = await runs.collect(attempts=2)
    assert summary.line == "0 ok, 1 failed, 0 missing" and len(agent.asked) == 2

    summary = await runs.collect(attempts=3)
    assert summary.line == "1 ok, 0 failed, 0 missing" and len(agent.asked) == 3


async def test_a_permanent_failure_is_retried_when_asked_to(runs: Runs, agent: ScriptedAgent) -> None:
    """The verifier was mended: `retry_permanent` tries once more."""
    await runs.collect([row(0, does=["verifier_error", "ok"])])
    assert (await runs.collect()).counts.failed == 1 and len(agent.asked) == 1

    assert (await runs.collect(retry_permanent=True)).counts.ok == 1


async def test_lines_without_a_record_are_compared_with_the_rows(runs: Runs, agent: ScriptedAgent) -> None:
    """Files that were carried elsewhere without `out_run.json` are gone on with, unless their fields are other rows'."""
    rows = [row(each) for each in range(3)]
    write(runs.output, [{**scored(rows[1]), "task_index": 1, "rollout_index": 0}])
    assert (await runs.collect(rows)).counts.ok == 3 and len(agent.asked) == 2

    (runs.output.parent / "out_run.json").unlink()
    with pytest.raises(UsageError, match=r"out\.jsonl:1: field 'number'"):
        check_inputs(runs.plan([row(0), row(5), row(2)]))


async def test_one_collector_per_output(runs: Runs) -> None:
    """A second one is refused while the first holds the files."""
    first = check_inputs(runs.plan([row(0)]))
    with pytest.raises(UsageError, match="another process is collecting"):
        check_inputs(runs.plan())
    first.close()
    check_inputs(runs.plan()).close()


async def test_a_full_disk_leaves_whole_lines(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that could not be written in full is taken back, and the command says why it stopped."""
    write_, left = os.write, [400]

    def full(descriptor: int, data: bytes) -> int:
        if Path(f"/proc/self/fd/{descriptor}").readlink() != runs.output:
            return write_(descriptor, data)
        if not left[0]:
            raise OSError(28, "No space left on device")
        left[0], room = max(0, left[0] - len(data)), left[0]
        return write_(descriptor, data[:room])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(UsageError, match="No space left"):
        await runs.collect([row(each) for each in range(5)], concurrency=1)

    text = runs.output.read_text()
    assert not text or text.endswith("\n")
    assert all(json.loads(line) for line in text.splitlines())
