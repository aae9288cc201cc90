"""What an upstream's bad answer means: which failure kind, in which words; pure functions of status, headers and body.

A prompt that is too long is no failure but the end of an episode (`ContextOverflow`). It is recognised by the server's error code where
there is one, and by narrow patterns of whole phrases, with their numbers where they have any, where there is none; also inside the
error of another server that a gateway passes on as text. Sources: vLLM, llama.cpp, SGLang, TGI, TensorRT-LLM, LM Studio, Ollama,
OpenAI, Azure, Anthropic, Gemini, Mistral, xAI, Cohere, Kimi, MiniMax, Qwen, GLM, Bedrock, LiteLLM, OpenRouter, Together and
Fireworks, as quoted in public issues.
"""

import re
from typing import Any

from model_interface.translate import UpstreamError, error_object
from wire import strict_json
from wire.errors import Failed

QUOTED_CHARACTERS = 200  # of the upstream's own sentence, in a failure
MATCHED_CHARACTERS = 1 << 20  # of a body, in which the sentence is looked for
_OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded", "exceed_context_size_error", "context_window_exceeded", "contextwindowexceedederror",
        "model_max_prompt_tokens_exceeded",
    }
)  # fmt: skip
_NESTED = 4  # errors within errors that are looked into, the outermost among them
_TEXT_TOO_LONG = "string_above_max_length"  # of any text in the request: a tool's description, a call's id
_PROMPT = re.compile(r"(?:messages|input|prompt)(?:\.?\[\d+\]|\.(?:content|output|text))*", re.IGNORECASE)
_SAYS_NOTHING = re.compile(  # codes that only repeat the status, in place of one that names the fault
    r"-?\d*|none|\w*(?:error|exception)|bad_?request|invalid_(?:argument|request)|invalid_request_invalid_args|validation|.*\s.*",
    re.DOTALL,
)
_OVERFLOW = re.compile(
    r"maximum (?:context|model) length (?:is|of) \d+"  # vLLM, OpenAI
    r"|model'?s context length is only \d+"  # vLLM
    r"|max_tokens must be at least 1, got (?:0|-\d+)"  # vLLM: no room left for an answer
    r"|input prompt \(\d+ tokens\) is too long"
    r"|prompt is too long:? *\d+ tokens"  # Anthropic
    r"|prompt is too long: \d+, model maximum context length: \d+"  # vLLM behind Fireworks
    r"|input length and `?max_tokens`? exceed context limit: \d+ \+ \d+ > \d+"  # Anthropic
    r"|prompt contains \d+ tokens\b.{0,60}?, too large for model with \d+ maximum context length"  # Mistral
    r"|maximum prompt length is \d+"  # xAI
    r"|input is too long for requested model"  # Bedrock
    r"|prompt \((?:length )?\d+(?: tokens)?\) (?:is longer|exceeds)"
    r"|request (?:\(\d+ tokens\) )?exceeds the available context size"  # llama.cpp
    r"|input (?:length )?\(?\d+ tokens\)? (?:exceeds|is longer than) the (?:model'?s )?(?:maximum )?context length"  # SGLang
    r"|input length \(\d+ tokens\) exceeds the maximum allowed length \(\d+ tokens\)"  # SGLang
    r"|requested token count exceeds the model'?s maximum context length"
    r"|`?inputs`? (?:tokens )?\+ `?max_new_tokens`? must be <= \d+"  # TGI
    r"|`?inputs`? must have less than \d+ tokens"  # TGI
    r"|input token count \(\d+\) exceeds the maximum number of tokens"  # Gemini
    r"|context length of \d+ tokens? (?:is )?exceeded"
    r"|the prompt \(total length \d+\) is too long to fit into the model \(context length \d+\)"  # vLLM, with images
    r"|input length \(\d+\) exceeds (?:the )?model'?s maximum context length \(\d+\)"  # SGLang
    r"|sum of prompt length \([\d.]+\)(?:,| and) query length \(\d+\),?(?: max_tokens \(\d+\))? should not exceed"
    r" max_(?:num_tokens|seq_len) \(\d+\)"  # TensorRT-LLM
    r"|prompt length (?:\+ number of draft tokens )?\(\d+(?: \+ \d+)?\) exceeds maximum input length \(\d+\)"  # TensorRT-LLM
    r"|trying to keep the first \d+ tokens when (?:the )?context (?:the )?overflows"  # LM Studio
    r"|tokens to keep from the initial prompt is greater than the context length"  # LM Studio
    r"|reached context length of \d+ tokens(?: with model|, but this model)"  # LM Studio, in the middle of an answer
    r"|context size has been exceeded"  # llama.cpp and LM Studio, likewise
    r"|prompt too long; exceeded (?:max )?context length by \d+ tokens"  # Ollama
    r"|the input length exceeds the context length(?!\w| \w)"  # Ollama
    r"|prompt too long: \d+ tokens exceeds max context window of \d+ tokens"  # oMLX
    r"|prompt has [\d,]+ tokens, but the configured context size is [\d,]+ tokens"
    r"|input length \d+ exceeds the maximum allowed input length of \d+ tokens"  # Poolside behind OpenRouter
    r"|length of prompt_tokens \(\d+\) must be less than max_seq_len \(\d+\)"  # SiliconFlow
    r"|too many tokens: total number of tokens (?:in the prompt|\(prompt and prediction\)) cannot exceed \d+"  # Cohere
    r"|too many tokens: (?:[\w -]+\()?size limit exceeded by \d+ tokens"  # Cohere
    r"|too many tokens: multi-hop prompt is too long even after truncation"  # Cohere
    r"|input tokens exceed the configured limit of \d+ tokens"  # OpenAI, Azure
    r"|your input exceeds the context window of this model"  # OpenAI, Responses
    r"|prompt token count of \d+ exceeds the limit of \d+"
    r"|(?:messages|completion)\. current length is \d+ while limit is \d+"  # Cerebras
    r"|your request exceeded model token limit: \d+"  # Kimi
    r"|invalid params, context window exceeds limit"  # MiniMax
    r"|range of input length should be \[\d+, \d+\]"  # Qwen
    r"|^prompt exceeds max length"  # GLM
    r"|^(?:[\w.]+Error: )*litellm\.ContextWindowExceededError\b",
    re.IGNORECASE,
)
_OVERFLOW_AS_500 = re.compile(r"the request exceeds the available context size")  # llama.cpp, some versions
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
    if status in (400, 413, 422, 500) and is_overflow(error, _message(error, body), status):
        return ContextOverflow(sentence)
    message = f"{what} {status}: {sentence}"
    if status == 429:
        return Failed("rate_limited", message)
    if status in (408, 504):
        return Failed("model_timeout", message)
    if 400 <= status < 500 and status not in (409, 425):
        return UpstreamError("model_refused", message, upstream_code=str(error.get("code") or error.get("type") or ""))
    return Failed("model_error", message)


