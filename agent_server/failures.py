"""From what a server answered, or that it did not, to the kind of failure. Pure: one table per side that can fail."""

from typing import Any

from wire import strict_json
from wire.client import CallError, ConnectionLost, Reply, TimedOut, Unreachable
from wire.deadline import Deadline
from wire.errors import KINDS, Failed, NotFound

NO_ANSWER: dict[str, dict[type[CallError], str]] = {
    "model": {Unreachable: "model_unreachable", ConnectionLost: "model_unreachable", TimedOut: "model_timeout"},
    "session": {
        Unreachable: "session_seed_failed",
        ConnectionLost: "session_seed_failed",
        TimedOut: "session_seed_failed",
    },
    "tool": {Unreachable: "tool_unreachable", ConnectionLost: "tool_connection_lost", TimedOut: "tool_timeout"},
    "verify": {Unreachable: "session_lost", ConnectionLost: "session_lost", TimedOut: "verifier_timeout"},
}
"""By stage: the kind for a call that got no answer."""
MODEL_STATUS = {429: "rate_limited", 408: "model_timeout", 504: "model_timeout"}
TOOL_STATUS = {429: "tool_unreachable", 502: "tool_unreachable", 503: "tool_unreachable", 504: "tool_timeout"}
VERIFY_STATUS = {429: "session_lost", 502: "session_lost", 503: "session_lost", 504: "verifier_timeout"}
"""Of a server that is busy or away, or of whoever stands before it: it is no word of the verifier's."""
LOST_SESSION = frozenset({401, 403, 410})  # the resources server knows no such session, or not any more
LOST_CODES = frozenset({"session_lost", "gone", "unauthorized", "no_session"})


def no_answer(stage: str, error: CallError, deadline: Deadline) -> Failed:
    """The failure of a call without an answer; `timeout` where it was the rollout's own time that ran out."""
    if isinstance(error, TimedOut) and deadline.left() < 0.01:
        return Failed("timeout", f"the rollout's time is up: {error}")
    return Failed(NO_ANSWER[stage][type(error)], str(error))


def model_answer(reply: Reply) -> Failed:
    """The failure behind an HTTP error of the model interface: the kind it names, else one by its status."""
    kind = _named(reply) or MODEL_STATUS.get(reply.status)
    if kind is None and reply.status < 500:
        kind = (
            "model_refused" if _readable(reply) else "model_invalid_response"
        )  # a refusal that broke on its way is none
    return Failed(kind or "model_error", _message(reply))


def seed_answer(reply: Reply) -> Failed:
    """The failure behind an HTTP error of `/seed_session`."""
    return Failed(_named(reply) or "session_seed_failed", reply.quote())


def tool_answer(reply: Reply) -> Failed | None:
    """The failure behind a tool's HTTP error; None where the answer is the model's to read."""
    if reply.status in LOST_SESSION or (reply.status == 404 and reply.code() in LOST_CODES):
        return Failed("session_lost", reply.quote())
    if reply.status == 404 and (
        reply.code() == NotFound.code or b'"detail":"Not Found"' in reply.body
    ):  # ours, FastAPI's own
        return Failed(
            "environment_error", f"the row offers the tool {reply.path[1:]!r}, which {reply.server} does not have"
        )
    if reply.status < 500 and reply.status != 429:
        return None
    return Failed(_named(reply) or TOOL_STATUS.get(reply.status, "environment_error"), _message(reply))


def verify_answer(reply: Reply) -> Failed:
    """The failure behind an HTTP error of `/verify`."""
    kind = _named(reply)
    if kind is None:
        kind = "session_lost" if reply.status in LOST_SESSION else VERIFY_STATUS.get(reply.status, "verifier_error")
    return Failed(kind, _message(reply))


def left_world(reply: Reply) -> dict[str, Any]:
    """`state` and `accepted_calls` beside the error of `/verify`, where the server tells them: enough to judge again without it."""
    try:
        body = strict_json.loads(reply.body)
    except strict_json.JSONError:
        return {}
    names = ("state", "accepted_calls")
    return {name: body[name] for name in names if name in body} if isinstance(body, dict) else {}


def _readable(reply: Reply) -> bool:
    try:
        return isinstance(strict_json.loads(reply.body), dict)
    except strict_json.JSONError:
        return False


def _named(reply: Reply) -> str | None:
    code = reply.code()
    return code if code in KINDS else None


def _message(reply: Reply) -> str:
    """The server's own sentence where it is one of ours and names a kind; else who answered what."""
    return reply.message() if _named(reply) else reply.quote()
