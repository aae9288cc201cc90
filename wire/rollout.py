"""The messages of one rollout: the row that starts it, what seeding answers, the verdict, the failure.

Lines and rows stay plain JSON objects where they are only carried; these models are for the places that read or make them.
"""

import math
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

OUTCOMES = (
    "completed",  # the model answered without calling a tool
    "max_steps",
    "max_output_tokens",
    "context_window",
    "content_filter",
    "stalled",  # turns with neither text nor a call
    "deadline",  # only where the environment asks to be scored on time-out
)
"""How a rollout with a verdict ended."""

RESERVED = frozenset(
    {
        "response",
        "reward",
        "metrics",
        "reward_components",
        "reason",
        "state",
        "accepted_calls",
        "augmentation",
        "tools_sha256",
        "outcome",
        "failure",
        "failure_kind",
        "failure_reason",
        "mask_sample",
        "steps",
        "provenance",
        "environment_ref",
    }
)
"""Names in a rollout line that a row may not use for fields of its own."""


NOT_TOOLS = frozenset(
    {
        *("seed_session", "verify", "close_session", "aggregate_metrics", "solution", "tools", "tasks", "mcp"),
        *("health", "livez", "readyz", "healthz", "metrics", "docs"),
    }
)
"""Routes of a resources server that no row and no environment may offer as a tool."""


class Failure(BaseModel):
    """Why there is no verdict."""

    kind: str
    """One of `wire.errors.KINDS`."""
    stage: Literal["model", "session", "tool", "verify", "rollout"]
    message: str
    """What was being done, the value, the cause; for people."""
    retryable: bool
    """Another attempt in a new session may go better."""


class Verdict(BaseModel):
    """What `verify` found: one reward, and what explains it.

    A reward is a finite float, not confined to 0..1; a boolean or a text is refused, since a grader that returns one has a mistake
    that would otherwise train a model.
    """

    model_config = ConfigDict(extra="forbid")

    reward: float
    metrics: dict[str, float] = {}
    """Numbers worth averaging over a run."""
    reward_components: dict[str, float] | None = None
    """Named parts of the reward, for trainers that take several; they sum to `reward`."""
    reason: str | None = None
    """A sentence for people."""

    @field_validator("reward", mode="before")
    @classmethod
    def _strict(cls, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"a reward is a finite number, not {value!r}")
        return float(value)


class AcceptedCall(BaseModel):
    """One tool call that the resources server let through: its arguments were valid and the tool was run."""

    name: str
    arguments: dict[str, Any]
    """As accepted: checked, defaults filled in."""
    status: Literal["ok", "tool_error", "failed"]
    """`tool_error`: the tool refused with a sentence for the model."""
    order: int
    """0, 1, 2, … in the order in which they ran."""


class EnvironmentRef(BaseModel):
    """Which world, at which version: rewards of different versions do not compare."""

    name: str
    version: str = "0"


class Seeded(BaseModel):
    """What `/seed_session` answers."""

    model_config = ConfigDict(extra="allow")

    session_id: str
    tools: list[dict[str, Any]] = []
    """Responses function tools, as the model is to see them."""
    observation: str | None = None
    """First observation of a reset/step world."""
    remembers_calls: bool = False
    """Tool calls carry `X-Call-Id` and may be asked for again."""
    environment: EnvironmentRef | None = None
    score_on_timeout: bool = False
    """The world wants `verify` to run when the rollout's time is up (outcome `deadline`)."""
    parallel_tools: list[str] = Field(default_factory=list)
    """Names of tools whose calls in one turn may run together."""


def flat_row(row: dict[str, Any]) -> dict[str, Any]:
    """NeMo Gym's materialised row `{task_id, task_input: {responses_create_params, task_data}}` as a flat one; others as they are."""
    inner = row.get("task_input")
    if not isinstance(inner, dict):
        return row
    data = inner.get("task_data")
    rest = {key: value for key, value in row.items() if key != "task_input"}
    if isinstance(data, dict):
        return {**rest, **{key: value for key, value in inner.items() if key != "task_data"}, **data}
    return {**rest, **inner}


def check_row(row: dict[str, Any]) -> str | None:
    """What is wrong with a data set row as far as every environment can tell, or None.

    NeMo Gym's materialised form `{task_id, task_input: {…}}` is accepted as it is.
    """
    body = row.get("task_input", row)
    if not isinstance(body, dict):
        return "field 'task_input' is no object"
    params = body.get("responses_create_params")
    if not isinstance(params, dict):
        return (
            "field 'responses_create_params' is missing" if params is None else "'responses_create_params' is no object"
        )
    if not isinstance(params.get("input"), str | list):
        return "field 'responses_create_params.input' is missing (a string or a list of items)"
    taken = sorted(RESERVED & body.keys())
    if taken:
        return f"field {taken[0]!r} is reserved for the rollout line; rename it"
    return None