def error_inside(value: Any, what: str, status: int = 200) -> Failed | ContextOverflow | None:
    """The failure that a 2xx with an error inside stands for, or None where there is none."""
    error = error_object(value)
    if error is None:
        return None
    message = str(error.get("message") or error)
    sentence = mask(_sentence(error, message))[:QUOTED_CHARACTERS]
    if is_overflow(error, message):
        return ContextOverflow(sentence)
    kind = "rate_limited" if str(error.get("code")) in ("429", "rate_limit_exceeded") else "model_error"
    return Failed(kind, f"{what} {status} with an error inside: {sentence}")


def overflow_within(failure: UpstreamError) -> bool:
    """Whether the error that a stream held says that the prompt is longer than the model takes."""
    error = failure.described
    return error is not None and is_overflow(error, str(error.get("message") or error))


def not_json(status: int, body: bytes, what: str, why: str) -> Failed:
    """The failure of an answer that should have been JSON."""
    shown = quote(body) if body else "an empty body"
    return Failed("model_invalid_response", f"{what} {status} with {why}: {shown}")


def is_overflow(error: dict[str, Any], message: str, status: int = 400) -> bool:
    """Whether the upstream says that the prompt is longer than the model takes.

    Args:
        error: Its error object. A code in it that names another fault settles the matter, whatever the message quotes, and so does one in
            an error that it passes on.
        message: Its own sentence, whole.
        status: 500 is believed only where it comes with a code, or with the sentence of a server that is known to answer so.
    """
    phrases = _OVERFLOW_AS_500 if status == 500 else _OVERFLOW
    for each, said in _passed_on(error, message):
        code, kind = (str(each.get(name) or "").strip().lower() for name in ("code", "type"))
        if code in _OVERFLOW_CODES or kind in _OVERFLOW_CODES:
            return True
        if _TEXT_TOO_LONG in (code, kind):
            param = each.get("param")
            return not param or _PROMPT.fullmatch(str(param)) is not None
        if not _SAYS_NOTHING.fullmatch(code):
            return False
        if phrases.search(said):
            return True
    return False


def quote(body: bytes) -> str:
    """The upstream's own sentence: its error message, or the first characters of whatever it sent; keys masked."""
    error = _error(body)
    text = _sentence(error, _message(error, body))
    return mask(text.strip()[: 4 * QUOTED_CHARACTERS])[:QUOTED_CHARACTERS] or "an empty body"


def mask(text: str, secrets: tuple[str, ...] = ()) -> str:
    """The text without anything that looks like a key, and without `secrets`."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "***")
    return _SECRET.sub("***", text)


def _message(error: dict[str, Any], body: bytes) -> str:
    """The error's own sentence, whole, or the body where it has none."""
    return str(error.get("message") or body[:MATCHED_CHARACTERS].decode(errors="replace"))


def _sentence(error: dict[str, Any], message: str) -> str:
    """What an error says, and behind it what the error says that it passes on."""
    return ": ".join(said for _, said in _passed_on(error, message) if said)


def _passed_on(error: dict[str, Any], message: str) -> list[tuple[dict[str, Any], str]]:
    """An error and those of the servers behind it, each with its own sentence: "" where that is the next error's JSON text."""
    found: list[tuple[dict[str, Any], str]] = []
    while len(found) < _NESTED:
        metadata = error.get("metadata")
        raw = metadata.get("raw") if isinstance(metadata, dict) else None  # OpenRouter
        inner = _described(raw or error.get("message"))
        found.append((error, "" if inner and not raw and inner.get("message") else message))
        if inner is None:
            return [*found, ({}, raw)] if isinstance(raw, str) else found
        error, message = inner, str(inner.get("message") or "")
    return found


def _described(value: Any) -> dict[str, Any] | None:
    """The error that a value or its JSON text is, or None where it is none."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = strict_json.loads(value)
        except strict_json.JSONError:
            return None
    return error_object(value) or (value if value and isinstance(value, dict) else None)


def _error(body: bytes) -> dict[str, Any]:
    """The object that describes the error in any of the usual shapes; {} where there is none."""
    try:
        value = strict_json.loads(body[:MATCHED_CHARACTERS])
    except strict_json.JSONError:
        return {}
    return error_object(value) or (value if isinstance(value, dict) else {})
