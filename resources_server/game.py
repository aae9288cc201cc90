"""Worlds that are played move by move: an observation, an action, a reward for each step."""

import inspect
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

from resources_server.environment import Environment, Task
from resources_server.tools import Tool, ToolError, tool_like
from wire.responses import Response
from wire.rollout import Verdict

TaskT = TypeVar("TaskT", bound=Task)


@dataclass(frozen=True)
class Step:
    """What an action led to."""

    observation: Any  # text or JSON, for the player
    reward: float = 0.0
    done: bool = False  # the game has come to its end
    truncated: bool = False  # it was cut off before that, by a limit on moves
    info: dict[str, Any] = field(default_factory=dict)  # for the record; players do not see it

    def reply(self) -> dict[str, Any]:
        """As `POST /step` answers it."""
        return {
            "observation": self.observation,
            "reward": self.reward,
            "terminated": self.done,
            "truncated": self.truncated,
            "info": self.info,
        }


class Game(Environment[TaskT]):
    """A world with `reset` and `step`, and a verdict made of the steps' rewards.

    An author writes `reset` and `step`; `done` and `rewards` are kept for them. The action's type is the annotation of `step`'s
    argument. Tools may be declared, too.
    """

    scoring: ClassVar[Literal["sum", "last", "max"]] = "sum"
    """How the rewards of the steps become the one of the rollout; `last` where each of them is a score so far."""
    step_tool: ClassVar[Tool]
    """`step` with its bookkeeping, in the form in which calls are made and remembered."""

    rewards: list[float] = []  # one per step
    done: bool = False

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        path = "_play_async" if inspect.iscoroutinefunction(cls.step) else "_play"
        cls.step_tool = tool_like(f"{cls.__name__}.step", "step", cls.step, (path,))
        if cls.step_tool.parameters != ("action",):
            raise TypeError(f"game {cls.__name__}: step takes one argument, called action")

    def reset(self) -> Any:
        """Put the world in its first state, from the task alone.

        Returns:
            The first observation, as text or JSON. May be async.
        """
        raise NotImplementedError(f"{type(self).__name__} has no reset()")

    def step(self, action: Any) -> Any:
        """Take one action. `ToolError` for one that is against the rules and costs nothing. May be async.

        Returns:
            A `Step`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no step()")

    def seed(self) -> Any:
        """A game is seeded by its reset."""
        return self.reset()

    def verify(self, response: Response) -> float | Verdict:
        """The steps' rewards together; nothing played is worth 0."""
        metrics = {"moves": float(len(self.rewards)), "finished": float(self.done)}
        return Verdict(reward=self._score() if self.rewards else 0.0, metrics=metrics)

    def _score(self) -> float:
        match self.scoring:
            case "sum":
                return sum(self.rewards)
            case "last":
                return self.rewards[-1]
            case "max":
                return max(self.rewards)

    def _play(self, action: Any) -> dict[str, Any]:
        self._refuse_when_over()
        return self._kept(self.step(action))

    async def _play_async(self, action: Any) -> dict[str, Any]:
        self._refuse_when_over()
        return self._kept(await self.step(action))

    def _refuse_when_over(self) -> None:
        if self.done:
            raise ToolError("the game is over")

    def _kept(self, step: Any) -> dict[str, Any]:
        if not isinstance(step, Step):
            raise TypeError(f"{type(self).__name__}.step returned {type(step).__name__}, not a Step")
        self.rewards.append(step.reward)
        self.done = step.done or step.truncated
        return step.reply()
