"""Composite rewards: named components beside the scalar, weighted by config, that sum to it exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from resources_server.grading.grade import Grade
from wire.rollout import Verdict


@dataclass(frozen=True)
class Components:
    """Weights by component name. A component without a weight is a mistake, not a zero; weight 0 logs it only."""

    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        if not self.weights:
            raise ValueError("a composite reward has at least one component")
        for name, weight in self.weights.items():
            if isinstance(weight, bool) or not math.isfinite(weight):
                raise ValueError(f"the weight of {name!r} is {weight!r}; it must be a finite number")

    def verdict(
        self,
        found: Mapping[str, float | bool | Grade],
        *,
        metrics: Mapping[str, float] | None = None,
        reason: str | None = None,
    ) -> Verdict:
        """The verdict of raw component values: `reward_components` are weighted and sum to `reward`; the raw values are
        metrics. ValueError when a component is missing, unknown or not finite."""
        if found.keys() != self.weights.keys():
            missing, unknown = self.weights.keys() - found.keys(), found.keys() - self.weights.keys()
            raise ValueError(f"components missing: {sorted(missing)}, without a weight: {sorted(unknown)}")
        raw = {name: _number(name, value) for name, value in found.items()}
        parts = {name: weight * raw[name] for name, weight in self.weights.items()}
        told = [f"{name}: {value.reason}" for name, value in found.items() if isinstance(value, Grade)]
        return Verdict(
            reward=_total(parts),
            metrics={**raw, **(metrics or {})},
            reward_components=parts,
            reason=reason or "; ".join(told) or None,
        )


def _number(name: str, value: float | bool | Grade) -> float:
    number = float(value.reward if isinstance(value, Grade) else value)
    if not math.isfinite(number):
        raise ValueError(f"component {name!r} is {number!r}; it must be a finite number")
    return number


def _total(parts: Mapping[str, float]) -> float:
    """The plain left-to-right sum, as whoever adds the components up again will get it."""
    return sum(parts.values(), 0.0)
