"""A run from rows to lines, against an agent server that fails as its rows say."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.rollouts.runs import Runs, keys, lines, row
from tests.rollouts.scripted_agent import ScriptedAgent
from wire import strict_json


async def test_every_rollout_is_one_line(runs: Runs, agent: ScriptedAgent) -> None:
    """Three tasks, two repeats: six lines with identity, provenance and the row's fields."""
    summary = await runs.collect([row(each) for each in range(3)], repeats=2, grace_s=5)

    assert keys(runs.output) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert summary.line == "6 ok, 0 failed, 0 missing" and summary.exit_code == 0
    line = lines(runs.output)[0]
    assert line["number"] == line["task_index"] == line["_ng_task_index"]
    assert (line["attempt"], line["group_size"], line["environment"]) == (1, 2, "scripted")
    assert line["provenance"]["run_id"] == summary.run_id and line["provenance"]["model"] == "m"
    assert len(set(agent.sessions)) == 6 and all(len(each) == 32 for each in agent.sessions)
    assert all(
        19 < each <= 20 for each in agent.budgets
    )  # what the agent may use; the collector waits `grace_s` longer


async def test_concurrency_is_exact(runs: Runs, agent: ScriptedAgent) -> None:
    """Five at once, never six; all of them as soon as there are free slots."""
    task = asyncio.create_task(runs.collect([row(each, does="slow") for each in range(12)], concurrency=5))
    await agent.until_asked(5)
    agent.release.set()
    await task

    assert agent.most_in_flight == 5 and len(agent.asked) == 12


async def test_a_bad_row_does_not_take_the_others_along(runs: Runs) -> None:
    """Case D07: three of ten fail for three causes, seven are there, and the command does not say that all is well."""
    rows = [row(each) for each in range(10)]
    rows[3]["does"], rows[5]["does"], rows[7]["does"] = "model_error", "verifier_error", "cut"

    summary = await runs.collect(rows, attempts=1, concurrency=4)

    assert summary.line == "7 ok, 3 failed, 0 missing" and summary.exit_code == 1
    assert len(lines(runs.output)) == 7
    assert {each["failure_kind"] for each in lines(runs.failures)} == {"model_error", "verifier_error", "agent_lost"}
    assert all(each["reward"] is None and each["mask_sample"] for each in lines(runs.failures))
    assert summary.kinds == {"model_error": 1, "verifier_error": 1, "agent_lost": 1}
    assert "task 3, repeat 0: model_error: model_error on purpose" in runs.heard.notes and len(runs.heard.notes) == 3


async def test_a_passing_cause_is_tried_again(runs: Runs, agent: ScriptedAgent) -> None:
    """Each attempt in a new session; the line says which attempt it was."""
    summary = await runs.collect([row(0, does=["model_timeout", "session_lost", "ok"])])

    assert summary.line == "1 ok, 0 failed, 0 missing"
    assert [each["attempt"] for each in lines(runs.failures)] == [1, 2]
    assert [each["attempt"] for each in lines(runs.output)] == [3]
    assert len(set(agent.sessions)) == 3


async def test_a_retry_without_a_wait_starts_when_its_attempt_has_ended(
    runs: Runs, agent: ScriptedAgent, caplog: pytest.LogCaptureFixture
) -> None:
    """Many fail at the same moment and wait for nothing: no rollout is in flight twice, and concurrency is kept."""
    rows = [row(each, does=["model_error"] * 4 + ["ok"]) for each in range(60)]
    summary = await runs.collect(rows, attempts=9, concurrency=8, max_filtered_share=1, max_failure_share=1)

    assert summary.line == "60 ok, 0 failed, 0 missing" and agent.most_in_flight <= 8
    assert [each.message for each in caplog.records] == []


async def test_a_permanent_cause_is_not_tried_again(runs: Runs, agent: ScriptedAgent) -> None:
    """A model that refused will refuse again."""
    summary = await runs.collect([row(0, does="model_refused")])

    assert summary.line == "0 ok, 1 failed, 0 missing" and len(agent.asked) == 1


@pytest.mark.parametrize(
    ("does", "kind", "says"),
    [
        ("html", "agent_lost", "<html>"),
        ("502", "agent_lost", "bad gateway"),
        ("torn", "agent_lost", "no strict JSON"),
        ("nan", "unserialisable", "no strict JSON"),
        ("text", "invalid_reward", "'1'"),
        ("400", "agent_error", "no such field"),
        ("cut", "agent_lost", "connection broke"),
    ],
)
async def test_a_useless_answer_is_a_failure(runs: Runs, does: str, kind: str, says: str) -> None:
    """Whatever the agent server answers, the line is strict JSON, has no reward and says what was wrong."""
    await runs.collect([row(0, does=does)], attempts=1)

    (line,) = lines(runs.failures)
    assert line["failure_kind"] == line["failure"]["kind"] == kind and says in line["failure_reason"]
    assert line["number"] == 0 and not lines(runs.output)


async def test_a_hung_rollout_ends_at_its_deadline(runs: Runs, agent: ScriptedAgent) -> None:
    """It is a timeout, its session is closed, and its slot is free for others."""
    summary = await runs.collect([row(0, does="hang"), row(1)], timeout_s=0.3, attempts=1, concurrency=1)

    assert summary.line == "1 ok, 1 failed, 0 missing"
    assert lines(runs.failures)[0]["failure_kind"] == "timeout"
    assert agent.closed == agent.sessions[:1]


async def test_the_session_of_a_rollout_whose_agent_was_lost_is_closed(runs: Runs, agent: ScriptedAgent) -> None:
    """Nobody else would, until it expires."""
    summary = await runs.collect([row(0, does=["cut", "ok"])])

    assert summary.line == "1 ok, 0 failed, 0 missing" and agent.closed == agent.sessions[:1]


async def test_a_busy_agent_is_asked_again(runs: Runs) -> None:
    """Not admitted is not an attempt."""
    summary = await runs.collect([row(0, does="busy")], attempts=1)

    assert summary.line == "1 ok, 0 failed, 0 missing" and not lines(runs.failures)


async def test_max_failures_stops_early(runs: Runs) -> None:
    """What is done is on disk, the rest is missing, and the reason is told."""
    rows = [row(0), row(1, does="model_refused"), *(row(each) for each in range(2, 20))]

    summary = await runs.collect(rows, max_failures=0, concurrency=1)

    assert summary.line == "1 ok, 1 failed, 18 missing"
    assert summary.stopped is not None and "--max-failures 0" in summary.stopped


async def test_rows_are_parsed_once(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Per rollout: one reading of the answer, one writing of the line; the row's bytes go through."""
    calls: Counter[str] = Counter()
    plan = runs.plan([row(each) for each in range(10)])
    for name in ("loads", "dumps"):
        monkeypatch.setattr(strict_json, name, _counted(getattr(strict_json, name), calls, name))

    await runs.run(plan)

    assert calls["loads"] <= 10 + 10 + 3  # the index, the answers, the record of the run
    assert calls["dumps"] <= 10 + 5


def _counted(function: Callable[..., Any], calls: Counter[str], name: str) -> Callable[..., Any]:
    def counted(*arguments: Any, **named: Any) -> Any:
        calls[name] += 1
        return function(*arguments, **named)

    return counted
