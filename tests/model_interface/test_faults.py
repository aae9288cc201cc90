"""What an upstream's words, codes and shapes mean (cases B03, B07): a too long prompt, or a failure of which kind."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from model_interface.faults import ContextOverflow, error_inside, overflow_within, refusal
from model_interface.retry import retry_after_s
from model_interface.translate import UpstreamError, error_sentence, raise_if_error
from wire.errors import Failed

JSON = dict[str, Any]
TOO_LONG = [
    "You passed 70 input tokens and requested 0 output tokens. However, the model's context length is only 64 tokens, resulting in …",
    "max_tokens must be at least 1, got 0",
    "max_tokens must be at least 1, got -17",
    "The prompt is too long: 70, model maximum context length: 64",
    "Input length (70 tokens) exceeds the maximum allowed length (64 tokens). Use a shorter input or enable --allow-auto-truncate.",
    "Input validation error: `inputs` must have less than 64 tokens. Given: 70",
    "the request exceeds the available context size, try increasing it",
    "request (70 tokens) exceeds the available context size (64 tokens), try increasing it",
    "Prompt contains 70 tokens and 0 draft tokens, too large for model with 64 maximum context length",
    "This model's maximum prompt length is 64 but the request contains 70 tokens.",
    "input length and `max_tokens` exceed context limit: 70 + 10 > 64, decrease input length or `max_tokens` and try again",
    "Input is too long for requested model.",
    "The prompt (total length 70) is too long to fit into the model (context length 64). Make sure that `max_model_len` is no smaller …",
    "Input length (70) exceeds model's maximum context length (64).",
    "The sum of prompt length (70.0), query length (0) should not exceed max_num_tokens (64)",
    "The sum of prompt length (40) and query length (0) max_tokens (30) should not exceed max_seq_len (64)",
    "Prompt length (70) exceeds maximum input length (64). Set log level to info and check TRTGptModel logs for …",
    "Prompt length + number of draft tokens (60 + 10) exceeds maximum input length (64).",
    "Trying to keep the first 70 tokens when context the overflows. However, the model is loaded with context length of only 64 tokens, …",
    "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 70>= n_ctx: 64). Try to load …",
    "Reached context length of 64 tokens with model (arch: gpt-oss) that does not currently support mid-generation context overflow.",
    "Context size has been exceeded.",
    "prompt too long; exceeded max context length by 6 tokens",
    "the input length exceeds the context length",
    "Prompt too long: 70 tokens exceeds max context window of 64 tokens",
    "This endpoint's maximum context length is 64 tokens. However, you requested about 70 tokens (65 of text input, 5 in the output).",
    "Input length 70 exceeds the maximum allowed input length of 64 tokens.",
    "The input (70 tokens) is longer than the model's context length (64 tokens).",
    "length of prompt_tokens (70) must be less than max_seq_len (64).",
    "too many tokens: total number of tokens in the prompt cannot exceed 64 - received 70. Try using a shorter prompt, …",
    "too many tokens: total number of tokens (prompt and prediction) cannot exceed 64 - received 70.",
    "too many tokens: size limit exceeded by 6 tokens. Try using shorter or fewer inputs. The limit for this model is 64 tokens.",
    "too many tokens: minimal context could not be added to prompt (size limit exceeded by 6 tokens)",
    "Input tokens exceed the configured limit of 64 tokens. Your messages resulted in 70 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "prompt token count of 70 exceeds the limit of 64",
    "Please reduce the length of the messages or completion. Current length is 70 while limit is 64",
    "Invalid request: Your request exceeded model token limit: 64 (requested: 70)",
    "invalid params, context window exceeds limit (2013)",
    "Range of input length should be [1, 64]",
    "Prompt has 1,070 tokens, but the configured context size is 1,064 tokens",
    "litellm.ContextWindowExceededError: OpenAIException - prompt",
    "litellm.BadRequestError: litellm.ContextWindowExceededError: prompt",
]
OTHER = [
    "max_tokens is too large: 100000. This model supports at most 4096 completion tokens",
    "image exceeds the maximum context length limit",
    "the prompt is too long: it must have a title",
    "inputs must have less than 64 characters",
    "the reply is too long for requested model",
    "messages[0]: 'litellm.ContextWindowExceededError' is not allowed",
    "too many tokens: max tokens must be less than or equal to 4096, the maximum output length for this model - received 8192.",
    "too many tokens, please wait before trying again",
    "file size limit exceeded by 6 bytes",
    "Encoder length (70) exceeds maximum encoder input length (64).",
    "tools[0].description exceeds maximum input length (1024)",
    "the sum of the weights should not exceed max_num_tokens (64)",
    "the model is loaded with context length of only 64 tokens, which cannot be changed",
    "num_ctx: the context length must be a positive integer",
    "the input length exceeds the context length limit of the embedding model",
    "image token count of 70 exceeds the limit of 64",
    "max_tokens exceeds the limit of 64",
    "Range of temperature should be [0, 2]",
    "context_window is not a known parameter",
    "the name 'prompt exceeds max length' is taken",
]


def refused(status: int, body: Any) -> Failed | ContextOverflow:
    return refusal(status, body if isinstance(body, bytes) else json.dumps(body).encode(), "x answered")


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("message", TOO_LONG)
def test_a_servers_words_for_a_prompt_that_is_too_long(status: int, message: str) -> None:
    """In every shape of an error, behind any prefix, and inside a 200."""
    shapes: list[JSON | list[JSON]] = [
        {"error": {"message": message, "type": "BadRequestError", "code": status}},
        {"error": {"message": message, "type": None, "code": "invalid_request_error"}},
        {"object": "error", "message": message, "code": "3051"},
        {"error": message, "code": "Client specified an invalid argument"},
        [{"error": {"message": message, "status": "INVALID_ARGUMENT"}}],
    ]
    for shape in shapes:
        assert isinstance(refused(status, shape), ContextOverflow), shape
        assert isinstance(error_inside(shape, "x answered"), ContextOverflow), shape
    assert isinstance(refused(status, {"message": message}), ContextOverflow)
    if "litellm" not in message:
        found = refused(status, {"error": {"message": "gateway: " + "x" * 1000 + " " + message}})
        assert isinstance(found, ContextOverflow) and len(str(found)) <= 200


@pytest.mark.parametrize("message", OTHER)
def test_words_like_those_are_not_enough(message: str) -> None:
    """A refused request, not the end of an episode."""
    found = refused(400, {"error": {"message": message, "code": 400}})
    assert isinstance(found, Failed) and found.kind == "model_refused"


TOO_LONG_INSIDE = {"error": {"message": TOO_LONG[0], "type": "Bad Request", "code": 400}}
ONLY_A_CODE = {"error": {"message": "too long", "code": "context_length_exceeded"}}


@pytest.mark.parametrize(
    "error",
    [
        {
            "message": "Provider returned error",
            "code": 400,
            "metadata": {"raw": json.dumps(TOO_LONG_INSIDE), "provider_name": "Nvidia"},
        },
        {"message": "Provider returned error", "code": 400, "metadata": {"raw": json.dumps(ONLY_A_CODE)}},
        {"message": "Provider returned error", "code": 400, "metadata": {"raw": ONLY_A_CODE}},
        {"message": "Provider returned error", "code": 400, "metadata": {"raw": TOO_LONG[0]}},
        {"message": "Provider returned error", "code": 400, "metadata": {"raw": json.dumps([TOO_LONG_INSIDE])[1:-1]}},
        {"message": json.dumps(TOO_LONG_INSIDE), "code": "Bad Request"},
        {"message": json.dumps(ONLY_A_CODE), "type": "provider_response_error"},
        {"message": json.dumps({"error": {"message": json.dumps(ONLY_A_CODE)}}), "type": "api_error"},
    ],
)
def test_an_error_that_a_gateway_passes_on_is_read(error: JSON) -> None:
    """OpenRouter's `metadata.raw`, as text or an object, and errors whose message is JSON; the failure quotes the inner sentence."""
    assert isinstance(error_inside({"error": error}, "x answered"), ContextOverflow)
    found = refused(400, {"error": error})
    assert isinstance(found, ContextOverflow)
    assert "too long" in str(found) or "context length is only 64 tokens" in str(found)


