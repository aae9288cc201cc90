"""A chat completion as a Responses object: every way in which servers say that they are done, and where the answer is.

`output` is, in this order: a reasoning item, a message, the function calls; each only where the server gave it. What the model said is kept
to the byte (argument text, names); only call ids are made up where they are missing, or changed where they would not be unique.
"""

import json
import os
import time
from collections.abc import Collection, Iterator
from typing import Any

from model_interface.translate.errors import UpstreamError, raise_if_error
from model_interface.translate.parameters import LOGPROBS
from model_interface.translate.reasoning import Reasoning, reasoning_field, split_thoughts
from wire import strict_json

Item = dict[str, Any]

INCOMPLETE = {
    "length": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "model_length": "max_output_tokens",  # Mistral
    "max_output_tokens": "max_output_tokens",
    "token_limit": "max_output_tokens",
    "model_context_window_exceeded": "context_window",  # Anthropic, GLM
    "context_window": "context_window",
    "context_length_exceeded": "context_window",
    "content_filter": "content_filter",
    "content-filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "spii": "content_filter",  # Gemini
    "sensitive": "content_filter",  # GLM
    "guardrail_intervened": "content_filter",  # Bedrock
    "refusal": "content_filter",  # Anthropic
}
"""Finish reasons that are not the model's own end; any other one, known or not, is `completed`."""

CUT = frozenset({"max_output_tokens", "context_window"})
"""Of those reasons, the ones that stop a model in the middle of a word."""

BROKEN = frozenset({"error", "abort", "insufficient_system_resource"})
"""Finish reasons with which a server says that it failed. Sources: OpenRouter, vLLM and SGLang, DeepSeek."""

ECHOED = (
    "model", "instructions", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p", "max_output_tokens", "metadata",
    "previous_response_id", "reasoning", "text", "truncation", "user", "store", "service_tier", "top_logprobs", "max_tool_calls",
)  # fmt: skip
MOST_TOKENS = 2**53  # that a server may count: beyond it JSON's readers differ
DEFAULTS: dict[str, Any] = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "metadata": {}}
"""What OpenAI's client expects in every response."""

_NOTHING = object()  # behind a closing bracket


def chat_to_response(
    body: Any,
    request: dict[str, Any],
    *,
    reasoning: Reasoning = "auto",
    taken: Collection[str] = (),
    response_id: str | None = None,
) -> dict[str, Any]:
    """The Responses object for a chat completion.

    Args:
        body: The parsed answer of the server.
        request: Parameters that the response echoes; give `{}` to a caller that knows what it asked, so that bytes do not grow.
        reasoning: Where thoughts are looked for; see `reasoning`.
        taken: Call ids that new ones must differ from.
        response_id: Its id; a new one unless given.

    Raises:
        UpstreamError: `model_error` for an error inside a 200, `model_invalid_response` for what is no answer.
    """
    output, reason = answer_items(body, request, reasoning=reasoning, taken=taken)
    return response_object(
        output,
        request,
        reason=reason,
        usage=usage_of(body.get("usage")),
        model=body.get("model"),
        response_id=response_id,
    )


def answer_items(
    body: Any, request: dict[str, Any], *, reasoning: Reasoning = "auto", taken: Collection[str] = ()
) -> tuple[list[Item], str | None]:
    """The items of a chat completion, and why it is incomplete (None: it is not). Arguments and errors as `chat_to_response`."""
    choice, message = answer_of(body)
    finish = finish_reason(choice)
    reason = INCOMPLETE.get(finish)
    thoughts, text, refusal = parts_of(message, reasoning, cut=reason in CUT)
    calls = calls_of(message, taken)
    output: list[Item] = [reasoning_item(thoughts)] if thoughts else []
    if text or refusal or not (thoughts or calls or reason):
        output.append(message_item(text, refusal, _logprobs(choice, request)))
    output += calls
    if reason is not None and output:
        output[-1]["status"] = "incomplete"  # what was being said when it ended
    return output, reason


def response_object(
    output: list[Item],
    request: dict[str, Any],
    *,
    reason: str | None = None,
    usage: dict[str, Any] | None = None,
    model: str | None = None,
    response_id: str | None = None,
    created_at: int | None = None,
) -> dict[str, Any]:
    """A Responses object around finished items; `reason` says why it is incomplete (`context_window`, …), None that it is not."""
    response: dict[str, Any] = {
        "id": response_id or new_id("resp"),
        "object": "response",
        "created_at": created_at if created_at is not None else int(time.time()),
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "output": output,
        **DEFAULTS,
    }
    for name in ECHOED:
        if request.get(name) is not None:
            response[name] = request[name]
    response["model"] = model if isinstance(model, str) else request.get("model") or ""
    response["usage"] = usage
    return response


