"""A run that ends early: what is done is on disk, what is in flight appears nowhere, and the same command goes on."""

import asyncio
import time

import pytest

from tests.rollouts.runs import Runs, keys, lines, row
from tests.rollouts.scripted_agent import ScriptedAgent
from wire.errors import UsageError
from wire.testing import free_port, one_server


async def test_an_interruption_drops_what_is_in_flight(runs: Runs, agent: ScriptedAgent) -> None:
    """Case D08: finished rows are whole, the four in flight are no lines, their sessions are closed; a resume completes."""
    rows = [row(each, does="ok" if each < 6 else "slow") for each in range(20)]
    plan = runs.plan(rows, concurrency=4)
    run = asyncio.create_task(runs.run(plan))
    await agent.until_asked(10)
    plan.stop.request()
    summary = await run

    assert summary.interrupted and summary.line == "6 ok, 0 failed, 14 missing" and summary.cancelled == 4
    assert keys(runs.output) == [(each, 0) for each in range(6)] and not lines(runs.failures)
    assert sorted(agent.closed) == sorted(agent.sessions[6:])

    agent.release.set()
    assert (await runs.collect(concurrency=4)).counts.ok == 20
    assert keys(runs.output) == [(each, 0) for each in range(20)]


async def test_a_second_request_does_not_wait(runs: Runs, agent: ScriptedAgent) -> None:
    """Sessions that do not close in a moment are left to expire."""
    agent.closes = False
    plan = runs.plan([row(0, does="slow")])
    run = asyncio.create_task(runs.run(plan))
    await agent.until_asked(1)
    plan.stop.request()
    await agent.until_closing(1)
    plan.stop.request()
    began = time.monotonic()
    assert (await run).line == "0 ok, 0 failed, 1 missing" and time.monotonic() - began < 1


async def test_nothing_starts_that_cannot_end_in_time(runs: Runs, agent: ScriptedAgent) -> None:
    """`--stop-by`: tasks that took long before are left out, short ones still run; the rest is missing, and is run later."""
    rows = [row(each) for each in range(4)]
    await runs.collect(rows)
    long = lines(runs.output)
    for each in long:
        each["provenance"]["duration_s"] = 500.0 if each["task_index"] % 2 else 0.01
    runs.rewrite(long)
    agent.asked.clear()

    summary = await runs.collect(repeats=2, stop_by=time.time() + 100)
    assert [each["number"] for each in agent.asked] == [0, 2]
    assert summary.line == "6 ok, 0 failed, 2 missing" and summary.exit_code == 1
    assert summary.stopped is not None and "--stop-by" in summary.stopped

    assert (await runs.collect(repeats=2)).counts.ok == 8


async def test_what_is_in_flight_is_dropped_at_the_time(runs: Runs, agent: ScriptedAgent) -> None:
    """The job scheduler would kill it: it is cancelled, and appears nowhere."""
    summary = await runs.collect([row(0), row(1, does="hang")], stop_by=time.time() + 0.3)

    assert summary.line == "1 ok, 0 failed, 1 missing" and not summary.interrupted
    assert not lines(runs.failures) and agent.closed == [agent.sessions[1]]


async def test_an_agent_that_is_down_ends_in_seconds(runs: Runs) -> None:
    """Fifty rows, nobody there: each fails as `agent_lost`, together, and the first message names the URL."""
    runs.url = f"http://127.0.0.1:{free_port()}"
    began = time.monotonic()
    summary = await runs.collect([row(each) for each in range(50)], agent_wait_s=0.5)

    assert summary.line == "0 ok, 50 failed, 0 missing" and time.monotonic() - began < 5
    assert runs.url in runs.heard.notes[0]
    assert {each["failure_kind"] for each in lines(runs.failures)} == {"agent_lost"} and len(lines(runs.failures)) == 50


async def test_an_agent_that_comes_back_costs_no_attempt(runs: Runs, agent: ScriptedAgent) -> None:
    """It is not there when the run starts; what was refused was not tried."""
    port = free_port()
    runs.url = f"http://127.0.0.1:{port}"
    run = asyncio.create_task(runs.collect([row(each) for each in range(5)], attempts=1, agent_wait_s=10))
    await runs.heard.told.wait()
    async with one_server(agent, port=port):
        summary = await run
    assert summary.line == "5 ok, 0 failed, 0 missing" and not lines(runs.failures)


