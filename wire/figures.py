"""What rollout lines say together: per environment and model, and per task. One pass, and memory that grows with tasks and not with lines.

The same figures stand in `/aggregate_metrics`, in `trivium profile` and in its page. A line without a reward counts as a failure of
its task and is in no mean.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wire.responses import last_text
from wire.statistics import Interval, Running, mean_interval, pass_at_k, pass_hat_k

SOLVED = 1.0  # a reward from which a rollout counts as right
MAX_ANSWERS = 64  # different final answers remembered per task, for the majority
SAMPLE = 2000  # points kept for plots, drawn evenly from all lines
KS = (1, 2, 4, 8, 16, 32, 64)


@dataclass
class TaskFigures:
    """One task (a row) under one model: what its group of rollouts came to."""

    name: str
    rewards: Running = field(default_factory=Running)
    solved: int = 0
    failures: int = 0
    answers: dict[bytes, list[float]] = field(default_factory=dict)
    """Digest of the final text to [how often, sum of rewards], in order of first sight."""

    def add(self, reward: float, text: str, threshold: float) -> None:
        """One rollout with a reward."""
        self.rewards.add(reward)
        self.solved += reward >= threshold
        key = hashlib.blake2b(" ".join(text.split()).encode(errors="replace"), digest_size=8).digest()
        if key in self.answers or len(self.answers) < MAX_ANSWERS:
            seen = self.answers.setdefault(key, [0, 0.0])
            seen[0] += 1
            seen[1] += reward

    @property
    def n(self) -> int:
        """Rollouts with a reward."""
        return self.rewards.n

    @property
    def majority(self) -> float:
        """Mean reward of the most frequent final answer."""
        count, total = max(self.answers.values(), key=lambda seen: seen[0])
        return total / count

    @property
    def spread(self) -> bool:
        """Whether the rewards differ: only then does the group teach anything."""
        return self.n > 1 and self.rewards.highest - self.rewards.lowest > 1e-9


@dataclass
class Figures:
    """All lines of one environment under one model.

    Args:
        threshold: A reward from which a rollout counts as solved.
    """

    threshold: float = SOLVED
    tasks: dict[Any, TaskFigures] = field(default_factory=dict)
    rewards: Running = field(default_factory=Running)
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    """Rollouts without a reward, by kind."""
    metrics: dict[str, Running] = field(default_factory=dict)
    components: dict[str, Running] = field(default_factory=dict)
    steps: Running = field(default_factory=Running)
    seconds: Running = field(default_factory=Running)
    model_s: float = 0.0
    tool_s: float = 0.0
    input_tokens: Running = field(default_factory=Running)
    output_tokens: Running = field(default_factory=Running)
    calls: Counter[str] = field(default_factory=Counter)
    call_errors: Counter[str] = field(default_factory=Counter)
    points: list[tuple[float, float]] = field(default_factory=list)
    """(output tokens, reward) of some rollouts, drawn evenly."""
    _draw: random.Random = field(default_factory=lambda: random.Random(0))
    _length_x_reward: float = 0.0

    def add(self, line: Mapping[str, Any], task: Any = None) -> None:
        """One rollout line.

        Args:
            line: As `collect` writes it, or a verify answer as NeMo Gym's.
            task: What tells tasks apart; `task_id` where the line has one, else `task_index`, unless given.
        """
        key = task_of(line) if task is None else task
        figures = self.tasks.get(key)
        if figures is None:
            figures = self.tasks[key] = TaskFigures(str(key))
        reward = line.get("reward")
        if reward is None or line.get("failure") or line.get("failure_kind"):
            figures.failures += 1
            self.failures[str((line.get("failure") or {}).get("kind") or line.get("failure_kind") or "other")] += 1
            return
        if line.get("mask_sample"):
            self.failures["masked"] += 1
            return
        self._add_scored(line, float(reward), figures)

    def _add_scored(self, line: Mapping[str, Any], reward: float, task: TaskFigures) -> None:
        response = line.get("response") or {}
        task.add(reward, last_text(response.get("output") or []), self.threshold)
        self.rewards.add(reward)
        self.outcomes[str(line.get("outcome") or "completed")] += 1
        for target, values in ((self.metrics, line.get("metrics")), (self.components, line.get("reward_components"))):
            for name, value in (values or {}).items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    target.setdefault(name, Running()).add(float(value))
        usage = response.get("usage") or {}
        made = float(usage.get("output_tokens") or 0)
        self.input_tokens.add(float(usage.get("input_tokens") or 0))
        self.output_tokens.add(made)
        self._length_x_reward += made * reward
        self._keep((made, reward))
        self._add_steps(line.get("steps") or [])

    def _add_steps(self, steps: list[dict[str, Any]]) -> None:
        self.steps.add(len(steps))
        model = sum(step.get("model_s") or 0.0 for step in steps)
        tool = sum(step.get("tool_s") or 0.0 for step in steps)
        self.model_s += model
        self.tool_s += tool
        self.seconds.add(model + tool)
        for step in steps:
            for call in step.get("calls") or ():
                name = str(call.get("name"))
                self.calls[name] += 1
                self.call_errors[name] += call.get("status") != "ok"

    def _keep(self, point: tuple[float, float]) -> None:
        """Reservoir sampling: every line has the same chance to be among the points."""
        if len(self.points) < SAMPLE:
            self.points.append(point)
        elif (place := self._draw.randrange(self.rewards.n)) < SAMPLE:
            self.points[place] = point

    @property
    def scored(self) -> list[TaskFigures]:
        """Tasks with at least one reward."""
        return [each for each in self.tasks.values() if each.n]

    def mean(self) -> Interval | None:
        """Mean reward over tasks, each task once, with its interval: repeats of a task are not independent."""
        return mean_interval([each.rewards.mean for each in self.scored])

    def pass_at(self) -> dict[int, float]:
        """pass@k over the tasks that have at least k rollouts, for the ks that at least one task has."""
        return self._over_tasks(pass_at_k)

    def pass_hat(self) -> dict[int, float]:
        """pass^k likewise: the chance that k rollouts are all right."""
        return self._over_tasks(pass_hat_k)

    def _over_tasks(self, figure: Any) -> dict[int, float]:
        found = {}
        for k in KS:
            values = [figure(each.n, each.solved, k) for each in self.scored if each.n >= k]
            if values:
                found[k] = sum(values) / len(values)
        return found

    def best(self) -> float | None:
        """Mean over tasks of the highest reward."""
        return _mean(each.rewards.highest for each in self.scored)

    def majority(self) -> float | None:
        """Mean over tasks of what the most frequent answer got."""
        return _mean(each.majority for each in self.scored)

    def spread_share(self) -> float | None:
        """Share of groups of two or more whose rewards differ."""
        groups = [each for each in self.scored if each.n > 1]
        return sum(each.spread for each in groups) / len(groups) if groups else None

    def too_easy(self) -> list[TaskFigures]:
        """Tasks of two or more rollouts that all got the threshold."""
        return [each for each in self.scored if each.n > 1 and each.solved == each.n]

    def too_hard(self) -> list[TaskFigures]:
        """Tasks of two or more rollouts of which none did."""
        return [each for each in self.scored if each.n > 1 and not each.solved]

    def length_correlation(self) -> float | None:
        """Pearson's r of reward and output tokens; None where either does not vary."""
        n, length, reward = self.rewards.n, self.output_tokens, self.rewards
        if n < 2 or not length.std or not reward.std:
            return None
        return (self._length_x_reward / n - length.mean * reward.mean) / (length.std * reward.std)

    def summary(self) -> dict[str, Any]:
        """The figures as JSON; an open interval's ends are None."""
        interval = self.mean()
        calls = sum(self.calls.values())
        return {
            "tasks": len(self.tasks),
            "rollouts": self.rewards.n,
            "failed": sum(self.failures.values()),
            "mean_reward": interval.mean if interval else None,
            "mean_reward_low": _finite(interval.low) if interval else None,
            "mean_reward_high": _finite(interval.high) if interval else None,
            "pass_at_k": {str(k): value for k, value in self.pass_at().items()},
            "pass_hat_k": {str(k): value for k, value in self.pass_hat().items()},
            "best": self.best(),
            "majority": self.majority(),
            "groups_with_spread": self.spread_share(),
            "too_easy": len(self.too_easy()),
            "too_hard": len(self.too_hard()),
            "outcomes": dict(self.outcomes),
            "failures": dict(self.failures),
            "metrics": {name: each.mean for name, each in self.metrics.items()},
            "reward_components": {name: each.mean for name, each in self.components.items()},
            "steps": self.steps.mean,
            "model_s": self.model_s,
            "tool_s": self.tool_s,
            "input_tokens": self.input_tokens.mean,
            "output_tokens": self.output_tokens.mean,
            "tool_error_share": sum(self.call_errors.values()) / calls if calls else None,
            "reward_length_correlation": self.length_correlation(),
        }


def task_of(line: Mapping[str, Any]) -> Any:
    """What tells a line's task apart from the others of its run."""
    for name in ("task_index", "_ng_task_index", "task_id", "id"):
        if isinstance(line.get(name), int | str):
            return line[name]
    return None


def environment_of(line: Mapping[str, Any]) -> str:
    """The name of a line's environment as far as the line says; the agent's stands in for it in lines of NeMo Gym's. "" for none."""
    for name, key in (("environment_ref", "name"), ("environment", None), ("agent_ref", "name")):
        told = line.get(name)
        told = told.get(key) if isinstance(told, Mapping) and key else told
        if told and isinstance(told, str):
            return told
    return ""


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None


def _finite(value: float) -> float | None:
    return value if abs(value) != float("inf") else None