def answer_of(body: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(choice, message) of a chat completion.

    Raises:
        UpstreamError: there is none.
    """
    raise_if_error(body)
    choices = body.get("choices") if isinstance(body, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise UpstreamError(
            "model_invalid_response", f"the model server's answer has no choices[0].message: {_quote(body)}"
        )
    return choice, message


def finish_reason(choice: dict[str, Any]) -> str:
    """The finish reason in lower case, "" where there is none.

    Raises:
        UpstreamError: the server says by it that it failed.
    """
    finish = choice.get("finish_reason")
    if isinstance(finish, dict):  # SGLang's own form
        finish = finish.get("type")
    name = finish.lower() if isinstance(finish, str) else ""
    if name in BROKEN:
        raise UpstreamError("model_error", f"the model server ended the answer with finish_reason {finish!r}")
    return name


def parts_of(message: dict[str, Any], setting: Reasoning, *, cut: bool) -> tuple[str, str, str]:
    """(thoughts, text, refusal) of a chat message, whether its content is a string, a list of parts or nothing."""
    content = message.get("content")
    thoughts, refused = reasoning_field(message), refusal_text(message.get("refusal"))
    if isinstance(content, dict):
        content = [content]
    if isinstance(content, list):
        text, thought, more = _parts(content)
        thoughts, refused = thoughts or thought, refused or more
    elif content is None or isinstance(content, str):
        text = content or ""
    else:
        raise UpstreamError(
            "model_invalid_response", f"the answer's content is neither text nor a list of parts: {_quote(content)}"
        )
    if not thoughts:
        thoughts, text = split_thoughts(text, setting, cut=cut)
    return thoughts, text, refused


def _parts(content: list[Any]) -> tuple[str, str, str]:
    text, thoughts, refusal = "", "", ""
    for part in content:
        kind = part.get("type") or ("text" if "text" in part else None) if isinstance(part, dict) else None
        if part is None:
            continue
        if isinstance(part, str):
            text += part
        elif kind in ("text", "output_text") and isinstance(part.get("text"), str | None):
            text += part.get("text") or ""
        elif kind == "refusal":
            refusal += refusal_text(part.get("refusal"))
        elif kind in ("thinking", "reasoning"):  # Mistral's thinking is a list of text parts
            inner = part.get("thinking") or part.get("reasoning") or part.get("text") or ""
            thoughts += inner if isinstance(inner, str) else _parts(inner)[0] if isinstance(inner, list) else ""
        else:
            raise UpstreamError(
                "model_invalid_response", f"the answer has a content part of unknown type: {_quote(part)}"
            )
    return text, thoughts, refusal


def refusal_text(refusal: Any) -> str:
    """A refusal as text, "" where there is none: some servers send a list of parts or an object."""
    if isinstance(refusal, str):
        return refusal
    if isinstance(refusal, list):
        return "".join(map(refusal_text, refusal))
    if not isinstance(refusal, dict) or not refusal:
        return ""
    said = next((refusal[name] for name in ("refusal", "text", "content", "message") if refusal.get(name)), None)
    return refusal_text(said) or argument_text(refusal)


def calls_of(message: dict[str, Any], taken: Collection[str] = ()) -> list[Item]:
    """The function_call items of a chat message, the old `function_call` form included."""
    raw = message.get("tool_calls")
    if raw is None or raw == []:  # some servers send an empty list beside the old form
        old = message.get("function_call")
        raw = [{"function": old}] if isinstance(old, dict) else []
    if not isinstance(raw, list):
        raise UpstreamError("model_invalid_response", f"the answer's tool_calls is no list: {_quote(raw)}")
    if not raw:
        return []
    ids: set[str] = set()
    return [_call(each, ids, taken) for each in raw]


def _call(raw: Any, ids: set[str], taken: Collection[str]) -> Item:
    function = raw.get("function") if isinstance(raw, dict) else None
    if not isinstance(function, dict):
        raise UpstreamError("model_invalid_response", f"the answer has a tool call without a function: {_quote(raw)}")
    return call_item(
        unique_id(raw.get("id"), ids, taken),
        name_text(function["name"]) if "name" in function else "",
        argument_text(function.get("arguments")),
    )


def name_text(name: Any) -> str:
    """A call's name as text: of what is no string its JSON, so that the record shows what the model said and the model hears of it."""
    return name if isinstance(name, str) else _written(name)


def argument_text(arguments: Any) -> str:
    """A call's arguments as text: the model's own where it is text, JSON where a server has parsed it, "{}" for null.

    A number such as 1e999 has become an infinity: it is written as `Infinity`, which is no JSON, so that the model hears of it.
    """
    if isinstance(arguments, str):
        return arguments
    return "{}" if arguments is None else _written(arguments)


def _written(value: Any) -> str:
    """A parsed value as JSON again, infinities and any nesting included."""
    try:
        return strict_json.dumps(value).decode()
    except strict_json.JSONError:
        return "".join(_pieces(value))


def _pieces(value: Any) -> Iterator[str]:
    """The same without recursion, for what goes over the bounds of JSON writers."""
    todo: list[tuple[str, Any]] = [("", value)]  # from the last on: text, and a value that follows it
    while todo:
        text, value = todo.pop()
        yield text
        if value and isinstance(value, dict | list):
            opening, closing = "{}" if isinstance(value, dict) else "[]"
            inside = (
                [(f"{json.dumps(key)}: ", value[key]) for key in value]
                if opening == "{"
                else [("", each) for each in value]
            )
            todo.append((closing, _NOTHING))
            todo += [((", " if n else opening) + head, each) for n, (head, each) in enumerate(inside)][::-1]
        elif value is not _NOTHING:
            yield json.dumps(value)


def unique_id(call_id: Any, ids: set[str], taken: Collection[str] = ()) -> str:
    """The call id, or another one where it is empty, or in `ids` or `taken`; it is added to `ids`, and `taken` is not copied."""
    if not isinstance(call_id, str) or not call_id:
        call_id = new_id("call")
    chosen: str = call_id
    number = 2
    while chosen in ids or chosen in taken:
        chosen, number = f"{call_id}_{number}", number + 1
    ids.add(chosen)
    return chosen


def call_item(call_id: str, name: str, arguments: str, status: str = "completed") -> Item:
    """A function_call item."""
    return {
        "type": "function_call", "id": new_id("fc"), "call_id": call_id, "name": name, "arguments": arguments, "status": status,
    }  # fmt: skip


def reasoning_item(thoughts: str) -> Item:
    """A reasoning item that holds the thoughts themselves."""
    content = [{"type": "reasoning_text", "text": thoughts}]
    return {"type": "reasoning", "id": new_id("rs"), "summary": [], "content": content, "status": "completed"}


def message_item(text: str, refusal: str, logprobs: list[Any], reason: str | None = None) -> Item:
    """An assistant message with its text, its refusal, or both; `reason` says why it is incomplete."""
    content: list[Item] = []
    if text or not refusal:
        content.append({"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs})
    if refusal:
        content.append({"type": "refusal", "refusal": refusal})
    status = "incomplete" if reason else "completed"
    return {"type": "message", "id": new_id("msg"), "role": "assistant", "status": status, "content": content}


def usage_of(usage: Any) -> dict[str, Any] | None:
    """Responses usage from chat usage; None where the server gave none."""
    if not isinstance(usage, dict):
        return None
    prompt, completion = count_of(usage.get("prompt_tokens")), count_of(usage.get("completion_tokens"))
    prompt_details, completion_details = (
        _dict(usage.get("prompt_tokens_details")),
        _dict(usage.get("completion_tokens_details")),
    )
    cached = prompt_details.get("cached_tokens")
    if cached is None:
        cached = usage.get("prompt_cache_hit_tokens")  # DeepSeek
    thought = completion_details.get("reasoning_tokens")
    if thought is None:
        thought = usage.get("reasoning_tokens")  # SGLang
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": count_of(cached)},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": count_of(thought)},
        "total_tokens": count_of(usage.get("total_tokens")) or prompt + completion,
    }


def _logprobs(choice: dict[str, Any], request: dict[str, Any]) -> list[Any]:
    """Log-probs of all generated tokens, where the caller asked to see them."""
    return logprobs_of(choice) if wants_scores(request) else []


def wants_scores(request: dict[str, Any]) -> bool:
    """Whether the caller asked to see the log-probs of what the model says."""
    return request.get("top_logprobs") is not None or LOGPROBS in (request.get("include") or ())


def logprobs_of(choice: dict[str, Any]) -> list[Any]:
    """The log-probs of a chat choice in the form of an output_text part."""
    content = _dict(choice.get("logprobs")).get("content")
    return (
        [{"top_logprobs": [], **each} for each in content if isinstance(each, dict)]
        if isinstance(content, list)
        else []
    )


def new_id(prefix: str) -> str:
    """An id with 96 random bits."""
    return f"{prefix}_{os.urandom(12).hex()}"


def count_of(value: Any) -> int:
    """A server's count of tokens; 0 for what is none, since one absurd number would stay in every sum after it."""
    return int(value) if type(value) in (int, float) and 0 <= value <= MOST_TOKENS else 0


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _quote(value: Any) -> str:
    try:
        return str(strict_json.dumps(value), "utf-8")[:200]
    except strict_json.JSONError:
        return repr(value)[:200]
