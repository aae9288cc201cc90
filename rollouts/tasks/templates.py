"""Rows drawn from an environment's templates."""

from collections.abc import Iterator
from random import Random
from typing import Any

from rollouts.tasks.prompts import prompt_of
from wire.errors import UsageError
from wire.rollout import check_row

TRIES = 500  # draws for one row; then the template is at fault


def drawn(environment: Any, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """So many rows, taking the templates in turn; the same for the same seed, no two with the same question.

    Raises:
        UsageError: the environment has no templates, or one of them gives no good row.
    """
    templates = environment.templates()
    if not templates:
        raise UsageError(f"environment {environment.__name__} has no templates(); give rows with --input")
    asked: set[str] = set()
    names = list(templates)
    for number in range(count):
        name = names[number % len(names)]
        row = _drawn(templates[name], Random(f"{seed} {name} {number}"), name, asked)
        asked.add(prompt_of(row))
        yield {"task_id": f"{name}-{seed}-{number}", "template": name, **row}


def _drawn(draw: Any, dice: Random, name: str, asked: set[str]) -> dict[str, Any]:
    for _ in range(TRIES):
        row: dict[str, Any] | None = draw(dice)
        if row is None:
            continue
        if problem := check_row(row):
            raise UsageError(f"template {name!r}: {problem}")
        if prompt_of(row) not in asked:
            return row
    raise UsageError(f"template {name!r}: {TRIES} draws gave no new task; ask for fewer")
