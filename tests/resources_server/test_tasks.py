"""Rows that come with an environment, and figures over what came of them."""

from typing import Any

import aiohttp
import pytest

from resources_server.app import build
from resources_server.environments.counter import Counter
from tests.resources_server.conftest import Serve
from wire.config import Config
from wire.errors import UsageError
from wire.testing import one_server


async def test_a_page_of_rows() -> None:
    """Of the config's data set; a page beyond the end is empty, a wrong number is named."""
    config = Config("counter.yaml", {"resources_server": {"environment": "counter"}})
    app = build(config, {}, "t", "resources_server")
    async with one_server(app) as url, aiohttp.ClientSession(headers={"Authorization": "Bearer t"}) as http:

        async def page(query: str) -> Any:
            async with http.get(f"{url}/tasks{query}") as reply:
                return await reply.json()

        first = await page("?limit=3")
        assert first["total"] == 20 and len(first["rows"]) == 3 and first["rows"][0]["task_id"] == "counter-00"
        assert [row["task_id"] for row in (await page("?offset=18&limit=5"))["rows"]] == ["counter-18", "counter-19"]
        assert (await page("?offset=100"))["rows"] == []
        assert "limit='x'" in str(await page("?limit=x"))


async def test_tasks_are_not_for_everyone(serve: Serve) -> None:
    """They hold the ground truth: the stack's token is asked for; without a data set there are none."""
    async with serve(Counter, token="t") as world:
        assert (await world.get("/tasks")).status == 401
    async with serve(Counter) as world:
        assert (await world.get("/tasks")).json == {"total": 0, "offset": 0, "rows": []}


async def test_figures_over_verify_replies(serve: Serve) -> None:
    """Failed rollouts are counted and are in no mean."""
    lines: list[dict[str, Any]] = [{"task_index": 0, "reward": reward, "metrics": {}} for reward in (1.0, 0.0, None)]
    async with serve(Counter) as world:
        figures = (await world.post("/aggregate_metrics", {"verify_responses": lines})).json
        assert figures["agent_metrics"]["mean/reward"] == 0.5
        assert (figures["agent_metrics"]["n"], figures["agent_metrics"]["n_valid"]) == (3, 2)


def test_a_config_without_an_environment_says_so() -> None:
    """Naming the key."""
    with pytest.raises(UsageError, match=r"resources_server\.environment is missing"):
        build(Config("x.yaml", {}), {}, None, "resources_server")
