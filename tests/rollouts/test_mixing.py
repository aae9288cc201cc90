"""One run over several environments: mixed by weight, told apart by name, counted apart."""

from collections import Counter

from rollouts.plan import Source
from tests.rollouts.runs import Runs, keys, lines, row, write
from tests.rollouts.scripted_agent import ScriptedAgent


def sources(runs: Runs, first: int, second: int, weights: tuple[float, float] = (1, 1)) -> list[Source]:
    """Two environments with so many rows each."""
    folder = runs.dataset.parent
    return [
        Source(
            name,
            write(folder / f"{name}.jsonl", [row(each, of=name) for each in range(count)]),
            weight=weight,
            names_itself=True,
            repeats=2 if name == "b" else None,
        )
        for name, count, weight in (("a", first, weights[0]), ("b", second, weights[1]))
    ]


async def test_environments_are_mixed_by_weight(runs: Runs, agent: ScriptedAgent) -> None:
    """`--mix a=3,b=1`: three of four that start are of `a`, while both have something left."""
    await runs.collect(sources=sources(runs, 12, 6, (3, 1)), concurrency=1)

    begun = Counter(each["of"] for each in agent.asked[:8])
    assert begun == {"a": 6, "b": 2} and Counter(each["of"] for each in agent.asked) == {"a": 12, "b": 12}


async def test_environments_are_told_apart(runs: Runs, agent: ScriptedAgent) -> None:
    """Rows carry the name to the agent server and lines keep it; repeats and counts are each environment's own."""
    summary = await runs.collect(sources=sources(runs, 3, 2))

    assert all(each["environment"] == each["of"] for each in agent.asked)
    assert all(each["environment"] == each["of"] for each in lines(runs.output))
    assert [(each.name, each.counts.ok) for each in summary.environments] == [("a", 3), ("b", 4)]
    assert summary.line == "7 ok, 0 failed, 0 missing" and summary.tasks == 5
    assert keys(runs.output) == [(0, 0), (1, 0), (1, 1), (2, 0), (3, 0), (3, 1), (4, 0)]
    assert {each["group_size"] for each in lines(runs.output) if each["of"] == "b"} == {2}


async def test_a_longer_data_set_renumbers_no_other(runs: Runs, agent: ScriptedAgent) -> None:
    """Rows added to one environment are new tasks; the others' lines still stand for the same rows."""
    await runs.collect(sources=sources(runs, 2, 2))
    agent.asked.clear()
    summary = await runs.collect(sources=sources(runs, 5, 2))

    assert Counter(each["of"] for each in agent.asked) == {"a": 3} and summary.counts.ok == 9


async def test_rows_of_one_data_set_go_where_they_say(runs: Runs, agent: ScriptedAgent) -> None:
    """`environment` or `agent_ref.name` in the row routes it, and its environment's repeats are made."""
    dataset = write(runs.dataset, [row(0), row(1, environment="b"), row(2, agent_ref={"name": "b"})])
    both = [Source("a", dataset, names_itself=True), Source("b", None, names_itself=True, repeats=2)]
    summary = await runs.collect(sources=both)

    assert Counter((each["number"], each["environment"]) for each in agent.asked) == {
        (0, "a"): 1,
        (1, "b"): 2,
        (2, "b"): 2,
    }
    assert [(each.name, each.counts.ok) for each in summary.environments] == [("a", 1), ("b", 4)]