@pytest.mark.parametrize(
    "error",
    [
        {
            "message": "Provider returned error",
            "code": 400,
            "metadata": {"raw": json.dumps({"error": {"message": "no such tool"}})},
        },
        {"message": "Provider returned error", "code": 400, "metadata": {"raw": "no such tool"}},
        {"message": "no such tool", "code": 400, "metadata": {"provider_name": None, "raw": None}},
        {"message": "no such tool", "code": 400, "metadata": "context"},
        {
            "message": json.dumps({"error": {"message": TOO_LONG[0] + " no such tool", "code": "invalid_value"}}),
            "code": 400,
        },
        {"message": "no such tool", "code": "invalid_value", "metadata": {"raw": json.dumps(TOO_LONG_INSIDE)}},
        {"message": json.dumps({"tool": "no such tool"})},
        {"tool": "no such tool"},
    ],
)
def test_another_fault_that_a_gateway_passes_on_stays_one(error: JSON) -> None:
    """In the inner server's words; a code that names another fault settles it, inside as outside."""
    found = refused(400, {"error": error})
    assert isinstance(found, Failed) and found.kind == "model_refused"
    assert "no such tool" in str(found) or "context length is only" in str(found)
    assert not isinstance(error_inside({"error": error}, "x answered"), ContextOverflow)


def test_errors_within_errors_without_end_are_not_followed() -> None:
    """Four are looked into."""
    error: JSON = {"message": TOO_LONG[0]}
    for _ in range(20):
        error = {"message": "Provider returned error", "metadata": {"raw": error}}
    assert isinstance(refused(400, {"error": error}), Failed)


