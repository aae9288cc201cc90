"""Figures over finished rollouts as `POST /aggregate_metrics` answers them: NeMo Gym's names beside those of `trivium profile`. Pure.

Both are read off the same `wire.figures.Figures`, so that a server and the command cannot say different things.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from wire.errors import Unprocessable
from wire.figures import Figures, task_of

Line = Mapping[str, Any]


def aggregate(lines: Iterable[Line]) -> dict[str, Any]:
    """`{group_level_metrics, agent_metrics, key_metrics}` over rollout lines or verify replies.

    A line without a reward is counted and is in no mean; a line that names no task is a group of its own.
    """
    whole = Figures()
    groups: dict[Any, Figures] = {}
    for number, line in enumerate(lines):
        task = task_of(line)
        key = f"line {number}" if task is None else task
        whole.add(line, key)
        groups.setdefault(key, Figures()).add(line, key)
    key_metrics = {"mean/reward": whole.rewards.mean} if whole.rewards.n else {}
    return {
        "group_level_metrics": [{"task": key, **_group(group)} for key, group in groups.items()],
        "agent_metrics": {**whole.summary(), **_named(whole), "n_tasks": len(groups)},
        "key_metrics": key_metrics | {f"pass@{k}": value for k, value in whole.pass_at().items()},
    }


def aggregate_request(body: Any) -> dict[str, Any]:
    """The answer to a posted `{verify_responses: [...]}`.

    Raises:
        Unprocessable: the body is something else.
    """
    lines = body.get("verify_responses") if isinstance(body, dict) else None
    if not isinstance(lines, list) or not all(isinstance(line, dict) for line in lines):
        raise Unprocessable("field 'verify_responses' is a list of rollout lines", param="verify_responses")
    return aggregate(lines)


def _group(figures: Figures) -> dict[str, Any]:
    solved = sum(each.solved for each in figures.tasks.values())
    return {**_named(figures), "solved": solved, "zero_variance": figures.rewards.n > 1 and not figures.spread_share()}


def _named(figures: Figures) -> dict[str, Any]:
    """Counts, and mean, spread, lowest and highest of the reward and of each metric, under NeMo Gym's names."""
    named: dict[str, Any] = {"n": figures.rewards.n + sum(figures.failures.values()), "n_valid": figures.rewards.n}
    for name, each in {**figures.metrics, "reward": figures.rewards}.items():
        if each.n:
            named |= {f"mean/{name}": each.mean, f"std/{name}": each.std, f"min/{name}": each.lowest}
            named[f"max/{name}"] = each.highest
    return named
