"""Clients that speak Chat or Messages: what they ask arrives whole in our form, and what has no counterpart is refused by its place."""

from typing import Any

import pytest

from model_interface.translate import (
    InvalidRequest,
    chat_request_to_responses,
    chat_to_response,
    check_items,
    check_request,
    error_body,
    items_to_messages,
    messages_request_to_responses,
    request_to_chat,
    response_to_chat,
    response_to_messages,
)
from wire.errors import Failed, Overloaded, Unauthorized
from wire.testing.upstream import MSG, TC

JSON = dict[str, Any]
HI = [{"role": "user", "content": "hi"}]
FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}


def both_ways(chat: JSON) -> JSON:
    """A chat request through our form and out to a chat server."""
    request = chat_request_to_responses(chat)
    check_request(request)
    check_items(request["input"])
    return request_to_chat(request) | {"messages": items_to_messages(request["input"], request.get("instructions"))}


@pytest.mark.parametrize(
    "fields",
    [
        {
            "temperature": 0.5,
            "top_p": 0.9,
            "max_tokens": 7,
            "stop": ["x"],
            "seed": 3,
            "presence_penalty": 0.1,
            "logit_bias": {"1": 2},
        },
        {
            "tools": [{"type": "function", "function": FUNCTION}],
            "tool_choice": "required",
            "parallel_tool_calls": False,
        },
        {
            "tools": [{"type": "function", "function": FUNCTION}],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
        },
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
            }
        },
        {"response_format": {"type": "json_object"}, "reasoning_effort": "low", "verbosity": "high"},
        {
            "logprobs": True,
            "top_logprobs": 3,
            "user": "u",
            "top_k": 5,
            "chat_template_kwargs": {"enable_thinking": False},
        },
    ],
)
def test_a_chat_request_arrives_as_it_was(fields: JSON) -> None:
    """Through the Responses form and back: every parameter under its own name."""
    chat = {"model": "m", "messages": HI, **fields}
    assert both_ways(chat) == chat


def test_what_is_only_about_the_delivery_is_left_out() -> None:
    """`stream`, `store`, `n: 1`, nulls."""
    chat = {
        "messages": HI,
        "n": 1,
        "stream": True,
        "stream_options": {"include_usage": True},
        "store": False,
        "temperature": None,
    }
    assert both_ways({**chat, "max_completion_tokens": 7, "max_tokens": None}) == {"messages": HI, "max_tokens": 7}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokns": 5}, "max_tokns"),
        ({"n": 2}, "n"),
        ({"functions": [{}]}, "functions"),
        ({"audio": {}}, "audio"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tol", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": "x", "colour": "red"}]}, "messages[0].colour"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "video_url"}]}]}, "messages[0].content[0]"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "b": 1}]}]},
            "messages[0].content[0].b",
        ),
        ({"messages": [{"role": "assistant", "function_call": {"name": "f"}}]}, "messages[0].function_call"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}]}, "messages[0].tool_calls[0]"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
        ({"tools": [{"type": "custom"}]}, "tools[0]"),
        ({"tool_choice": {"type": "custom"}}, "tool_choice"),
        ({"response_format": {"type": "grammar"}}, "response_format"),
    ],
)
def test_a_chat_request_is_refused_by_its_place(fields: JSON, param: str) -> None:
    """In the client's own words."""
    with pytest.raises(InvalidRequest) as caught:
        chat_request_to_responses({"messages": HI, **fields})
    assert caught.value.param == param


def test_a_chat_answer_says_what_the_response_says() -> None:
    """Text, thoughts, calls in the model's own bytes, finish reason, usage with its details."""
    body = TC(("a", "f", '{ "x": 1 }'), text="see", reasoning="t")
    body["usage"] |= {"prompt_tokens_details": {"cached_tokens": 3}}
    chat = response_to_chat(chat_to_response(body, {}))
    message = chat["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("see", "t")
    assert message["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{ "x": 1 }'}}
    ]
    assert chat["choices"][0]["finish_reason"] == "tool_calls"
    assert chat["usage"]["prompt_tokens_details"]["cached_tokens"] == 3


@pytest.mark.parametrize(
    ("answer", "finish", "stop"),
    [
        (MSG("x"), "stop", "end_turn"),
        (MSG("x", finish="length"), "length", "max_tokens"),
        (MSG("x", finish="content_filter"), "content_filter", "refusal"),
        (MSG(None, refusal="No."), "stop", "refusal"),
        (TC(("a", "f", "{}")), "tool_calls", "tool_use"),
        (TC(("a", "f", '{"x'), finish="length"), "length", "max_tokens"),
    ],
)
def test_why_it_ended_is_told_in_each_dialect(answer: JSON, finish: str, stop: str) -> None:
    """A cut call is not passed off as one to run."""
    response = chat_to_response(answer, {})
    assert response_to_chat(response)["choices"][0]["finish_reason"] == finish
    assert response_to_messages(response)["stop_reason"] == stop


def test_a_context_that_is_full_is_told_in_each_dialect() -> None:
    """The model interface answers 200 with this."""
    response = {"output": [], "incomplete_details": {"reason": "context_window"}}
    assert response_to_chat(response)["choices"][0]["finish_reason"] == "length"
    assert response_to_messages(response)["stop_reason"] == "model_context_window_exceeded"


MESSAGES: JSON = {
    "model": "m",
    "max_tokens": 7,
    "system": [{"type": "text", "text": "Be", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "brief."}],
    "stop_sequences": ["x"],
    "temperature": 0.5,
    "top_k": 5,
    "metadata": {"user_id": "u"},
    "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "see "},
                                     {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "I see"},
                                          {"type": "tool_use", "id": "a", "name": "f", "input": {"n": 123456789012345678901234567890}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "ok"}]},
                                     {"type": "text", "text": "go on"}]},
    ],
}  # fmt: skip


