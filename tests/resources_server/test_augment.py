"""Tasks made harder on purpose stay solvable, and their lines say what befell them."""

from typing import Any

import pytest

from resources_server.augment import BUSY, augmented
from resources_server.environments.counter import Counter
from resources_server.environments.warehouse import Warehouse
from resources_server.settings import AugmentSettings
from tests.resources_server.conftest import Serve
from wire.errors import UsageError

ROW = {"responses_create_params": {"input": "x"}, "stock": {"bolt": 2, "nut": 9}, "order": {"bolt": 2}}
DONE: dict[str, Any] = {"response": {"output": []}}


async def test_a_renamed_tool_is_called_by_its_new_name_only(serve: Serve) -> None:
    """Its description and arguments are the same, the verdict counts it as itself."""
    async with serve(Warehouse, augment=AugmentSettings(renamed=1), solutions=True) as world:
        seeded = (await world.post("/seed_session", ROW)).json
        names = [tool["name"] for tool in seeded["tools"]]
        assert len(names) == 2 and not {"reserve", "list_stock"} & set(names)
        assert (await world.post("/reserve", {"product": "bolt", "units": 2})).status == 422
        (call,) = (await world.post("/solution")).json["calls"]
        assert call["name"] in names
        assert (await world.post(f"/{call['name']}", call["arguments"])).status == 200
        line = (await world.post("/verify", {**ROW, **DONE})).json
        assert line["reward"] == 1.0
        assert line["augmentation"]["renamed"]["reserve"] == call["name"]


async def test_all_repeats_of_a_task_meet_the_same(serve: Serve) -> None:
    """And another seed deals otherwise, to some task at least."""
    row = {"responses_create_params": {"input": "x"}, "initial_count": 1, "expected_count": 2}
    told = []
    for seed in (0, 0, 1, 2, 3):
        world = augmented(Counter.bound(), AugmentSettings(seed=seed, renamed=0.5, wording=0.5)).of_row(row)
        told.append(world.augmentation())  # type: ignore[attr-defined]
    assert told[0] == told[1] and len({str(each) for each in told}) > 1


async def test_a_failing_tool_does_what_it_is_asked_at_the_second_try(serve: Serve) -> None:
    """The refusal says so, and the solution has the repeat in it."""
    async with serve(Warehouse, augment=AugmentSettings(failing=1), solutions=True) as world:
        await world.post("/seed_session", ROW)
        calls = (await world.post("/solution")).json["calls"]
        answers = [await world.post(f"/{call['name']}", call["arguments"]) for call in calls]
        assert [answer.status for answer in answers] == [422, 200]
        assert answers[0].json == {"error": [BUSY]}
        line = (await world.post("/verify", {**ROW, **DONE})).json
        assert line["reward"] == 1.0 and set(line["augmentation"]["failing"]) == {"reserve", "list_stock"}


async def test_only_tools_that_the_solution_does_without_are_missing(serve: Serve) -> None:
    """So the task stays solvable."""
    async with serve(Warehouse, augment=AugmentSettings(missing=1)) as world:
        seeded = (await world.post("/seed_session", ROW)).json
        assert [tool["name"] for tool in seeded["tools"]] == ["reserve"]
        assert (await world.post("/list_stock", {})).status == 422


async def test_wording_changes_and_slowness_waits(serve: Serve) -> None:
    """Neither changes what a call does."""
    async with serve(Warehouse, augment=AugmentSettings(wording=1, slow=1, slow_s=0)) as world:
        seeded = (await world.post("/seed_session", ROW)).json
        described = [tool["description"] for tool in seeded["tools"]]
        assert all(text not in described for text in (tool.description for tool in Warehouse.tools.values()))
        assert (await world.post("/reserve", {"product": "bolt", "units": 2})).json["units"] == 2
        line = (await world.post("/verify", {**ROW, **DONE})).json
        assert line["reward"] == 1.0 and set(line["augmentation"]) == {"wording", "slow"}


async def test_the_first_state_is_disturbed_where_the_class_has_a_way(serve: Serve) -> None:
    """The hook's own words are in the line."""
    async with serve(Warehouse, augment=AugmentSettings(disturbed=1)) as world:
        await world.post("/seed_session", ROW)
        assert (await world.post("/list_stock", {})).json == {"bolt": 2}
        line = (await world.post("/verify", {**ROW, **DONE})).json
        assert line["augmentation"] == {"disturbed": "no nut on the shelf"}


async def test_without_augment_a_line_says_nothing_of_it(serve: Serve) -> None:
    """Off by default."""
    async with serve(Warehouse) as world:
        await world.post("/seed_session", ROW)
        assert "augmentation" not in (await world.post("/verify", {**ROW, **DONE})).json


async def test_failing_needs_sessions_in_memory(serve: Serve) -> None:
    """Its counts are no state."""
    with pytest.raises(UsageError, match=r"needs sessions\.url=memory"):
        async with serve(Warehouse, augment=AugmentSettings(failing=1), sessions={"url": "sqlite:///x.db"}):
            pass
