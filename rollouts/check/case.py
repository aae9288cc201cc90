"""One row under examination: its solution, what doing nothing is worth, and every reward that was seen on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from rollouts.check.world import ACT, Attempt, Played, World, prompt_of, solution

SAME = 1e-9  # two rewards this close are one


@dataclass
class Case:
    """A row and what is known about it.

    Attributes:
        place: The row's name in messages.
        others: Other rows of the data set.
        gold: The reference solution.
        full: Its reward.
        nothing: The reward for doing nothing.
        gold_played: The episode of the solution.
        idle_state: The world's state after doing nothing.
        rewards: Everything else that was tried -> its reward.
        failures: What ended without a verdict, and how.
        tools: Argument schemas of what the model may call, a game's `act` among them.
        reads: Names of those that change nothing.
    """

    world: World
    row: dict[str, Any]
    place: str
    others: Sequence[Mapping[str, Any]]
    gold: Attempt
    full: float
    nothing: float
    gold_played: Played
    idle_state: Any
    tools: dict[str, dict[str, Any]]
    reads: frozenset[str]
    rewards: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def game(self) -> str | None:
        """The name under which a game's moves are made; None where it is none."""
        return ACT if ACT in self.tools else None

    @property
    def prompt(self) -> str:
        """What the row shows the model."""
        return prompt_of(self.row)

    @property
    def idle(self) -> bool:
        """Whether doing nothing is the solution."""
        return not self.gold.moves and self.gold.text in ("", "done")

    def dice(self, use: str) -> Random:
        """Always the same for a row and a use."""
        return Random(f"{self.place} {use}")

    async def play(self, attempt: Attempt, label: str) -> Played:
        """An episode, kept in mind."""
        played = await self.world.play(self.row, attempt)
        if played.reward is None:
            self.failures[label] = str(played.failure)
        else:
            self.rewards[label] = max(played.reward, self.rewards.get(label, played.reward))
        return played

    def worth(self, reward: float | None) -> float:
        """A reward as a share of the way from doing nothing to the solution, 0 to 1."""
        if reward is None or self.full - self.nothing <= SAME:
            return 0.0
        return min(1.0, max(0.0, (reward - self.nothing) / (self.full - self.nothing)))


async def opened(world: World, row: dict[str, Any], place: str, others: Sequence[Mapping[str, Any]]) -> Case | str:
    """The row's case, or what stands in the way of one.

    Raises:
        NotHereError: the row needs what this machine has not.
    """
    try:
        session = await world.open(row)
        try:
            gold = await solution(session, world)
        finally:
            await session.close()
    except ValueError as error:
        return f"{place}: {error}"
    if gold is None:
        return "the environment has no solution(): nothing shows that its tasks can be solved"
    nothing, first = await world.play(row, Attempt(text="")), await world.play(row, gold)  # nothing was solved before
    for what, played in (("the solution", first), ("doing nothing", nothing)):
        if played.reward is None:
            return f"{place}: {what} ended without a verdict: {played.failure}"
    assert first.reward is not None and nothing.reward is not None
    return Case(
        world=world,
        row=row,
        place=place,
        others=others,
        gold=gold,
        full=first.reward,
        nothing=nothing.reward,
        gold_played=first,
        idle_state=nothing.line.get("state"),
        tools=session.tools,
        reads=session.reads,
    )
