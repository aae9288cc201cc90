"""What becomes of a group, the repeats of one task, once nothing more of it is run: who counts, and why not. Pure.

Lines are on disk by then; the record tells readers which of them to take.
"""

from typing import Any

from rollouts.keys import MASKED, OK, OVER_LONG, PERMANENT, SPENT, WAITING, Keys
from rollouts.settings import GroupSettings
from wire.statistics import mean

Record = dict[str, Any]


def record(keys: Keys, task: int, size: int, extra: int, settings: GroupSettings) -> Record:
    """The record of a closed group.

    Args:
        keys: How its members ended.
        task: Task index.
        size: Members that were asked for.
        extra: Samples that the policy may have added.
        settings: The policy, and what is dropped or marked.
    """
    states = keys.group(task)[: size + extra]
    ended = [sample for sample, state in enumerate(states) if state == OK]
    valid = [sample for sample in ended if not keys.flags(task, sample) & MASKED]
    over_long = [sample for sample in valid if keys.flags(task, sample) & OVER_LONG]
    counted = [each for each in valid if settings.over_long != "drop" or each not in over_long][:size]
    reasons = _reasons(keys, task, len(valid), counted, over_long, settings, size)
    rewards = [keys.reward(task, sample) for sample in counted]
    dropped = _dropped(reasons, settings)
    return {
        "task_index": task,
        "group_size": size,
        "policy": settings.policy,
        "n_valid": len(valid),
        "n_failed": sum(state in (WAITING, SPENT, PERMANENT) for state in states),
        "counted": [] if dropped else counted,
        "status": "dropped" if dropped else "counted",
        "reasons": reasons,
        "over_long": over_long if settings.over_long != "keep" else [],
        "mean_reward": mean(rewards) if rewards else None,
        "zero_variance": len(rewards) > 1 and min(rewards) == max(rewards),
    }


def fewest(size: int, settings: GroupSettings) -> int:
    """Valid members below which a group does not count."""
    return size if settings.policy == "strict" else min(settings.min_valid, size)


def _reasons(
    keys: Keys, task: int, valid: int, counted: list[int], over_long: list[int], settings: GroupSettings, size: int
) -> list[str]:
    """Words for what is remarkable about a group, whether or not it is dropped for it."""
    found = []
    if valid < fewest(size, settings):
        found.append("too_few_valid")
    elif len(counted) < min(settings.min_valid, size):
        found.append("too_few_left")
    if over_long and settings.over_long != "keep":
        found.append("over_long")
    rewards = {keys.reward(task, sample) for sample in counted}
    if len(counted) > 1 and len(rewards) == 1 and settings.equal_reward != "keep":
        found.append("equal_reward")
    if settings.stale != "keep" and keys.version_spread(task, counted) > settings.max_policy_lag:
        found.append("stale")
    return found


def _dropped(reasons: list[str], settings: GroupSettings) -> bool:
    choices = {"equal_reward": settings.equal_reward, "stale": settings.stale}
    return any(reason.startswith("too_few") or choices.get(reason) == "drop" for reason in reasons)
