"""Whether a task is one: its solution is carried out in its world, and has to be accepted, to count, and to change something."""

from typing import Any

from rollouts.check.case import SAME, Case, opened
from rollouts.check.world import NotHereError, World


async def flaw(world: World, row: dict[str, Any], *, change: bool = False) -> str | None:
    """What is wrong with the task; None when it can be solved and is not solved by doing nothing.

    Args:
        world: The environment's server.
        row: The task.
        change: Refuse also a task that wants nothing done, and one whose calls leave the world as it was.
    """
    try:
        case = await opened(world, row, str(row.get("task_id") or "the task"), ())
    except NotHereError as error:
        return str(error)
    if isinstance(case, str):
        return case
    return _flaw(case) or (_unchanged(case) if change else None)


def _flaw(case: Case) -> str | None:
    refused = next((each for each in case.gold_played.outputs if each.status >= 400), None)
    if refused is not None:
        return f"{case.place}: {refused.where} refuses a call of the solution: {refused.text[:200]}"
    if case.full <= SAME:
        return f"{case.place}: the solution is worth {case.full:g}"
    if case.full - case.nothing <= SAME and not case.idle:
        return f"{case.place}: doing nothing is worth as much as the solution"
    return None


def _unchanged(case: Case) -> str | None:
    if case.idle:
        return f"{case.place}: nothing is to be done"
    state = case.gold_played.line.get("state")
    if case.gold.moves and state == case.idle_state:
        return f"{case.place}: the calls of the solution change nothing"
    return None
