"""The error vocabulary: what can go wrong, on whose side, and how each side says so over HTTP.

An error that a caller can mend is a `UsageError` or one of its neighbours; an error that ends a rollout without a verdict is a
`Failed` with one of `KINDS`. Every message says what was being done, the value, and what would be right.
"""

from dataclasses import dataclass
from typing import Any, Literal

from wire.rollout import Failure

Stage = Literal["model", "session", "tool", "verify", "rollout"]
NemoGymStage = Literal["admission", "seed", "agent", "verification", "cleanup"]


@dataclass(frozen=True)
class Kind:
    """One way in which a rollout ends without a verdict."""

    stage: Stage
    retryable: bool  # another attempt, in a new session, may go better
    ng_stage: NemoGymStage  # the name NeMo Gym 0.7 has for the stage
    status: int  # HTTP status where a server reports it


KINDS: dict[str, Kind] = {
    "model_unreachable": Kind("model", True, "agent", 502),
    "model_timeout": Kind("model", True, "agent", 504),
    "rate_limited": Kind("model", True, "agent", 429),
    "model_refused": Kind("model", False, "agent", 400),
    "model_error": Kind("model", True, "agent", 502),
    "model_invalid_response": Kind("model", True, "agent", 502),
    "session_seed_failed": Kind("session", True, "seed", 500),
    "session_lost": Kind("session", True, "agent", 410),
    "tool_unreachable": Kind("tool", True, "agent", 502),
    "tool_timeout": Kind("tool", True, "agent", 504),
    "tool_connection_lost": Kind("tool", True, "agent", 502),
    "environment_error": Kind("tool", False, "agent", 500),
    "sandbox_lost": Kind("tool", True, "agent", 500),
    "verifier_error": Kind("verify", False, "verification", 500),
    "verifier_timeout": Kind("verify", True, "verification", 504),
    "judge_unavailable": Kind("verify", True, "verification", 503),
    "invalid_reward": Kind("verify", False, "verification", 500),
    "timeout": Kind("rollout", True, "agent", 504),
    "agent_error": Kind("rollout", False, "agent", 500),
    "agent_lost": Kind("rollout", True, "agent", 502),
    "unserialisable": Kind("rollout", False, "agent", 500),
}
"""Every failure kind; see docs/reference/failures.md for what each means."""


class TriviumError(Exception):
    """Base of everything we raise on purpose; knows its HTTP status and JSON body."""

    status = 500
    code = "internal_error"
    type = "failure"

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param

    def body(self) -> dict[str, Any]:
        """The JSON body of the HTTP answer, in the shape OpenAI's clients read."""
        return {"error": {"message": str(self), "type": self.type, "code": self.code, "param": self.param}}


class UsageError(TriviumError):
    """The config, data set, request or command line is wrong; exit code 2, HTTP 400."""

    status, code, type = 400, "invalid_request", "invalid_request_error"


class Unprocessable(UsageError):
    """The request is well formed and its content is refused."""

    status, code = 422, "unprocessable"


class Unauthorized(UsageError):
    """No token, or not the right one; or no session."""

    status, code = 401, "unauthorized"


class NotFound(UsageError):
    """Nothing has this name here."""

    status, code = 404, "not_found"


class MethodNotAllowed(UsageError):
    """The path is one of ours, and is asked for by another method."""

    status, code = 405, "method_not_allowed"


class PreviousResponseNotFound(NotFound):
    """The conversation is gone from memory: send all of it. Source: OpenAI API, error code of the same name."""

    code = "previous_response_not_found"


class Conflict(UsageError):
    """The same id was used for something else."""

    status, code = 409, "conflict"


class Gone(UsageError):
    """It was here, and has been closed or has expired."""

    status, code = 410, "gone"


class TooLarge(UsageError):
    """The body is over the limit."""

    status, code = 413, "too_large"


class Overloaded(TriviumError):
    """A bound on what is held or in flight is reached; ask again later."""

    status, code = 503, "overloaded"


class Failed(TriviumError):
    """The rollout ends without a verdict.

    Args:
        kind: One of `KINDS`.
        message: One sentence that says what was being done, the value and the cause.
        status: HTTP status, where it is not the kind's own (an upstream's own status passed on).
    """

    def __init__(self, kind: str, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.kind = self.code = kind
        self.status = status or KINDS[kind].status

    @property
    def failure(self) -> Failure:
        """What the rollout's line says."""
        return failure(self.kind, str(self))


def failure(kind: str, message: str) -> Failure:
    """A `Failure` with the fixed stage and retryability of its kind."""
    known = KINDS[kind]
    return Failure(kind=kind, stage=known.stage, message=message, retryable=known.retryable)
