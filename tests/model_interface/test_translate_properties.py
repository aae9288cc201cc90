"""Round trips and promises that hold for every conversation, not only for those somebody thought of."""

import contextlib
import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from model_interface.translate import (
    InvalidRequest,
    MessageBuilder,
    UpstreamError,
    chat_request_to_responses,
    chat_to_response,
    check_items,
    check_request,
    items_to_messages,
    messages_request_to_responses,
    messages_to_items,
    request_to_chat,
    response_to_chat,
    response_to_messages,
)
from wire import strict_json
from wire.testing.strict import faults

JSON = dict[str, Any]

patient = settings(max_examples=150, deadline=None)  # no deadline: the machine may be busy

words = st.text(max_size=12)
spoken = st.text(min_size=1, max_size=12).filter(lambda text: "think>" not in text and text.strip() != "")
ids = st.sampled_from(["a", "b", "c", ""])
atoms = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words
garbage = st.recursive(
    atoms, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2), max_leaves=4
)

argument_texts = st.sampled_from(["{}", "{", "", "[]"]) | words
call = st.builds(
    lambda i, n, a: {"type": "function_call", "call_id": i, "name": n, "arguments": a}, ids, words, argument_texts
)
output = st.builds(lambda i, t: {"type": "function_call_output", "call_id": i, "output": t}, ids, words)
message = st.builds(
    lambda r, t: {"role": r, "content": t}, st.sampled_from(["user", "assistant", "system", "developer"]), words
)
thought = st.builds(
    lambda t: {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": t}]}, words
)
items = st.lists(call | call | output | output | message | thought, max_size=14)


@patient
@given(items, st.lists(st.integers(1, 5), min_size=1, max_size=6), st.booleans())
def test_no_history_is_ever_invalid_on_the_wire(history: list[JSON], sizes: list[int], ask_between: bool) -> None:
    """Whatever the items, in whatever pieces; an output that belongs to no call is the only refusal, and it ends the builder."""
    builder, given_out, place = MessageBuilder("Be brief."), b"[]", 0
    while place < len(history):
        size = sizes[place % len(sizes)]
        state = copy.deepcopy(builder)
        try:
            builder.append(history[place : place + size])
        except InvalidRequest:
            builder = state  # as the model interface, which makes the conversation's anew
        place += size
        if ask_between:
            messages = builder.take()
            assert faults(messages) == []
            assert strict_json.dumps(messages).startswith(given_out[:-1])
            given_out = strict_json.dumps(messages)
    assert faults(builder.take()) == []


valid_arguments = st.sampled_from(["{}", '{"x": 1}'])
chat_call = st.builds(
    lambda n, a: {"function": {"name": n, "arguments": a}, "type": "function"}, st.sampled_from("fg"), valid_arguments
)
user_parts = st.lists(
    st.builds(lambda t: {"type": "text", "text": t}, spoken)
    | st.just({"type": "image_url", "image_url": {"url": "data:image/png;base64,eA==", "detail": "low"}}),
    min_size=1, max_size=3,
).map(lambda parts: [*parts, {"type": "image_url", "image_url": {"url": "https://x/y.png"}}])  # fmt: skip


@st.composite
def conversations(draw: st.DrawFn) -> list[JSON]:
    """A sound chat history: what a client of the Chat API may send."""
    messages: list[JSON] = draw(st.sampled_from([[], [{"role": "system", "content": "Be brief."}]]))
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        messages = [*messages, {"role": "user", "content": draw(spoken | user_parts)}]
        for calls in draw(st.lists(st.lists(chat_call, min_size=1, max_size=3), max_size=2)):
            named = [{"id": f"c{number + index}", **each} for index, each in enumerate(calls)]
            number += len(calls)
            extra = draw(st.sampled_from([{}, {"reasoning_content": "hm"}]))
            messages += [{"role": "assistant", "content": draw(st.just("") | spoken), **extra, "tool_calls": named}]
            messages += [
                {"role": "tool", "tool_call_id": each["id"], "content": draw(words)}
                for each in draw(st.permutations(named))
            ]
        messages += [{"role": "assistant", "content": draw(spoken)}]
    return messages


@patient
@given(conversations())
def test_chat_to_items_and_back_is_the_same_chat(messages: list[JSON]) -> None:
    """Nothing is lost on the way through our own form."""
    converted = messages_to_items(messages)
    check_items(converted)
    assert items_to_messages(converted) == messages


@patient
@given(spoken | st.just(""), st.just("") | spoken, st.lists(chat_call, max_size=3), st.just("") | spoken)
def test_an_answer_survives_the_chat_face(text: str, thoughts: str, calls: list[JSON], refusal: str) -> None:
    """chat -> Responses -> chat -> Responses: the items are the same but for the ids of their own."""
    chat: JSON = {"role": "assistant", "content": text, "reasoning_content": thoughts, "refusal": refusal}
    chat["tool_calls"] = [{"id": f"c{index}", **each} for index, each in enumerate(calls)]
    first = chat_to_response(
        {
            "choices": [{"message": chat, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2},
        },
        {},
    )
    again = chat_to_response(response_to_chat(first), {})
    assert [_bare(item) for item in again["output"]] == [_bare(item) for item in first["output"]]
    assert (again["usage"], again["status"]) == (first["usage"], first["status"])


blocks = st.lists(
    st.builds(lambda t: {"type": "text", "text": t}, spoken)
    | st.builds(lambda t: {"type": "thinking", "thinking": t, "signature": ""}, spoken)
    | st.builds(lambda i, n: {"type": "tool_use", "id": i, "name": "f", "input": {"x": n}}, st.sampled_from("abc"), st.integers()),
    min_size=1, max_size=4,
)  # fmt: skip


@patient
@given(blocks)
def test_blocks_to_items_and_back_are_the_same_blocks(content: list[JSON]) -> None:
    """Anthropic's content through our own form."""
    request = messages_request_to_responses({"messages": [{"role": "assistant", "content": content}]})
    check_items(request["input"])
    assert response_to_messages({"output": request["input"]})["content"] == content


FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}
RESPONSES: JSON = {
    "model": "m", "instructions": "i", "temperature": 1, "top_logprobs": 2, "include": ["message.output_text.logprobs"],
    "tools": [{"type": "function", **FUNCTION}], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"name": "f"}]},
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}, "verbosity": "low"}, "reasoning": {"effort": "low"},
    "metadata": {"extra_body": "{}"}, "extra_body": {}, "parallel_tool_calls": True, "max_output_tokens": 5, "truncation": "disabled",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "x"}, {"type": "input_image", "image_url": "u"},
                                     {"type": "input_file", "file_data": "d", "filename": "f"}], "name": "n"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "content": [{"type": "reasoning_text", "text": "t"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "x"}, {"type": "refusal", "refusal": "r"}]},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "x"}]},
    ],
}  # fmt: skip
CHAT: JSON = {
    "model": "m", "max_tokens": 5, "tools": [{"type": "function", "function": FUNCTION}], "stream_options": {"include_usage": True},
    "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}, "modalities": ["text"], "n": 1,
    "messages": [
        {"role": "developer", "content": "x"},
        {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "u", "detail": "low"}},
                                     {"type": "file", "file": {"file_data": "d"}}, {"type": "input_audio", "input_audio": {"data": "d"}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "x"}], "refusal": "r", "reasoning": "t",
         "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "x"},
    ],
}  # fmt: skip
MESSAGES: JSON = {
    "model": "m", "max_tokens": 5, "system": [{"type": "text", "text": "x"}], "stop_sequences": ["s"], "metadata": {"user_id": "u"},
    "tools": [{"name": "f", "description": "d", "input_schema": {}}], "thinking": {"type": "enabled", "budget_tokens": 1024},
    "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
    "output_config": {"effort": None, "format": {"type": "json_schema", "schema": {}}},
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "x"},
                                     {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}},
                                     {"type": "document", "source": {"type": "url", "url": "u"}}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "x"},
                                          {"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "is_error": True,
                                      "content": [{"type": "text", "text": "x"}]}]},
    ],
}  # fmt: skip
COMPLETION: JSON = {
    "id": "c", "model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}},
    "choices": [{"finish_reason": "stop", "logprobs": {"content": [{"token": "x", "logprob": -1}]}, "message": {
        "content": [{"type": "text", "text": "x"}, {"type": "refusal", "refusal": "r"}, {"type": "thinking", "thinking": [{"text": "t"}]}],
        "refusal": None, "reasoning": "t", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}}],
}  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in _places(each, (*path, key)))]


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copied = value.copy()
    copied[path[0]] = _with(value[path[0]], path[1:], new)
    return copied


