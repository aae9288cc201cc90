"""Scores from a server, and grades that need the whole group."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from resources_server.grading.grade import Grade
from resources_server.grading.judge import JudgeUnavailable
from resources_server.grading.reward_model import Cohorts, RewardModel, tournament
from wire.client import Client
from wire.testing import serving


def scorer(reply: bytes, status: int = 200) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        await receive()
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": reply})

    return app


async def test_a_score_is_a_grade() -> None:
    """As the server gives it, not confined to 0..1."""
    async with serving(reward_model=scorer(b'{"scores": [-1.5]}')) as urls, Client(urls) as client:
        assert (await RewardModel(client).grade([{"role": "user", "content": "q"}], "a")).reward == -1.5


@pytest.mark.parametrize(
    "reply", [b"", b"{}", b'{"scores": []}', b'{"scores": ["1"]}', b'{"scores": [true]}', b'{"scores": [1e999]}']
)
async def test_anything_else_is_no_score(reply: bytes) -> None:
    """Never a zero."""
    async with serving(reward_model=scorer(reply)) as urls, Client(urls) as client:
        with pytest.raises(JudgeUnavailable):
            await RewardModel(client).grade([], "a")


async def test_an_error_or_nobody_is_no_score() -> None:
    """503, and a port where nothing listens."""
    async with (
        serving(reward_model=scorer(b"full", 503)) as urls,
        Client({**urls, "dead": "http://127.0.0.1:9"}) as client,
    ):
        with pytest.raises(JudgeUnavailable, match="503"):
            await RewardModel(client).grade([], "a")
        with pytest.raises(JudgeUnavailable, match="no connection"):
            await RewardModel(client, server="dead", seconds=1).grade([], "a")


async def longest(answers: list[Any]) -> Sequence[float]:
    return [float(answer == max(answers, key=len)) for answer in answers]


async def test_a_cohort_waits_for_its_members() -> None:
    """Whoever comes first waits; all are compared once; asking again gives the same."""
    cohorts = Cohorts(longest)
    first, second = (
        asyncio.create_task(cohorts.grade("g", "a", 3, "x")),
        asyncio.create_task(cohorts.grade("g", "b", 3, "xx")),
    )
    await asyncio.sleep(0)
    assert not first.done()
    assert (await cohorts.grade("g", "c", 3, "xxx")).reward == 1
    assert ((await first).reward, (await second).reward) == (0, 0)
    assert (await cohorts.grade("g", "c", 3, "xxx")).reward == 1


async def test_a_cohort_that_is_not_whole_in_time_fails() -> None:
    """For all that came: a part of the group would give rewards by luck."""
    cohorts = Cohorts(longest, wait_s=0.05)
    with pytest.raises(JudgeUnavailable, match="only 1 of 2"):
        await cohorts.grade("g", "a", 2, "x")
    tasks = [cohorts.grade("g", member, 2, member) for member in ("a", "b")]  # another attempt, whole this time
    assert [grade.reward for grade in await asyncio.gather(*tasks)] == [1, 0]


async def test_a_failed_comparison_fails_all_and_may_be_tried_again() -> None:
    """The judge was away; then it is back."""
    away = [True, False]

    async def compare(answers: list[Any]) -> Sequence[float]:
        if away.pop(0):
            raise JudgeUnavailable("away")
        return [1.0] * len(answers)

    cohorts = Cohorts(compare)
    found = await asyncio.gather(*(cohorts.grade("g", m, 2, m) for m in "ab"), return_exceptions=True)
    assert all(isinstance(each, JudgeUnavailable) for each in found)
    assert [g.reward for g in await asyncio.gather(*(cohorts.grade("g", m, 2, m) for m in "ab"))] == [1, 1]


async def test_one_member_giving_up_does_not_spoil_the_others() -> None:
    """Its task is cancelled while it waits; its answer stays."""
    cohorts = Cohorts(longest)
    first = asyncio.create_task(cohorts.grade("g", "a", 2, "x"))
    await asyncio.sleep(0)
    first.cancel()
    assert (await cohorts.grade("g", "b", 2, "xx")).reward == 1


async def test_strangers_are_refused() -> None:
    """Another size, or one member too many: a mistake of the caller's."""
    cohorts = Cohorts(longest)
    assert (await cohorts.grade("g", "a", 1, "x")).reward == 1
    with pytest.raises(ValueError, match="already has"):
        await cohorts.grade("g", "b", 1, "x")
    with pytest.raises(ValueError, match="members, not"):
        await cohorts.grade("g", "a", 2, "x")


@pytest.mark.parametrize("most_pairs", [64, 5])
async def test_a_tournament_ranks_by_comparisons(most_pairs: int) -> None:
    """All pairs, or a ring of them: all are compared equally often."""

    async def better(one: str, other: str) -> Grade:
        return Grade(float(len(one) > len(other)), "")

    shares = await tournament(["x", "xx", "xxx", "xxxx", "xxxxx"], better, most_pairs=most_pairs)
    assert shares[0] == 0
    assert shares[4] == 1
    assert await tournament(["x"], better) == [0.5]
