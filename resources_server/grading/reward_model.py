"""Rewards from a scoring model over HTTP, and verdicts that need the whole group.

The scoring server takes `{"input": [messages], "candidates": [text, …]}` and answers `{"scores": [number, …]}` in the
same order. A server that cannot be reached or answers otherwise raises `JudgeUnavailable`, never a zero.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from resources_server.grading.grade import Grade
from resources_server.grading.judge import JudgeUnavailable
from wire import strict_json
from wire.client import CallError, Client, Retry
from wire.deadline import Deadline

MOST_COHORTS = 10_000  # remembered at once; the oldest finished ones go first


@dataclass(frozen=True)
class RewardModel:
    """A scoring server reached by its name in `client`. `parameters` go into each request."""

    client: Client
    server: str = "reward_model"
    path: str = "/score"
    seconds: float = 60.0
    parameters: Mapping[str, Any] = field(default_factory=dict)

    async def grade(self, messages: Sequence[Mapping[str, Any]], answer: str) -> Grade:
        """The score of one answer."""
        return Grade((await self.scores(messages, [answer]))[0], f"scored by {self.server}")

    async def scores(self, messages: Sequence[Mapping[str, Any]], answers: Sequence[str]) -> list[float]:
        """A finite score for each answer. Raises `JudgeUnavailable`."""
        body = {**self.parameters, "input": [dict(each) for each in messages], "candidates": list(answers)}
        try:
            reply = await self.client.post(
                self.server,
                self.path,
                strict_json.dumps(body),
                deadline=Deadline(self.seconds),
                retry=Retry.REPLAY,
            )
        except CallError as error:
            raise JudgeUnavailable(str(error)) from error
        if not reply.ok:
            raise JudgeUnavailable(reply.quote())
        return _scores(reply.body, len(answers), self.server)


def _scores(body: bytes, count: int, server: str) -> list[float]:
    try:
        answer = strict_json.loads(body)
    except strict_json.JSONError as error:
        raise JudgeUnavailable(f"{server} answered no JSON: {error}") from error
    scores = answer.get("scores") if isinstance(answer, dict) else None
    if not isinstance(scores, list) or len(scores) != count or not all(map(_is_score, scores)):
        raise JudgeUnavailable(f"{server} answered no 'scores' with {count} finite numbers: {body[:200]!r}")
    return [float(score) for score in scores]


def _is_score(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


Compare = Callable[[list[Any]], Awaitable[Sequence[float]]]  # every member's answer to every member's reward


class Cohorts:
    """Grades members of a group against each other: the first ones wait for the last.

    A cohort that is not whole after `wait_s` fails for all who wait (`JudgeUnavailable`): a comparison with whoever
    happened to come would give rewards that depend on luck. A member that asks again gets the same grade.
    """

    def __init__(self, compare: Compare, *, wait_s: float = 300.0) -> None:
        self._compare, self._wait_s = compare, wait_s
        self._cohorts: dict[str, _Cohort] = {}

    async def grade(self, cohort: str, member: str, size: int, answer: Any) -> Grade:
        """The reward of `member` (a rollout's own id) among the `size` members of `cohort` (a group's own id)."""
        if size < 1:
            raise ValueError(f"a cohort of {size} members")
        group = self._cohorts.get(cohort)
        if group is None:
            group = self._cohorts[cohort] = _Cohort(size)
            self._forget()
        if group.size != size:
            raise ValueError(f"cohort {cohort!r} has {group.size} members, not {size}")
        group.join(member, answer, cohort)
        if group.whole and group.task is None:
            group.task = asyncio.create_task(self._compared(group))
            group.ready.set()
        try:
            async with asyncio.timeout(self._wait_s):
                await group.ready.wait()
                assert group.task is not None
                rewards = await asyncio.shield(group.task)
        except TimeoutError:
            self._cohorts.pop(cohort, None)
            came = len(group.answers)
            raise JudgeUnavailable(
                f"only {came} of {size} members of the group came within {self._wait_s:g} s"
            ) from None
        except BaseException:
            if group.task is not None and group.task.done():
                self._cohorts.pop(cohort, None)  # failed: asked again, it is compared again
            raise
        return Grade(rewards[member], f"compared among {size}")

    async def _compared(self, group: _Cohort) -> dict[str, float]:
        members = sorted(group.answers)
        rewards = list(await self._compare([group.answers[member] for member in members]))
        if len(rewards) != len(members) or not all(map(_is_score, rewards)):
            raise JudgeUnavailable(f"the comparison gave {rewards!r} for {len(members)} members")
        return dict(zip(members, map(float, rewards), strict=True))

    def _forget(self) -> None:
        finished = [name for name, group in self._cohorts.items() if group.task is not None and group.task.done()]
        for name in finished[: max(0, len(self._cohorts) - MOST_COHORTS)]:
            del self._cohorts[name]


class _Cohort:
    def __init__(self, size: int) -> None:
        self.size = size
        self.answers: dict[str, Any] = {}
        self.ready = asyncio.Event()
        self.task: asyncio.Task[dict[str, float]] | None = None

    @property
    def whole(self) -> bool:
        return len(self.answers) == self.size

    def join(self, member: str, answer: Any, cohort: str) -> None:
        if member not in self.answers and self.whole:
            raise ValueError(f"cohort {cohort!r} already has its {self.size} members")
        self.answers.setdefault(member, answer)


async def tournament(
    answers: Sequence[str], better: Callable[[str, str], Awaitable[Grade]], *, most_pairs: int = 64
) -> list[float]:
    """Each answer's share of points from comparisons with the others: every pair, or, past `most_pairs`, each with the
    next few in a ring, so that all are compared equally often."""
    count = len(answers)
    if count < 2:
        return [0.5] * count
    reach = count - 1
    while reach > 1 and count * reach // 2 > most_pairs:
        reach -= 1
    pairs = {tuple(sorted((place, (place + step) % count))) for place in range(count) for step in range(1, reach + 1)}
    points, games = [0.0] * count, [0] * count
    for one, other in sorted(pairs):
        score = (await better(answers[one], answers[other])).reward
        points[one] += score
        points[other] += 1.0 - score
        games[one] += 1
        games[other] += 1
    return [point / game for point, game in zip(points, games, strict=True)]