def spoilt(sample: JSON) -> st.SearchStrategy[Any]:
    """A sound body with one value of any depth replaced by anything."""
    return st.builds(lambda path, new: _with(sample, path, new), st.sampled_from(_places(sample)), garbage)


def test_the_sound_bodies_are_sound() -> None:
    """Or the tests below would prove nothing."""
    _as_responses(RESPONSES)
    _as_responses(chat_request_to_responses(CHAT | {"messages": [*CHAT["messages"][:1], *CHAT["messages"][2:]]}))
    assert chat_to_response(COMPLETION, {})["output"]
    messages_request_to_responses(MESSAGES)


@patient
@given(spoilt(RESPONSES))
def test_a_spoilt_responses_request_is_taken_or_refused(body: Any) -> None:
    """Never another exception: it would be a 500."""
    with contextlib.suppress(InvalidRequest):
        _as_responses(body)


@patient
@given(spoilt(CHAT))
def test_a_spoilt_chat_request_is_taken_or_refused(body: Any) -> None:
    """What passes the translation passes, or is refused by, the checks of our own form."""
    with contextlib.suppress(InvalidRequest):
        _as_responses(chat_request_to_responses(body))


@patient
@given(spoilt(MESSAGES))
def test_a_spoilt_messages_request_is_taken_or_refused(body: Any) -> None:
    """Likewise for Anthropic's form."""
    with contextlib.suppress(InvalidRequest):
        _as_responses(messages_request_to_responses(body))


@patient
@given(spoilt(COMPLETION))
def test_a_spoilt_completion_is_read_or_refused(body: Any) -> None:
    """An upstream is not ours: whatever it sends is an answer or a typed failure."""
    with contextlib.suppress(UpstreamError):
        response = chat_to_response(body, {"top_logprobs": 1})
        response_to_chat(response)
        response_to_messages(response)


def _as_responses(body: Any) -> None:
    check_request(body)
    request_to_chat(body)
    if isinstance(body.get("input"), list):
        check_items(body["input"])
        items_to_messages(body["input"])


def _bare(item: JSON) -> JSON:
    return {key: value for key, value in item.items() if key != "id"}