async def test_an_agent_that_dies_is_waited_for(runs: Runs, agent: ScriptedAgent) -> None:
    """What was in flight is lost and tried again in new sessions; what had not started waits."""
    port = free_port()
    runs.url = f"http://127.0.0.1:{port}"
    async with one_server(agent, port=port):
        run = asyncio.create_task(
            runs.collect([row(each, does=["cut", "ok"] if each < 2 else "ok") for each in range(5)], concurrency=2)
        )
        summary = await run
    assert summary.line == "5 ok, 0 failed, 0 missing"
    assert {each["failure_kind"] for each in lines(runs.failures)} == {"agent_lost"}


async def test_everything_failing_stops_the_run(runs: Runs, agent: ScriptedAgent) -> None:
    """Above `max_failure_share` of the last 200 attempts it stops and says why, instead of failing a million rows."""
    summary = await runs.collect([row(each, does="model_unreachable") for each in range(500)], concurrency=8)

    assert summary.stopped is not None and "max_failure_share" in summary.stopped
    assert len(agent.asked) < 220 and summary.counts.missing > 0 and summary.counts.total == 500


async def test_too_much_to_filter_is_masked(runs: Runs, agent: ScriptedAgent) -> None:
    """Past `max_filtered_share` a passing failure stays as it is: the run gets through, and a later one tries again."""
    rows = [row(each, does=["model_error", "ok"]) for each in range(50)]
    summary = await runs.collect(rows, max_filtered_share=0.1)

    assert summary.retried == 20 and summary.line == "20 ok, 30 failed, 0 missing"
    assert all(each["mask_sample"] for each in lines(runs.failures))
    assert (await runs.collect()).counts.ok == 50


async def test_a_stop_before_the_first_call(runs: Runs, agent: ScriptedAgent) -> None:
    """Asked to stop before anything was sent: nothing is sent, and the run ends."""
    plan = runs.plan([row(0), row(1)])
    plan.stop.request()
    assert (await runs.run(plan)).line == "0 ok, 0 failed, 2 missing"
    assert not agent.asked


async def test_a_cancelled_collection_leaves_no_task(runs: Runs, agent: ScriptedAgent) -> None:
    """Cancelled from outside, as by a time-out around it: what was in flight is closed and nothing else is started."""
    before = asyncio.all_tasks()
    run = asyncio.create_task(runs.collect([row(each, does="slow") for each in range(9)], concurrency=3))
    await agent.until_asked(3)
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)

    assert run.cancelled() and len(agent.asked) == 3 and len(agent.closed) == 3
    assert not [each for each in asyncio.all_tasks() - before if "_Collector" in repr(each)]


async def test_one_slow_row_delays_nothing_but_itself(runs: Runs, agent: ScriptedAgent) -> None:
    """Fifty rows, four slots: the other forty-nine are on disk while the slow one still runs."""
    plan = runs.plan([row(each, does="slow" if each == 3 else "ok") for each in range(50)], concurrency=4)
    run = asyncio.create_task(runs.run(plan))
    await agent.until_asked(50)
    await runs.heard.until_done(49)
    assert len(lines(runs.output)) == 49
    agent.release.set()
    assert (await run).counts.ok == 50


async def test_a_data_set_that_is_overwritten_stops_the_run(runs: Runs, agent: ScriptedAgent) -> None:
    """A row that is not the one that was checked is not played."""
    plan = runs.plan([row(0, does="slow"), row(1)], concurrency=1)
    run = asyncio.create_task(runs.run(plan))
    await agent.until_asked(1)
    runs.dataset.write_bytes(runs.dataset.read_bytes().replace(b"task 1", b"TASK 1"))
    agent.release.set()
    with pytest.raises(UsageError, match=r"rows\.jsonl:2: the row was changed"):
        await run
    assert keys(runs.output) == [(0, 0)]


async def test_a_row_that_kills_the_agent_takes_no_other_along(runs: Runs, agent: ScriptedAgent) -> None:
    """Lost twice, rollouts are kept apart: what is left of the attempts is enough for all but the one that kills."""
    rows = [row(each, does="poison" if each == 3 else "pause") for each in range(8)]
    summary = await runs.collect(rows, concurrency=8)

    assert summary.line == "7 ok, 1 failed, 0 missing" and summary.kinds == {"agent_lost": 1}
    assert (3, 0) not in keys(runs.output)
