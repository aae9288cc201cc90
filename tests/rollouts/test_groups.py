"""The repeats of a task as a group: who counts, under each policy, and what is kept when members fail."""

from typing import Any

import pytest

from rollouts.groups import record
from rollouts.keys import OVER_LONG, PERMANENT, Keys
from rollouts.settings import GroupSettings
from tests.rollouts.runs import Runs, keys, lines, row, write
from tests.rollouts.scripted_agent import ScriptedAgent


def group(rewards: list[float | None], **settings: Any) -> dict[str, Any]:
    """The record of a group with these rewards; None is a member that failed."""
    table = Keys(1, len(rewards), rewards=True, versions=True)
    versions = settings.pop("versions", [None] * len(rewards))
    long = settings.pop("long", ())
    for sample, reward in enumerate(rewards):
        if reward is None:
            table.fail(0, sample, "model_error", PERMANENT)
        else:
            table.succeed(0, sample, reward, OVER_LONG if sample in long else 0, versions[sample])
    return record(table, 0, len(rewards), 0, GroupSettings.model_validate(settings))


def test_a_failed_member_is_in_no_mean() -> None:
    """Case F05, G1: the mean is 1/3 over three, not 1/4 over four."""
    found = group([1, 0, None, 0], policy="partial")
    assert found["mean_reward"] == pytest.approx(1 / 3) and found["counted"] == [0, 1, 3]
    assert (found["n_valid"], found["n_failed"], found["status"]) == (3, 1, "counted")


def test_strict_is_all_or_none() -> None:
    """One member short: nobody counts."""
    assert group([1, 0, None, 0])["counted"] == [] and group([1, 0, None, 0])["reasons"] == ["too_few_valid"]
    assert group([1, 0, 1, 0])["counted"] == [0, 1, 2, 3]


def test_partial_needs_its_fewest() -> None:
    """Case F05, G3 and G4: none or one valid is no group, unless one is enough."""
    assert group([None] * 4, policy="partial")["status"] == "dropped"
    assert group([1, None, None, None], policy="partial")["status"] == "dropped"
    assert group([None] * 4, policy="partial")["mean_reward"] is None


@pytest.mark.parametrize(("choice", "status"), [("keep", "counted"), ("mark", "counted"), ("drop", "dropped")])
def test_equal_rewards_are_dropped_or_marked_by_choice(choice: str, status: str) -> None:
    """Case F05, G2: no variance, said so in any case."""
    found = group([1, 1, 1, 1], equal_reward=choice)
    assert found["zero_variance"] and found["status"] == status
    assert found["reasons"] == ([] if choice == "keep" else ["equal_reward"])


def test_over_long_members_are_dropped_or_marked() -> None:
    """A member that was cut off does not count, or is named."""
    assert group([1, 0, 1], long=[1], over_long="drop")["counted"] == [0, 2]
    marked = group([1, 0, 1], long=[1], over_long="mark")
    assert marked["counted"] == [0, 1, 2] and marked["over_long"] == [1]
    assert group([1, 0], long=[0, 1], over_long="drop")["status"] == "dropped"


def test_stale_groups_are_dropped_or_marked() -> None:
    """Members of policy versions too far apart."""
    assert group([1, 0], versions=[3, 7], stale="drop", max_policy_lag=2)["status"] == "dropped"
    assert group([1, 0], versions=[3, 7], stale="mark", max_policy_lag=2)["reasons"] == ["stale"]
    assert group([1, 0], versions=[3, 5], stale="drop", max_policy_lag=2)["status"] == "counted"


async def test_a_record_per_group_as_it_closes(runs: Runs) -> None:
    """Once per task, with the environment and the members; written again when a run is resumed, never twice."""
    rows = [row(0, pays=0.5), row(1, does=["model_refused", "ok"])]
    await runs.collect(rows, repeats=2, groups={"policy": "partial", "min_valid": 1}, concurrency=1)
    await runs.collect(repeats=2, groups={"policy": "partial", "min_valid": 1})

    first, second = lines(runs.groups)
    assert (first["task_index"], first["counted"], first["mean_reward"]) == (0, [0, 1], 0.5)
    assert (second["task_index"], second["counted"], second["environment"]) == (1, [1], "scripted")


async def test_more_repeats_make_the_groups_anew(runs: Runs) -> None:
    """A record is of the whole group, earlier runs' members included."""
    await runs.collect([row(0)], repeats=2)
    await runs.collect(repeats=4)
    (only,) = lines(runs.groups)
    assert only["group_size"] == only["n_valid"] == 4


