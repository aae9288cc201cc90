"""The two ways in which a translation fails: the caller's request has no counterpart, or the upstream's answer makes no sense."""

from typing import Any

from wire.errors import Failed, UsageError

QUOTED_CHARACTERS = 200  # of an upstream's own words, in a message


class InvalidRequest(UsageError):
    """The request holds something unknown, malformed, or without a counterpart where it is going.

    `param` is the path of what is wrong, as the caller wrote it: `input[3].content[0].type`.
    """


class UpstreamError(Failed):
    """An upstream answered 200 and the body is an error, or no answer at all.

    Attributes:
        kind: `model_error` (the server says that it failed) or `model_invalid_response` (we cannot read it).
        upstream_code: The server's own error code or type, where it gave one; `context_length_exceeded` for instance.
        described: The server's own error object, whole, where a 200 held one.
    """

    def __init__(
        self, kind: str, message: str, *, upstream_code: str | None = None, described: dict[str, Any] | None = None
    ) -> None:
        super().__init__(kind, message)
        self.upstream_code = upstream_code
        self.described = described


def error_object(body: Any) -> dict[str, Any] | None:
    """What describes the error in a body, its sentence under `message`; None where the body is no error.

    Understands OpenAI's `{"error": {"message", "code", "type"}}`, vLLM's flat `{"object": "error", "message", "code"}`,
    a bare `{"error": "text"}`, FastAPI's `{"detail": …}`, Anthropic's `{"type": "error", "error": {…}}`, lists of these (Google), and
    gateways' `{"errors": […]}`, `{"code": 503, "message": …}` and `{"success": false, …}` where there is no answer beside them.
    """
    if isinstance(body, list):
        body = body[0] if body else None
    if not isinstance(body, dict):
        return None
    answered = "choices" in body or "output" in body
    error = body.get("error") or (None if answered else body.get("errors"))
    if isinstance(error, list):
        error = error[0]
    if error and isinstance(error, dict):
        return error
    if error and error is not True:
        return {**body, "message": str(error)}
    if error or body.get("object") == "error" or body.get("type") == "error":
        return body
    if answered:
        return None
    if "detail" in body:
        return {**body, "message": str(body["detail"])}
    failed = body.get("success") is False or (
        isinstance(body.get("message"), str) and body.get("code") not in (None, "", 0, 200, "0", "200")
    )
    return body if failed else None


def error_sentence(body: Any) -> tuple[str, str | None] | None:
    """The upstream's own sentence (first 200 characters) and code, or None where the body is no error; see `error_object`."""
    error = error_object(body)
    return None if error is None else _sentence(error)


def raise_if_error(body: Any, what: str = "the model server answered 200 with an error") -> None:
    """Raise the error that a 200 carries inside.

    Args:
        body: The parsed answer, or a piece of it.
        what: How the message begins.

    Raises:
        UpstreamError: `model_error`, with the server's own sentence.
    """
    error = error_object(body)
    if error is not None:
        sentence, code = _sentence(error)
        raise UpstreamError("model_error", f"{what}: {sentence}", upstream_code=code, described=error)


def _sentence(error: dict[str, Any]) -> tuple[str, str | None]:
    code = next((str(error[key]) for key in ("code", "type") if isinstance(error.get(key), str)), None)
    message = error.get("message")
    text = message if isinstance(message, str) and message else str(error)
    return text[:QUOTED_CHARACTERS], code
