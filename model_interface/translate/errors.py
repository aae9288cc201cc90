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
    """

    def __init__(self, kind: str, message: str, *, upstream_code: str | None = None) -> None:
        super().__init__(kind, message)
        self.upstream_code = upstream_code


def error_sentence(body: Any) -> tuple[str, str | None] | None:
    """The upstream's own sentence (first 200 characters) and code, or None where the body is no error.

    Understands OpenAI's `{"error": {"message", "code", "type"}}`, vLLM's flat `{"object": "error", "message", "code"}`,
    a bare `{"error": "text"}`, FastAPI's `{"detail": …}` and Anthropic's `{"type": "error", "error": {…}}`.
    """
    if not isinstance(body, dict):
        return None
    error = body.get("error")
    if isinstance(error, list):  # Google's compatible face wraps it
        error = error[0] if error else None
    if isinstance(error, dict):
        return _sentence(error)
    if error:
        return str(error)[:QUOTED_CHARACTERS], None
    if body.get("object") == "error" or body.get("type") == "error":
        return _sentence(body)
    if "detail" in body and "choices" not in body and "output" not in body:
        return str(body["detail"])[:QUOTED_CHARACTERS], None
    return None


def raise_if_error(body: Any) -> None:
    """Raise the error that a 200 carries inside.

    Raises:
        UpstreamError: `model_error`, with the server's own sentence.
    """
    said = error_sentence(body)
    if said is not None:
        sentence, code = said
        raise UpstreamError(
            "model_error", f"the model server answered 200 with an error: {sentence}", upstream_code=code
        )


def _sentence(error: dict[str, Any]) -> tuple[str, str | None]:
    code = next((str(error[key]) for key in ("code", "type") if isinstance(error.get(key), str)), None)
    message = error.get("message")
    text = message if isinstance(message, str) and message else str(error)
    return text[:QUOTED_CHARACTERS], code
