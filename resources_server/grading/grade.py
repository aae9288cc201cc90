"""The result of every verdict here: a number and the sentence that explains it to a person."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Grade:
    """What an answer is worth. `reward` is finite; `reason` is for people and may quote the ground truth, so it
    goes into the line and never to the model. `parts` holds named sub-scores worth logging."""

    reward: float
    reason: str
    parts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.reward, bool) or not isinstance(self.reward, int | float) or not math.isfinite(self.reward):
            raise ValueError(f"a grade is a finite number, not {self.reward!r}")
        object.__setattr__(self, "reward", float(self.reward))


def right(reason: str = "as expected") -> Grade:
    """Full marks."""
    return Grade(1.0, reason)


def wrong(reason: str) -> Grade:
    """No marks, and why."""
    return Grade(0.0, reason)


def short(value: object, limit: int = 80) -> str:
    """`value` as a reason quotes it: its repr, cut to `limit` characters."""
    text = repr(value[: 2 * limit]) if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
