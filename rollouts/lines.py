"""From what the agent server answered to the line that is written: parsed once, completed, written once.

A line has a verdict and no failure, or a failure and no reward. Whatever an answer holds beside that is kept.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wire import strict_json
from wire.client import Reply
from wire.errors import KINDS, Failed, UsageError

Line = dict[str, Any]
LARGEST = 1e300  # of a number that is added up
QUOTED_CHARACTERS = 200  # of an answer, in a message
GATEWAY = frozenset({502, 504})  # statuses of whoever stands between us and an agent server that is not there

LOST = frozenset({"agent_lost", "session_lost", "tool_connection_lost", "tool_unreachable"})
PERHAPS_LOST = frozenset(
    {"session_seed_failed", "model_unreachable"}
)  # or the world's seed raised, or the model's own server is away
_OURS_GONE = re.compile(r" at https?://\S+: (?:the connection broke|no connection)")  # as `wire.client` says it
ROLLOUT_FIELDS = ("reward", "response", "failure", "failure_kind")  # one of which a rollout's line has


@dataclass(frozen=True, slots=True)
class Identity:
    """What only the collector knows of a rollout: who asked for it, as what."""

    task_index: int
    rollout_index: int
    attempt: int  # from 1
    group_size: int
    environment: str
    agent: str
    run_id: str
    config_sha256: str
    started_at: str
    duration_s: float


def from_reply(reply: Reply, row: bytes) -> Line:
    """The line in an answer to `/run`, with a verdict or a failure in it; the row's fields when the agent leaves them out."""
    try:
        line = _object(reply)
        _check_shape(line)
    except Failed as error:
        return without_verdict(strict_json.loads(row), error)
    if "responses_create_params" not in line and "task_input" not in line:
        line = {**strict_json.loads(row), **line}
    if line.get("failure") or line.get("failure_kind"):
        return _with_failure(line)
    try:
        line["reward"] = _reward(line)
    except Failed as error:
        return without_verdict(line, error)
    line.setdefault("outcome", "completed")
    line.setdefault("failure", None)
    line.setdefault("mask_sample", False)
    return line


def without_verdict(line: Line, error: Failed) -> Line:
    """A line, or the row it was to come from, as one that has failed."""
    said = {
        "reward": None,
        "outcome": None,
        "failure": error.failure.model_dump(),
        "failure_kind": error.kind,
        "failure_reason": str(error),
        "mask_sample": True,
    }
    return {**line, **said, "_ng_failure_class": error.kind, "_ng_failure_terminal": not KINDS[error.kind].retryable}


def stamp(line: Line, identity: Identity) -> bytes:
    """The line as it is written.

    Raises:
        JSONError: a value in it has no strict JSON form.
    """
    provenance = line.get("provenance")
    line.setdefault("environment", identity.environment)
    if not line.get("environment_ref"):
        line["environment_ref"] = {"name": identity.environment, "version": "0"}
    if not line.get("agent_ref"):
        line["agent_ref"] = {"type": "responses_api_agents", "name": identity.agent}
    line["task_index"] = line["_ng_task_index"] = identity.task_index
    line["rollout_index"] = line["_ng_rollout_index"] = identity.rollout_index
    line["attempt"], line["group_size"] = identity.attempt, identity.group_size
    line["provenance"] = {
        **(provenance if isinstance(provenance, dict) else {}),
        "run_id": identity.run_id,
        "config_sha256": identity.config_sha256,
        "started_at": identity.started_at,
        "duration_s": round(identity.duration_s, 4),
    }
    return strict_json.dumps(line, trusted=True)


def failed(line: Line) -> bool:
    """Whether a line has a failure instead of a verdict."""
    return line["reward"] is None


def retryable(line: Line) -> bool:
    """Whether another attempt may go better: by the kind, or, for kinds that are not ours, by what the line says."""
    failure = line.get("failure")
    said = failure.get("retryable") if isinstance(failure, dict) else None
    kind = (failure.get("kind") if isinstance(failure, dict) else None) or line.get("failure_kind")
    return KINDS[kind].retryable if kind in KINDS else said is not False


def _object(reply: Reply) -> Line:
    if reply.status != 200:
        raise Failed("agent_lost" if reply.status in GATEWAY else "agent_error", reply.quote())
    try:
        line = strict_json.loads(reply.body)
    except strict_json.JSONError as error:
        shown = reply.body[:QUOTED_CHARACTERS].decode(errors="replace")
        not_finite = b"NaN" in reply.body or b"Infinity" in reply.body  # what Python's own JSON writer lets through
        kind = "unserialisable" if not_finite else "agent_lost"  # somebody else's page, or a line that broke on its way
        raise Failed(kind, f"{reply.server} answered /run with no strict JSON ({error}): {shown}") from error
    if not isinstance(line, dict):
        raise Failed("agent_error", f"{reply.server} answered /run with a {type(line).__name__}, not an object")
    return line


