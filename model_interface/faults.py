"""What an upstream's bad answer means: which failure kind, in which words; pure functions of status, headers and body.

A prompt that is too long is no failure but the end of an episode (`ContextOverflow`). It is recognised by the server's error code where
there is one, and by narrow patterns, anchored on both the limit and the length, where there is none. Sources of the patterns: vLLM,
llama.cpp, SGLang, TGI, OpenAI, Anthropic and Gemini, as quoted in their public issues.
"""

import re
from typing import Any

from model_interface.translate import UpstreamError
from wire import strict_json
from wire.errors import Failed

QUOTED_CHARACTERS = 200  # of the upstream's own sentence, in a failure
_OVERFLOW_CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded", "string_above_max_length"}
)
_OVERFLOW = re.compile(
    r"maximum (?:context|model) length (?:is|of) \d+"  # vLLM, OpenAI
    r"|max_tokens must be at least 1, got -\d+"  # vLLM: no room left for an answer
    r"|input prompt \(\d+ tokens\) is too long"
    r"|prompt is too long:? *\d+ tokens"  # Anthropic
    r"|prompt \((?:length )?\d+(?: tokens)?\) (?:is longer|exceeds)"
    r"|request \(\d+ tokens\) exceeds the available context size"  # llama.cpp
    r"|input (?:length )?\(?\d+ tokens\)? (?:exceeds|is longer than) the (?:model'?s )?(?:maximum )?context length"  # SGLang
    r"|requested token count exceeds the model'?s maximum context length"
    r"|`?inputs`? (?:tokens )?\+ `?max_new_tokens`? must be <= \d+"  # TGI
    r"|input token count \(\d+\) exceeds the maximum number of tokens"  # Gemini
    r"|context length of \d+ tokens? (?:is )?exceeded",
    re.IGNORECASE,
)
_SECRET = re.compile(r"\b(?:sk|pk|rk|key|hf|gsk|xai|nvapi)[-_][A-Za-z0-9_\-*]{6,}|(?<=[Bb]earer )[^\s\"',}]+")


class ContextOverflow(Exception):
    """The prompt does not fit the model: the episode's end, not an error."""


def refusal(status: int, body: bytes, what: str) -> Failed | ContextOverflow:
    """The failure that an HTTP status other than 2xx stands for.

    Args:
        status: The upstream's status.
        body: Its body, of any type; the first characters of its own sentence are kept.
        what: Who answered what, such as `model server http://h/v1 answered`.
    """
    error = _error(body)
    sentence = quote(body)
    if status in (400, 413, 422) and is_overflow(error, sentence):
        return ContextOverflow(sentence)
    message = f"{what} {status}: {sentence}"
    if status == 429:
        return Failed("rate_limited", message)
    if status in (408, 504):
        return Failed("model_timeout", message)
    if 400 <= status < 500 and status not in (409, 425):
        return UpstreamError("model_refused", message, upstream_code=str(error.get("code") or error.get("type") or ""))
    return Failed("model_error", message)


def error_inside(value: Any, what: str) -> Failed | ContextOverflow | None:
    """The failure that a 200 with an error inside stands for, or None where there is none."""
    error = value.get("error") if isinstance(value, dict) else None
    if not error and not (isinstance(value, dict) and value.get("object") == "error"):
        return None
    inside = error if isinstance(error, dict) else value if error is None else {"message": str(error)}
    sentence = mask(str(inside.get("message") or error))[:QUOTED_CHARACTERS]
    if is_overflow(inside, sentence):
        return ContextOverflow(sentence)
    kind = "rate_limited" if str(inside.get("code")) in ("429", "rate_limit_exceeded") else "model_error"
    return Failed(kind, f"{what} 200 with an error inside: {sentence}")


def not_json(status: int, body: bytes, what: str, why: str) -> Failed:
    """The failure of an answer that should have been JSON."""
    shown = quote(body) if body else "an empty body"
    return Failed("model_invalid_response", f"{what} {status} with {why}: {shown}")


def is_overflow(error: dict[str, Any], sentence: str) -> bool:
    """Whether the upstream says that the prompt is longer than the model takes."""
    if str(error.get("code")) in _OVERFLOW_CODES or str(error.get("type")) in _OVERFLOW_CODES:
        return True
    return bool(_OVERFLOW.search(sentence))


def quote(body: bytes) -> str:
    """The upstream's own sentence: its error message, or the first characters of whatever it sent; keys masked."""
    error = _error(body)
    text = error.get("message") or error.get("detail") or body[: 4 * QUOTED_CHARACTERS].decode(errors="replace")
    return mask(str(text).strip())[:QUOTED_CHARACTERS] or "an empty body"


def mask(text: str, secrets: tuple[str, ...] = ()) -> str:
    """The text without anything that looks like a key, and without `secrets`."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "***")
    return _SECRET.sub("***", text)


def _error(body: bytes) -> dict[str, Any]:
    """The object that describes the error in any of the usual shapes; {} where there is none."""
    try:
        value = strict_json.loads(body[: 2**20])
    except strict_json.JSONError:
        return {}
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return {}
    inside = value.get("error", value)
    if isinstance(inside, dict):
        return inside
    return {"message": inside} if isinstance(inside, str) else value