@pytest.mark.parametrize("code", ["context_length_exceeded", "CONTEXT_LENGTH_EXCEEDED", "exceed_context_size_error"])
@pytest.mark.parametrize("field", ["code", "type"])
def test_a_code_is_believed_under_500_and_inside_a_200(code: str, field: str) -> None:
    """Whatever its case and wherever the error object stands; under 401 it is not."""
    error = {"message": "too long", field: code}
    for status in (400, 413, 422, 500):
        assert isinstance(refused(status, {"error": error}), ContextOverflow)
    for body in (
        {"error": error},
        {"error": [error]},
        [{"error": error}],
        {"errors": [error]},
        {"object": "error", **error},
    ):
        assert isinstance(error_inside(body, "x answered"), ContextOverflow)
        with pytest.raises(UpstreamError) as raised:
            raise_if_error(body)
        assert overflow_within(raised.value)
    assert not isinstance(refused(401, {"error": error}), ContextOverflow)


@pytest.mark.parametrize(
    ("message", "overflow"),
    [("the request exceeds the available context size, try increasing it", True), ("prompt is too long: 70 tokens > 64", False)],
)  # fmt: skip
def test_words_under_500_are_llama_cpps_alone(message: str, overflow: bool) -> None:
    """Any other sentence under 500 is a failure that may pass."""
    found = refused(500, {"error": {"message": message, "code": 500, "type": "invalid_request_error"}})
    assert isinstance(found, ContextOverflow) is overflow


@pytest.mark.parametrize(
    ("error", "overflow"),
    [
        ({"code": "string_above_max_length", "param": "messages[1].content"}, True),
        ({"code": "string_above_max_length", "param": "messages.[1].content[0].text"}, True),
        ({"code": "string_above_max_length", "param": "input"}, True),
        ({"code": "string_above_max_length", "param": "input[4].output"}, True),
        ({"code": "string_above_max_length", "param": "prompt"}, True),
        ({"code": "string_above_max_length", "param": None}, True),
        ({"code": "string_above_max_length"}, True),
        ({"code": "string_above_max_length", "param": "tools[0].function.description"}, False),
        ({"code": "string_above_max_length", "param": "input[4].call_id"}, False),
        ({"code": "string_above_max_length", "param": "prompt_cache_key"}, False),
        ({"code": "invalid_function_parameters"}, False),
        ({"code": "invalid_value"}, False),
        ({"code": "unsupported_parameter", "type": "invalid_request_error"}, False),
        ({"code": None, "type": "invalid_request_error"}, True),
        ({"code": "invalid_request_error"}, True),
    ],
)
def test_a_code_that_names_another_fault_settles_it(error: JSON, overflow: bool) -> None:
    """However much its message quotes the words for a prompt that is too long."""
    body = {"error": {"message": "'maximum context length is 64 tokens' is not allowed", **error}}
    assert isinstance(refused(400, body), ContextOverflow) is overflow
    assert isinstance(error_inside(body, "x answered"), ContextOverflow) is overflow


@pytest.mark.parametrize(
    "body",
    [
        [{"error": {"message": "overloaded", "code": 503}}],
        {"error": [{"message": "overloaded"}]},
        {"error": "overloaded"},
        {"error": True, "message": "overloaded"},
        {"errors": [{"message": "overloaded"}]},
        {"errors": ["overloaded"]},
        {"code": 503, "message": "overloaded"},
        {"code": "server_busy", "message": "overloaded"},
        {"success": False, "message": "overloaded"},
        {"success": False, "reason": "overloaded"},
        {"detail": "overloaded"},
    ],
)
def test_an_error_inside_a_200_is_seen_in_every_shape(body: Any) -> None:
    """`model_error`, with the server's own sentence."""
    failure = error_inside(body, "x answered")
    assert isinstance(failure, Failed) and failure.kind == "model_error"
    assert "overloaded" in str(failure)
    assert "overloaded" in (error_sentence(body) or [""])[0]


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [], "success": False},
        {"choices": [], "code": 1, "message": "fine", "errors": ["x"], "error": None},
        {"output": [], "error": None, "errors": []},
        {"code": 0, "message": "fine"},
        {"code": 200, "message": "fine"},
        {"data": []},
        [1, 2],
        [],
        None,
    ],
)
def test_an_answer_is_no_error(body: Any) -> None:
    """Fields beside an answer, and codes that mean success, are nobody's failure."""
    assert error_inside(body, "x answered") is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("2", 2), ("002", 2), ("1.5", 1.5), (" 1 ", 1), ("1_0", None), ("2e0", None), ("+1", None), ("0x2", None), ("1.", None),
     (".5", None), ("١", None), ("nan", None), ("inf", None), ("9" * 400, None), ("0", None), ("1, 1", None),
     ("Thu, 01 Jan 2026 00:00:03 GMT", 3)],
)  # fmt: skip
def test_retry_after_is_digits_or_a_date(value: str, seconds: float | None) -> None:
    """What Python alone would take for a number asks for nothing."""
    assert retry_after_s(value, datetime(2026, 1, 1, tzinfo=UTC)) == seconds
