"""Figures over finished rollouts, as `POST /aggregate_metrics` answers them on every server that has the route. Pure.

Names as NeMo Gym has them: `mean/reward`, `std/reward`, … Lines without a verdict are counted and are in no mean.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from wire.errors import Unprocessable
from wire.statistics import Running, group_figures, mean_interval

GROUP_KEYS = (
    "_ng_task_index",
    "task_index",
    "task_id",
)  # what the repeats of one task have in common, the first that is there


def aggregate(lines: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """`{group_level_metrics, agent_metrics, key_metrics}` over rollout lines or verify replies."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for number, line in enumerate(lines):
        groups.setdefault(_group_of(line, number), []).append(line)
    whole = [line for members in groups.values() for line in members]
    per_group = [_group(members) for members in groups.values()]
    figures = _figures(whole)
    means = [each["mean/reward"] for each in per_group if each["mean/reward"] is not None]
    interval = mean_interval(means)
    figures |= {"n": len(whole), "n_valid": sum(_reward(line) is not None for line in whole), "n_tasks": len(groups)}
    if interval is not None and math.isfinite(interval.low):
        figures |= {"ci_low/reward": interval.low, "ci_high/reward": interval.high}
    key = {name: figures[name] for name in ("mean/reward",) if name in figures}
    return {"group_level_metrics": per_group, "agent_metrics": figures, "key_metrics": key}


def aggregate_request(body: Any) -> dict[str, Any]:
    """The answer to a posted `{verify_responses: [...]}`.

    Raises:
        Unprocessable: the body is something else.
    """
    lines = body.get("verify_responses") if isinstance(body, dict) else None
    if not isinstance(lines, list) or not all(isinstance(line, dict) for line in lines):
        raise Unprocessable("field 'verify_responses' is a list of rollout lines", param="verify_responses")
    return aggregate(lines)


def _group(members: list[Mapping[str, Any]]) -> dict[str, Any]:
    found = group_figures([_reward(line) for line in members])
    names = {key: members[0][key] for key in GROUP_KEYS if key in members[0]}
    rewards = {"mean/reward": found.mean, "std/reward": found.std, "zero_variance": found.zero_variance}
    return {**names, "n": found.n, "n_valid": found.n_valid, **_figures(members), **rewards}


def _figures(lines: list[Mapping[str, Any]]) -> dict[str, Any]:
    running: dict[str, Running] = {}
    for line in lines:
        reward = _reward(line)
        if reward is None:
            continue
        metrics = line.get("metrics")
        for name, value in {**(metrics if isinstance(metrics, dict) else {}), "reward": reward}.items():
            if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
                running.setdefault(name, Running()).add(value)
    figures: dict[str, Any] = {}
    for name, each in running.items():
        figures |= {f"mean/{name}": each.mean, f"std/{name}": each.std, f"min/{name}": each.lowest}
        figures[f"max/{name}"] = each.highest
    return figures


def _reward(line: Mapping[str, Any]) -> float | None:
    """The reward of a line with a verdict; None for a failure, a masked sample, or anything that is no number."""
    reward = line.get("reward")
    if line.get("failure") or line.get("mask_sample") is True or isinstance(reward, bool):
        return None
    return float(reward) if isinstance(reward, int | float) and math.isfinite(reward) else None


def _group_of(line: Mapping[str, Any], number: int) -> str:
    for key in GROUP_KEYS:
        if line.get(key) is not None:
            return f"{key}={line[key]}"
    return f"line={number}"
