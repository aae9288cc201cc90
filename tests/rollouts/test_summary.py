"""What a person is told of a run: counts, tables, and the findings that would otherwise come a day later."""

import io
import os
from typing import Any

from rich.console import Console

from rollouts.findings import of_environment
from rollouts.progress import Lines, Patient, describe, duration, reporter, show
from rollouts.statistics import Statistics
from rollouts.summary import Summary, Tick
from tests.rollouts.runs import Runs, row
from tests.rollouts.scripted_agent import scored


def line(number: int = 0, **fields: Any) -> dict[str, Any]:
    """A rollout line."""
    return {**scored(row(number)), "task_index": number, "rollout_index": 0, **fields}


def told(summary: Summary) -> str:
    """What is printed at the end."""
    out = io.StringIO()
    show(summary, Console(file=out, width=200))
    return out.getvalue()


async def test_the_last_line_counts_everything(runs: Runs) -> None:
    """Ok, failed and missing; by outcome; failed by kind; where the time went; the slowest."""
    rows = [row(0), row(1, ends="max_steps"), row(2, does="model_refused")]
    text = told(await runs.collect(rows))

    assert text.splitlines()[-1].startswith("2 ok, 1 failed, 0 missing -> ")
    assert "completed 1" in text and "max_steps 1" in text and "failed: model_refused 1" in text
    assert "time: " in text and "slowest: " in text and "metrics: steps 1" in text


async def test_earlier_runs_are_in_the_summary(runs: Runs) -> None:
    """A resumed run tells of the whole file."""
    await runs.collect([row(0), row(1)])
    summary = await runs.collect([row(0), row(1), row(2, pays=0.4)])
    assert summary.statistics.n == 3 and abs(summary.statistics.rewards.mean - 0.8) < 1e-9 and summary.ran == 1


async def test_health_findings(runs: Runs) -> None:
    """One sentence each: a cause with its first message, equal rewards, retries, answers cut off."""
    rows = [row(each, ends="max_output_tokens", does=["rate_limited", "ok"]) for each in range(4)]
    summary = await runs.collect([*rows, row(9, does="model_refused")])

    found = "\n".join(summary.findings)
    assert "1 failed with model_refused, the first: model_refused on purpose" in found
    assert "5 of 9 attempts failed (rate_limited 4, model_refused 1)" in found
    assert "4 of 4 answers were cut off by the token limit" in found and "all 4 rewards are 1" in found


def test_tools_that_never_work_and_empty_answers_and_drift_are_found() -> None:
    """From the lines alone."""
    statistics = Statistics()
    for number in range(4):
        call = {"name": "look", "s": 0.1, "status": "error"}
        steps = [{"model_s": 1.0, "tool_s": 0.1, "tokens": {"fidelity": "retokenized"}, "calls": [call]}]
        empty = [{"type": "message", "role": "assistant", "content": ""}]
        statistics.add(line(number, reward=number, steps=steps, response={"output": empty}), "x")

    found = "\n".join(of_environment(statistics))
    assert "tool look never worked: all 4 calls of it failed" in found
    assert "4 of 4 answers are empty" in found and "tokens of 4 of 4 steps do not continue" in found


def test_what_an_environment_masks_is_in_no_mean() -> None:
    """It has a reward, and is counted, and leaves the mean alone."""
    statistics = Statistics()
    statistics.add(line(reward=1.0), "x")
    statistics.add(line(reward=0.0, mask_sample=True), "x")
    assert (statistics.n, statistics.rewards.n, statistics.rewards.mean) == (2, 1, 1.0)


def test_names_that_a_model_invents_do_not_fill_memory() -> None:
    """Past a bound they are counted together."""
    statistics = Statistics()
    for number in range(2000):
        steps = [{"calls": [{"name": f"tool_{number}", "status": "unknown"}]}]
        statistics.add(line(number, steps=steps, metrics={f"metric_{number}": 1}), "x")
    assert len(statistics.calls) <= 501 and len(statistics.metrics) <= 500 and sum(statistics.calls.values()) == 2000


def test_a_line_in_words() -> None:
    """All that a person waits for."""
    tick = Tick(done=12, total=40, ok=11, failed=1, mean_reward=0.7312, tokens_per_s=310.4, left_s=80)
    assert describe(tick) == "12/40 · 11 ok · 1 failed · mean reward 0.731 · 310 tokens/s · 1 min 20 s left"
    assert [duration(each) for each in (0.312, 42, 7460)] == ["0.31 s", "42 s", "2 h 4 min"]


async def test_a_terminal_gets_a_bar_and_a_log_gets_lines(runs: Runs) -> None:
    """The same facts in both; the bar is drawn on one line and is gone at the end."""
    out = io.StringIO()
    heard = reporter(Console(file=out, force_terminal=True, width=120))
    plan = runs.plan([row(each) for each in range(3)])
    await runs.run(plan, heard)
    assert "3/3" in out.getvalue() and "3 ok, 0 failed, 0 missing" in out.getvalue()

    plain = io.StringIO()
    assert isinstance(reporter(Console(file=plain)), Lines)
    await runs.run(runs.plan(fresh=True), Lines(Console(file=plain, width=200), every_s=0))
    assert "1/3 · 1 ok" in plain.getvalue() and "\x1b" not in plain.getvalue()


async def test_a_reader_who_leaves_does_not_end_the_run(runs: Runs) -> None:
    """`trivium collect … | head`: the pipe breaks, and every rollout is still collected."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        summary = await runs.run(runs.plan([row(0), row(1)]), Lines(Patient(file=pipe), every_s=0))
    assert summary.counts.ok == 2
