"""What the lines of a run say together, kept as sums: memory does not grow with the number of lines."""

import heapq
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from wire.statistics import Running

SLOWEST = 5  # rollouts named in the summary
MOST_NAMES = 500  # metrics and tools told apart: a model may invent names for ever
RECENT = 256  # durations from which the length of the next rollout is guessed
CUT_OFF = frozenset({"max_output_tokens", "context_window"})
"""Outcomes of an episode that was cut off for its length."""


@dataclass(order=True, frozen=True)
class Slow:
    """A rollout that took long."""

    seconds: float
    task_index: int
    rollout_index: int
    environment: str = field(compare=False)
    outcome: str = field(compare=False)


@dataclass
class Statistics:
    """Sums over the rollouts that have a verdict, of one environment or of the run, and over the attempts that failed."""

    n: int = 0  # rollouts with a verdict
    rewards: Running = field(default_factory=Running)  # without those that their environment masks
    outcomes: Counter[str] = field(default_factory=Counter)
    metrics: dict[str, Running] = field(default_factory=dict)
    steps: Running = field(default_factory=Running)
    model_s: float = 0.0
    tool_s: float = 0.0
    seed_s: float = 0.0
    verify_s: float = 0.0
    total_s: float = 0.0
    timed: int = 0  # lines that say how long they took
    input_tokens: int = 0
    output_tokens: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    wrong_calls: Counter[str] = field(default_factory=Counter)
    fidelity: Counter[str] = field(default_factory=Counter)
    empty: int = 0  # answers without a word
    failed_attempts: Counter[str] = field(default_factory=Counter)
    first_messages: dict[str, str] = field(default_factory=dict)  # of each failure kind
    slowest: list[Slow] = field(default_factory=list)
    recent_s: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))

    def add(self, line: dict[str, Any], environment: str) -> None:
        """A rollout line that has a verdict."""
        self.n += 1
        if not line.get("mask_sample"):
            self.rewards.add(float(line["reward"]))
        outcome = str(line.get("outcome") or "completed")
        self.outcomes[outcome] += 1
        self._add_metrics(line.get("metrics"))
        self._add_steps(line.get("steps"))
        self._add_response(line.get("response"), outcome)
        seconds = duration_s(line)
        self.seed_s += _provenance(line, "seed_s") or 0.0
        self.verify_s += _provenance(line, "verify_s") or 0.0
        if seconds is not None:
            self._add_duration(Slow(seconds, line["task_index"], line["rollout_index"], environment, outcome))

    def add_failure(self, line: dict[str, Any]) -> None:
        """The line of a failed attempt."""
        kind, message = failure_of(line)
        self.failed_attempts[kind] += 1
        self.first_messages.setdefault(kind, message)

    def expected_s(self) -> float | None:
        """How long the next rollout may take: longer than nine in ten of the recent ones; None before the first."""
        ordered = sorted(self.recent_s)
        return ordered[min(len(ordered) - 1, len(ordered) * 9 // 10)] if ordered else None

    def _add_metrics(self, metrics: Any) -> None:
        for name, value in metrics.items() if isinstance(metrics, dict) else ():
            known = name in self.metrics or len(self.metrics) < MOST_NAMES
            if known and isinstance(value, int | float) and not isinstance(value, bool):
                self.metrics.setdefault(name, Running()).add(value)

    def _add_steps(self, steps: Any) -> None:
        steps = steps if isinstance(steps, list) else []
        self.steps.add(len(steps))
        for step in steps:
            self.model_s += step.get("model_s") or 0.0
            self.tool_s += step.get("tool_s") or 0.0
            tokens = step.get("tokens")
            self.fidelity[tokens.get("fidelity", "absent") if isinstance(tokens, dict) else "absent"] += 1
            for call in step.get("calls") or ():
                name = str(call.get("name"))
                name = name if name in self.calls or len(self.calls) < MOST_NAMES else "(others)"
                self.calls[name] += 1
                self.wrong_calls[name] += call.get("status") != "ok"

    def _add_response(self, response: Any, outcome: str) -> None:
        if not isinstance(response, dict):
            return
        usage = response.get("usage")
        if isinstance(usage, dict):
            self.input_tokens += usage.get("input_tokens") or 0
            self.output_tokens += usage.get("output_tokens") or 0
        self.empty += outcome == "completed" and _says_nothing(response.get("output"))

    def _add_duration(self, slow: Slow) -> None:
        self.timed += 1
        self.total_s += slow.seconds
        self.recent_s.append(slow.seconds)
        if len(self.slowest) < SLOWEST:
            heapq.heappush(self.slowest, slow)
        else:
            heapq.heappushpop(self.slowest, slow)


def duration_s(line: dict[str, Any]) -> float | None:
    """How long a rollout took, as its line says; None when it does not."""
    return _provenance(line, "duration_s")


def failure_of(line: dict[str, Any]) -> tuple[str, str]:
    """Kind and message of a failure line."""
    failure = line.get("failure")
    failure = failure if isinstance(failure, dict) else {}
    kind = failure.get("kind") or line.get("failure_kind") or "other"
    return str(kind), str(failure.get("message") or line.get("failure_reason") or "")


def cut_off(line: dict[str, Any]) -> bool:
    """Whether the episode was cut off for its length."""
    return line.get("outcome") in CUT_OFF


def _provenance(line: dict[str, Any], name: str) -> float | None:
    provenance = line.get("provenance")
    value = provenance.get(name) if isinstance(provenance, dict) else None
    return float(value) if isinstance(value, int | float) else None


def _says_nothing(output: Any) -> bool:
    """Whether the last item is an assistant message without a word."""
    last = output[-1] if isinstance(output, list) and output else None
    if not isinstance(last, dict) or last.get("type", "message") != "message":
        return not output
    content = last.get("content")
    if isinstance(content, str):
        return not content.strip()
    parts = content if isinstance(content, list) else []
    return not any((part.get("text") or part.get("refusal") or "").strip() for part in parts if isinstance(part, dict))