def test_a_messages_request_arrives_at_a_chat_server() -> None:
    """System prompt, image, thoughts, calls with every digit, results before words, tools, limits."""
    request = messages_request_to_responses(MESSAGES)
    check_request(request)
    check_items(request["input"])
    chat = request_to_chat(request)
    system, asked, called, result, more = items_to_messages(request["input"], request["instructions"])
    assert (chat["max_tokens"], chat["stop"], chat["top_k"], chat["user"]) == (7, ["x"], 5, "u")
    assert (chat["tool_choice"], chat["parallel_tool_calls"]) == ("required", False)
    assert chat["tools"] == [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
    ]
    assert system == {"role": "system", "content": "Be\n\nbrief."}
    assert asked["content"][1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}
    assert (called["content"], called["reasoning_content"]) == ("I see", "t")
    assert called["tool_calls"][0]["function"]["arguments"] == '{"n":123456789012345678901234567890}'
    assert result == {"role": "tool", "tool_call_id": "a", "content": "ok"}
    assert more == {"role": "user", "content": "go on"}


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"reasoning": {"effort": "low"}}),
        ({"thinking": {"type": "enabled", "budget_tokens": 4096}}, {"reasoning": {"effort": "medium"}}),
        ({"thinking": {"type": "enabled", "budget_tokens": 32000}}, {"reasoning": {"effort": "high"}}),
        ({"thinking": {"type": "disabled"}}, {}),
        ({"output_config": {"effort": "medium"}}, {"reasoning": {"effort": "medium"}}),
        ({"output_config": {"format": {"type": "json_schema", "schema": {}}}},
         {"text": {"format": {"type": "json_schema", "name": "answer", "schema": {}}}}),
        ({"tool_choice": {"type": "tool", "name": "f"}}, {"tool_choice": {"type": "function", "name": "f"}}),
        ({"tool_choice": {"type": "none"}}, {"tool_choice": "none"}),
    ],
)  # fmt: skip
def test_anthropics_own_parameters_have_ours(fields: JSON, wanted: JSON) -> None:
    """Thinking budgets, structured output, forced tools."""
    request = messages_request_to_responses({"messages": HI, **fields})
    del request["input"]
    assert request == wanted


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokns": 5}, "max_tokns"),
        ({"container": "c"}, "container"),
        ({"system": [{"type": "image"}]}, "system[0]"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0]"),
        ({"tools": [{"name": "f", "input_schema": {}, "input_examples": [{}]}]}, "tools[0].input_examples"),
        ({"tool_choice": {"type": "some"}}, "tool_choice.type"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"type": "search_result"}]}]}, "messages[0].content[0]"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "b": 1}]}]},
            "messages[0].content[0].b",
        ),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, "messages[0].content[0].tool_use_id"),
        (
            {"messages": [{"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]}]},
            "messages[0].content[0]",
        ),
        (
            {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f"}]}]},
            "messages[0].content[0]",
        ),
        ({"output_config": {"format": {"type": "x"}}}, "output_config.format"),
    ],
)
def test_a_messages_request_is_refused_by_its_place(fields: JSON, param: str) -> None:
    """In the client's own words."""
    with pytest.raises(InvalidRequest) as caught:
        messages_request_to_responses({"messages": HI, **fields})
    assert caught.value.param == param


def test_a_message_says_what_the_response_says() -> None:
    """Thoughts, text, inputs as objects, tokens from the cache counted apart; a bad input is shown, not dropped."""
    body = TC(("a", "f", '{"x": 1}'), ("b", "g", "{bad"), text="see", reasoning="t")
    body["usage"] |= {"prompt_tokens_details": {"cached_tokens": 3}}
    message = response_to_messages(chat_to_response(body, {}))
    assert [block["type"] for block in message["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block["input"] for block in message["content"][2:]] == [{"x": 1}, {"invalid_arguments": "{bad"}]
    assert (message["usage"]["input_tokens"], message["usage"]["cache_read_input_tokens"]) == (17, 3)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InvalidRequest("no"), "invalid_request_error"),
        (Unauthorized("no"), "authentication_error"),
        (Failed("rate_limited", "no"), "rate_limit_error"),
        (Overloaded("no"), "overloaded_error"),
        (Failed("model_error", "no"), "api_error"),
    ],
)
def test_errors_in_anthropics_words(error: Any, kind: str) -> None:
    """By which its client picks the exception."""
    body = error_body(error)
    assert (body["type"], body["error"]["type"], body["error"]["message"]) == ("error", kind, "no")