def _check_shape(line: Line) -> None:
    """A line of another maker's agent in which a part has another shape than readers rely on is that rollout's failure, not the run's."""
    response = line.get("response")
    parts: list[tuple[str, Any]] = [(name, line.get(name)) for name in ("response", "metrics", "reward_components")]
    if isinstance(response, dict):
        parts.append(("response.usage", response.get("usage")))
        parts += [(f"response.output[{at}]", each) for at, each in _listed("response.output", response.get("output"))]
    for at, step in _listed("steps", line.get("steps")):
        parts += [(f"steps[{at}]", step)]
        if isinstance(step, dict):
            parts.append((f"steps[{at}].usage", step.get("usage")))
            parts += [(f"steps[{at}].calls[{n}]", each) for n, each in _listed("steps.calls", step.get("calls"))]
    for name, value in parts:
        if value is not None and not isinstance(value, dict):
            raise Failed(
                "agent_error", f"the agent server's line has {name} as a {type(value).__name__}, not an object"
            )
    for name, value in _numbers(line):
        if value is not None and not (_is_number(value) and abs(value) <= LARGEST):
            raise Failed(
                "agent_error", f"the agent server's line has {name} as {str(value)[:40]!r}, not a number within 1e300"
            )
    if not isinstance(line.get("outcome", ""), str | None):
        raise Failed(
            "agent_error", f"the agent server's line has outcome as a {type(line['outcome']).__name__}, not a text"
        )


def _numbers(line: Line) -> Iterator[tuple[str, Any]]:
    """Everything that is summed up over a run."""
    response = line.get("response") or {}
    usages = [("response.usage", response.get("usage") or {})]
    for at, step in enumerate(line.get("steps") or []):
        yield from ((f"steps[{at}].{name}", step.get(name)) for name in ("model_s", "tool_s"))
        usages.append((f"steps[{at}].usage", step.get("usage") or {}))
    for place, usage in usages:
        yield from ((f"{place}.{name}", usage.get(name)) for name in ("input_tokens", "output_tokens"))
    yield from ((f"metrics.{name}", value) for name, value in (line.get("metrics") or {}).items() if _is_number(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _listed(name: str, value: Any) -> enumerate[Any]:
    if value is not None and not isinstance(value, list):
        raise Failed("agent_error", f"the agent server's line has {name} as a {type(value).__name__}, not a list")
    return enumerate(value or [])


def _with_failure(line: Line) -> Line:
    """A failure that the agent server names, in the one form that our files have; kinds of other makers are kept."""
    failure = line.get("failure")
    failure = failure if isinstance(failure, dict) else {}
    kind = str(failure.get("kind") or failure.get("failure_kind") or line.get("failure_kind") or "agent_error")
    message = str(failure.get("message") or failure.get("failure_reason") or line.get("failure_reason") or kind)
    known = KINDS.get(kind)
    terminal = line.get("_ng_failure_terminal") is True or failure.get("terminal") is True
    line["failure"] = {
        "kind": kind,
        "stage": known.stage if known else "rollout",
        "message": message,
        "retryable": known.retryable if known else failure.get("retryable", not terminal) is not False,
    }
    line["failure_kind"], line["failure_reason"] = kind, message
    line["reward"], line["mask_sample"] = None, True
    return line


def _reward(line: Line) -> float:
    reward = line.get("reward")
    if (
        isinstance(reward, bool)
        or not isinstance(reward, int | float)
        or not -sys.float_info.max <= reward <= sys.float_info.max
    ):
        raise Failed("invalid_reward", f"a reward is a finite number, not {str(reward)[:QUOTED_CHARACTERS]!r}")
    return float(reward)


def server_lost(line: Line) -> bool:
    """Whether a server of ours died under a failed attempt: it was not there, or the connection broke while it worked."""
    kind, message = str(line.get("failure_kind")), str(line.get("failure_reason"))
    return kind in LOST or (kind in PERHAPS_LOST and _OURS_GONE.search(message) is not None)


def check(line: Line) -> None:
    """Raise for a line with a verdict whose parts have other shapes than readers rely on.

    Raises:
        Failed: naming the part.
    """
    _check_shape(line)
    _reward(line)


def refuse_foreign(place: str, line: Line) -> None:
    """Raise for what is no rollout, whoever wrote it: a row of a data set, a record of a group or of tools, a sample.

    Raises:
        UsageError: naming the place.
    """
    if not any(name in line for name in ROLLOUT_FIELDS):
        raise UsageError(f"{place}: not a rollout: it has none of {', '.join(ROLLOUT_FIELDS)}")