async def test_refill_samples_again_for_a_failed_member(runs: Runs, agent: ScriptedAgent) -> None:
    """Another sample stands in; the run is complete, the failed one is counted apart."""
    rows = [row(0, does=["model_refused", "ok"]), row(1)]
    summary = await runs.collect(rows, repeats=2, groups={"policy": "refill", "extra": 2}, concurrency=1)

    assert keys(runs.output) == [(0, 1), (0, 2), (1, 0), (1, 1)] and len(agent.asked) == 5
    assert summary.line == "4 ok, 0 failed, 0 missing" and summary.counts.extra == 1 and summary.exit_code == 0
    assert lines(runs.groups)[0]["counted"] == [1, 2] or lines(runs.groups)[1]["counted"] == [1, 2]


async def test_refill_ends(runs: Runs, agent: ScriptedAgent) -> None:
    """A task that always fails costs its members and the replacements, no more; a resume asks for none again."""
    settings: dict[str, Any] = {"repeats": 2, "groups": {"policy": "refill", "extra": 3}}
    summary = await runs.collect([row(0, does="model_refused")], **settings)
    assert len(agent.asked) == 5 and summary.line == "0 ok, 2 failed, 0 missing"

    assert (await runs.collect(**settings)).counts.failed == 2 and len(agent.asked) == 5


async def test_hedge_takes_the_first_that_end(runs: Runs, agent: ScriptedAgent) -> None:
    """Two asked for, one more started: the one that hangs is given up, its session closed, and it is no line."""
    rows = [row(0, does=["hang", "ok"])]
    summary = await runs.collect(rows, repeats=2, groups={"policy": "hedge", "extra": 1}, concurrency=3)

    assert len(agent.asked) == 3 and len(lines(runs.output)) == 2 and not lines(runs.failures)
    assert summary.line == "2 ok, 0 failed, 0 missing" and summary.cancelled == 1 and summary.exit_code == 0
    assert len(agent.closed) == 1 and lines(runs.groups)[0]["n_valid"] == 2


async def test_groups_finish_early_in_task_order(runs: Runs, agent: ScriptedAgent) -> None:
    """All repeats of a task one after the other; or every task once before any twice."""
    await runs.collect([row(each) for each in range(3)], repeats=2, concurrency=1)
    assert [each["number"] for each in agent.asked] == [0, 0, 1, 1, 2, 2]
    agent.asked.clear()

    await runs.collect(repeats=2, concurrency=1, order="repeat", fresh=True, longest_first=False)
    assert [each["number"] for each in agent.asked] == [0, 1, 2, 0, 1, 2]


async def test_the_longest_tasks_start_first(runs: Runs, agent: ScriptedAgent) -> None:
    """By what the lines of earlier repeats say."""
    await runs.collect([row(each) for each in range(3)])
    timed = lines(runs.output)
    for each in timed:
        each["provenance"]["duration_s"] = {0: 1.0, 1: 9.0, 2: 4.0}[each["task_index"]]
    runs.rewrite(timed)
    agent.asked.clear()

    await runs.collect(repeats=2, concurrency=1)
    assert [each["number"] for each in agent.asked] == [1, 2, 0]


async def test_a_new_run_learns_from_another_which_tasks_are_long(runs: Runs, agent: ScriptedAgent) -> None:
    """From the output that `--fresh` clears, or from the file that `rollouts.earlier` names; a row that changed is not known."""
    await runs.collect([row(each) for each in range(4)])
    timed = lines(runs.output)
    for each in timed:
        each["provenance"]["duration_s"] = {0: 1.0, 1: 9.0, 2: 4.0, 3: 99.0}[each["task_index"]]
    runs.rewrite(timed)
    agent.asked.clear()
    await runs.collect([row(0), row(1), row(2), row(3, other=1)], concurrency=1, fresh=True)
    assert [each["number"] for each in agent.asked] == [1, 3, 2, 0]

    agent.asked.clear()
    first = runs.output.rename(runs.output.with_name("first.jsonl"))
    for ending in ("_run.json", "_run.rows"):
        runs.output.with_name(f"out{ending}").rename(runs.output.with_name(f"first{ending}"))
    runs.rewrite([])
    write(first, [{**each, "provenance": {"duration_s": 1.0 + each["task_index"]}} for each in lines(first)])
    await runs.collect(concurrency=1, earlier=str(first))
    assert [each["number"] for each in agent.asked] == [3, 2, 1, 0]
