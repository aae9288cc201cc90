"""The rollout line, as far as the agent server can know it. Pure.

The collector adds who asked for it: task_index, rollout_index, attempt, group_size, run_id, config_sha256.
"""

import math
from typing import Any

from agent_server.episode import Episode, Transcript
from wire.app import package_version
from wire.errors import KINDS, Failed

VERSION = package_version()
SHOWN_CHARACTERS = 100  # of a reward that is none, in a message


def scored(row: dict[str, Any], verified: dict[str, Any], episode: Episode, facts: dict[str, Any]) -> dict[str, Any]:
    """A line with a verdict.

    Args:
        row: The input row; its fields are in the line as they came.
        verified: What `/verify` answered; fields that we have no name for are kept, a trainer may read them.
        episode: What was judged.
        facts: What `provenance` gave.

    Raises:
        Failed: the reward is not a finite number, or the verifier says that it is no measurement.
    """
    return {
        **verified,
        **row,
        "response": episode.response,
        "reward": _reward(verified),
        "metrics": verified.get("metrics") or {},
        "outcome": episode.outcome,
        "failure": None,
        "mask_sample": False,
        "steps": episode.steps,
        **facts,
    }


def failed(row: dict[str, Any], error: Failed, transcript: Transcript | None, facts: dict[str, Any]) -> dict[str, Any]:
    """A line without a verdict; what was played so far is kept, so that it can be verified later."""
    kind = KINDS[error.kind]
    return {
        **row,
        "response": transcript.response() if transcript is not None and transcript.steps else None,
        "reward": None,
        "metrics": {},
        "outcome": None,
        "failure": error.failure.model_dump(),
        "failure_kind": error.kind,
        "failure_reason": str(error),
        "mask_sample": True,
        "steps": transcript.steps if transcript is not None else [],
        **facts,
        "_ng_failure_class": error.kind,
        "_ng_failure_terminal": not kind.retryable,
    }


def facts(
    row: dict[str, Any],
    agent: str,
    environment: dict[str, Any] | None,
    transcript: Transcript | None,
    seconds: dict[str, float] | None = None,
) -> dict[str, Any]:
    """Who played, in which world, answered by which weights; how long seed and verify took (`seed_s`, `verify_s`)."""
    model = transcript.model if transcript is not None else {}
    return {
        "environment_ref": environment,
        "agent_ref": row.get("agent_ref") or {"type": "responses_api_agents", "name": agent},
        "provenance": {
            "model": model.get("model"),
            "backend": model.get("backend"),
            "policy_version": model.get("policy_version"),
            "trivium": VERSION,
            **(seconds or {}),
        },
    }


def _reward(verified: dict[str, Any]) -> float:
    if verified.get("mask_sample") is True or verified.get("_ng_failure_class"):
        kind = str(verified.get("failure_kind") or verified.get("_ng_failure_class") or "mask_sample")
        reason = verified.get("failure_reason") or "the verifier says that its reward is no measurement"
        raise Failed(_kind(kind), f"{kind}: {reason}")
    reward = verified.get("reward")
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
        raise Failed(
            "invalid_reward", f"verify gave the reward {str(reward)[:SHOWN_CHARACTERS]!r}, not a finite number"
        )
    return float(reward)


def _kind(theirs: str) -> str:
    """Our kind for a verifier's own name of what went wrong. Source: NeMo Gym 0.7, failure_kinds."""
    if theirs in KINDS:
        return theirs
    return "judge_unavailable" if theirs.startswith("judge_") else "verifier_error"
