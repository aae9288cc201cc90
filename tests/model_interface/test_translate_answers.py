"""A chat completion as a Responses object (cases A03, A12, B07): whatever a server says, it is read or refused with a type."""

import json
from typing import Any

import pytest

from model_interface.streaming import ChatStreamAssembler
from model_interface.translate import (
    MessageBuilder,
    UpstreamError,
    calls_as_text,
    chat_to_response,
    error_sentence,
    split_thoughts,
)
from model_interface.translate.content import NAME
from model_interface.translate.reasoning import Reasoning, ThoughtSplitter
from wire import strict_json
from wire.testing.upstream import MSG, TC, error_inside

JSON = dict[str, Any]


def kinds(response: JSON) -> list[str]:
    return [item["type"] for item in response["output"]]


def texts(response: JSON) -> list[str]:
    parts = [part for item in response["output"] if item["type"] == "message" for part in item["content"]]
    return [part.get("text", part.get("refusal")) for part in parts]


@pytest.mark.parametrize(
    ("body", "status", "reason", "output", "text"),
    [
        (MSG("abc", finish="length"), "incomplete", "max_output_tokens", ["message"], ["abc"]),
        (MSG(None, finish="length", reasoning_content="t"), "incomplete", "max_output_tokens", ["reasoning"], []),
        (MSG(None, finish="content_filter"), "incomplete", "content_filter", [], []),
        (MSG(None, refusal="No."), "completed", None, ["message"], ["No."]),
        (MSG([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "completed", None, ["message"], ["ab"]),
        (
            TC(("c1", "increment", "{}"), text="Let me count"),
            "completed",
            None,
            ["message", "function_call"],
            ["Let me count"],
        ),
        ({**MSG("x", finish="eos", odd=1), "more": 2}, "completed", None, ["message"], ["x"]),
        (MSG("x", finish=None), "completed", None, ["message"], ["x"]),
        (MSG(""), "completed", None, ["message"], [""]),
        (MSG(None), "completed", None, ["message"], [""]),
        (MSG("", reasoning="t"), "completed", None, ["reasoning"], []),
        (MSG("x", finish="MAX_TOKENS"), "incomplete", "max_output_tokens", ["message"], ["x"]),
        (MSG("x", finish="SAFETY"), "incomplete", "content_filter", ["message"], ["x"]),
        (TC(("c1", "f", '{"a'), finish="length"), "incomplete", "max_output_tokens", ["function_call"], []),
        (MSG([{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, {"type": "text", "text": "x"}]), "completed", None,
         ["reasoning", "message"], ["x"]),
        (MSG("x", tool_calls=[]), "completed", None, ["message"], ["x"]),
        (MSG("x", tool_calls=None, function_call={"name": "f", "arguments": "{}"}), "completed", None, ["message", "function_call"], ["x"]),
        (MSG("x", tool_calls=[], function_call={"name": "f", "arguments": "{}"}), "completed", None, ["message", "function_call"], ["x"]),
        (MSG([None, {"type": "text", "text": None}, {"type": "text", "text": "b"}]), "completed", None, ["message"], ["b"]),
        (MSG([None]), "completed", None, ["message"], [""]),
        (MSG({"type": "text", "text": "a"}), "completed", None, ["message"], ["a"]),
        (MSG(None, refusal=[{"type": "refusal", "refusal": "No"}, "."]), "completed", None, ["message"], ["No."]),
        (MSG(None, refusal={"text": "No."}), "completed", None, ["message"], ["No."]),
        (MSG(None, refusal={"category": "x"}), "completed", None, ["message"], ['{"category":"x"}']),
        (MSG("x", refusal=[]), "completed", None, ["message"], ["x"]),
        (MSG([{"type": "refusal", "refusal": None}, {"type": "text", "text": "a"}]), "completed", None, ["message"], ["a"]),
    ],
)  # fmt: skip
def test_every_way_to_end_an_answer(
    body: JSON, status: str, reason: str | None, output: list[str], text: list[str]
) -> None:
    """A12's table and its neighbours."""
    response = chat_to_response(body, {})
    assert (response["status"], (response["incomplete_details"] or {}).get("reason")) == (status, reason)
    assert (kinds(response), texts(response)) == (output, text)


def test_a_call_cut_off_by_the_limit_says_so() -> None:
    """Ruling 9: it must never be executed."""
    response = chat_to_response(TC(("a", "f", "{}"), ("b", "f", '{"x'), finish="length"), {})
    assert [item["status"] for item in response["output"]] == ["completed", "incomplete"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"city": "Paris"}, '{"city":"Paris"}'),
        ('{"city": "Paris", }', '{"city": "Paris", }'),
        ("", ""),
        (None, "{}"),
        ([1], "[1]"),
        ('{"value": 123456789012345678901234567890}', '{"value": 123456789012345678901234567890}'),
        ({"value": 123456789012345678901234567890}, '{"value":123456789012345678901234567890}'),
    ],
)
def test_arguments_are_text_and_the_models_own(arguments: Any, text: str) -> None:
    """A01, A03, A11: to the byte where it is text."""
    [item] = chat_to_response(TC(("a", "f", arguments)), {})["output"]
    assert item["arguments"] == text


def test_a_missing_usage_is_tolerated() -> None:
    """A03's answer has none."""
    body = TC(("a", "f", "{}"))
    del body["usage"]
    assert chat_to_response(body, {})["usage"] is None


@pytest.mark.parametrize("name", ['get_weather" />', "get_weatherget_weather", "", "Ünïcode"])
def test_names_stay_as_the_model_wrote_them(name: str) -> None:
    """A05."""
    assert chat_to_response(TC(("a", name, "{}")), {})["output"][0]["name"] == name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (5, "5"),
        (None, "null"),
        (True, "true"),
        (["f"], '["f"]'),
        ({"name": "f"}, '{"name":"f"}'),
        (float("inf"), "Infinity"),
    ],
)
def test_a_name_that_is_no_string_stays_visible(name: Any, text: str) -> None:
    """A05: as its JSON, in whole answers and streams; a server is sent a name that it takes."""
    body = TC(("a", name, "{}"))
    [item] = chat_to_response(body, {})["output"]
    assert item["name"] == text
    builder = MessageBuilder()
    builder.append_answer(body["choices"][0]["message"], [item])
    [call] = builder.take()[0]["tool_calls"]
    assert NAME.fullmatch(call["function"]["name"])
    if name is not None:  # a delta's null is a name that was given before
        assembler = ChatStreamAssembler({})
        assembler.feed({"choices": [{"delta": body["choices"][0]["message"], "finish_reason": "tool_calls"}]})
        assembler.finish(done=True)
        assert assembler.response["output"][0]["name"] == text
        assert assembler.completion()["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == text


def test_a_call_without_a_name_has_an_empty_one() -> None:
    """Nothing was said, so nothing is shown."""
    body = TC(("a", "f", "{}"))
    del body["choices"][0]["message"]["tool_calls"][0]["function"]["name"]
    assert chat_to_response(body, {})["output"][0]["name"] == ""


def test_call_ids_are_made_unique() -> None:
    """Missing, empty, null, repeated, and used before in the conversation."""
    body = TC(("a", "f", "{}"), ("a", "f", "{}"), ("", "f", "{}"), (None, "f", "{}"), ("b", "f", "{}"))
    del body["choices"][0]["message"]["tool_calls"][4]["type"]
    ids = [item["call_id"] for item in chat_to_response(body, {}, taken={"b"})["output"]]
    assert ids[0] == "a"
    assert ids[4] == "b_2"
    assert len({*ids}) == 5
    assert all(ids)


@pytest.mark.parametrize(
    ("text", "setting", "cut", "wanted"),
    [
        ("<think>\nt\n</think>\n\nx", "auto", False, ("t", "x")),
        ("\n <think>t</think>x", "auto", False, ("t", "x")),
        ("<think>t", "auto", False, ("t", "")),
        ("<think>t", "auto", True, ("t", "")),
        ("t\n</think>\nx", "auto", False, ("t", "x")),
        ("<think>a</think><think>b</think>x", "auto", False, ("a\n\nb", "x")),
        ("<think></think>x", "auto", False, ("", "x")),
        ("x <think>", "auto", False, ("", "x <think>")),
        ("x <think>t</think>", "auto", False, ("", "x <think>t</think>")),
        ("x", "auto", True, ("", "x")),
        ("t", "think", True, ("t", "")),
        ("x", "think", False, ("", "x")),
        ("t</think>x", "think", False, ("t", "x")),
        ("<think>t</think>x", "off", False, ("", "<think>t</think>x")),
        ("", "auto", False, ("", "")),
    ],
)
def test_thoughts_in_the_text(text: str, setting: Reasoning, cut: bool, wanted: tuple[str, str]) -> None:
    """Tags in pairs, unclosed, closed only, several, none."""
    assert split_thoughts(text, setting, cut=cut) == wanted


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize("setting", ["auto", "think", "off"])
@pytest.mark.parametrize(
    "text",
    ["<think>\nt\n</think>\n\nx", " <think>t</think>x\n\ny", "<think>a</think>\n<think>b</think>x", "<think>", "<th", "x<think>t</think>",
     "plain\n\ntext", "<think>a < b\n</thin k>\n\n</think>\n\nx", "<think></think>x", "<think>\n\n</think>\n\nx", "", "\n"],
)  # fmt: skip
def test_thoughts_in_pieces_are_the_thoughts_of_the_whole(text: str, setting: Reasoning, size: int) -> None:
    """Where the pieces are cut makes no difference."""
    splitter = ThoughtSplitter(setting)
    found = [splitter.feed(text[start : start + size]) for start in range(0, len(text), size)] + [splitter.close()]
    thoughts, answer = ("".join(each) for each in zip(*found, strict=True))
    assert (thoughts, answer) == split_thoughts(text, setting)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thoughts_in_a_field_come_first_and_the_text_stays(field: str) -> None:
    """With a field of its own, tags in the text are text."""
    response = chat_to_response(MSG("<think>x", **{field: "t"}), {})
    assert kinds(response) == ["reasoning", "message"]
    assert response["output"][0]["content"] == [{"type": "reasoning_text", "text": "t"}]
    assert texts(response) == ["<think>x"]


@pytest.mark.parametrize(
    ("usage", "wanted"),
    [
        ({"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}, (20, 0, 5, 0, 25)),
        ({"prompt_tokens": 20, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 16},
          "completion_tokens_details": {"reasoning_tokens": 3}}, (20, 16, 5, 3, 25)),
        ({"prompt_tokens": 20, "completion_tokens": None, "prompt_tokens_details": None, "prompt_cache_hit_tokens": 4}, (20, 4, 0, 0, 20)),
        ({}, (0, 0, 0, 0, 0)),
        ({"prompt_tokens": float("inf"), "completion_tokens": -5, "total_tokens": "25"}, (0, 0, 0, 0, 0)),
        ({"prompt_tokens": 10**400, "completion_tokens": 1e300, "total_tokens": True}, (0, 0, 0, 0, 0)),
    ],
)  # fmt: skip
def test_usage_with_its_details(usage: JSON, wanted: tuple[int, ...]) -> None:
    """Cached and reasoning tokens, nulls, a missing total; 1e999, what no memory could hold, a negative and a text are no counts."""
    got = chat_to_response({**MSG("x"), "usage": usage}, {})["usage"]
    cached, thought = got["input_tokens_details"]["cached_tokens"], got["output_tokens_details"]["reasoning_tokens"]
    assert (got["input_tokens"], cached, got["output_tokens"], thought, got["total_tokens"]) == wanted


def test_log_probs_are_given_to_who_asks() -> None:
    """As `include` or `top_logprobs` asks for."""
    body = MSG("x")
    body["choices"][0]["logprobs"] = {"content": [{"token": "x", "logprob": -0.5, "bytes": [120]}]}
    asked = chat_to_response(body, {"include": ["message.output_text.logprobs"]})
    assert asked["output"][0]["content"][0]["logprobs"] == [
        {"token": "x", "logprob": -0.5, "bytes": [120], "top_logprobs": []}
    ]
    assert chat_to_response(body, {})["output"][0]["content"][0]["logprobs"] == []


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (error_inside(), "model_error", "overloaded"),
        (error_inside("too long", code="context_length_exceeded"), "model_error", "too long"),
        ({"object": "error", "message": "no", "code": 400}, "model_error", "no"),
        ({"error": "plain"}, "model_error", "plain"),
        ([{"a": 1}], "model_invalid_response", r"choices\[0\].message"),
        ({}, "model_invalid_response", r"choices\[0\].message: {}"),
        ({"choices": []}, "model_invalid_response", "choices"),
        ({"choices": [{"text": "x"}]}, "model_invalid_response", "choices"),
        (None, "model_invalid_response", "choices"),
        (MSG(7), "model_invalid_response", "neither text nor"),
        (MSG([{"type": "output_audio", "audio": "x"}]), "model_invalid_response", "output_audio"),
        (MSG("x", tool_calls={"a": 1}), "model_invalid_response", "tool_calls"),
        (MSG("x", tool_calls=[{"id": "a"}]), "model_invalid_response", "without a function"),
        (MSG("x", finish="error"), "model_error", "finish_reason 'error'"),
    ],
)
def test_what_is_no_answer_is_a_typed_failure(body: Any, kind: str, words: str) -> None:
    """B07: an error inside a 200 is not an empty answer, and nothing crashes."""
    with pytest.raises(UpstreamError, match=words) as caught:
        chat_to_response(body, {})
    assert caught.value.kind == kind
    assert len(str(caught.value)) < 320


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        *((each, "max_output_tokens") for each in ("max_output_tokens", "token_limit", "MAX_TOKENS")),
        *(
            (each, "content_filter")
            for each in ("content-filter", "SPII", "sensitive", "guardrail_intervened", "refusal")
        ),
        *((each, "context_window") for each in ("model_context_window_exceeded", "context_length_exceeded")),
        *((each, None) for each in ("stop", "eos", "end_turn")),
    ],
)
def test_a_finish_reason_by_any_other_name(finish: str, reason: str | None) -> None:
    """Whole answers and streams alike."""
    chunk = {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": finish}]}
    assembler = ChatStreamAssembler({})
    assembler.feed(chunk)
    assembler.finish(done=True)
    for response in (chat_to_response(MSG("x", finish=finish), {}), assembler.response):
        assert (response["incomplete_details"] or {}).get("reason") == reason


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"a": float("inf")}, '{"a": Infinity}'),
        ({"a": [-float("inf")]}, '{"a": [-Infinity]}'),
        ({"a": 1.5}, '{"a":1.5}'),
        ({"a": [], "b": [{}, [float("inf"), "x"]]}, '{"a": [], "b": [{}, [Infinity, "x"]]}'),
        (None, "{}"),
    ],
)
def test_arguments_that_json_cannot_hold_are_the_models_to_hear_of(arguments: Any, text: str) -> None:
    """A number such as 1e999 in arguments that a server has parsed: text, and no JSON."""
    (call,) = chat_to_response(TC(("c", "f", arguments)), {})["output"]
    assert call["arguments"] == text
    if "Infinity" in text:
        with pytest.raises(strict_json.JSONError):
            strict_json.loads(text)


@pytest.mark.parametrize("depth", [300, 900, 5000])
def test_arguments_of_any_nesting_are_text(depth: int) -> None:
    """A11: an object that a parser took and no writer does."""
    value: Any = "x"
    for _ in range(depth):
        value = {"a": [value]}
    (call,) = chat_to_response(TC(("c", "f", value)), {})["output"]
    assert call["arguments"].replace(" ", "") == '{"a":[' * depth + '"x"' + "]}" * depth


@pytest.mark.parametrize(
    "arguments",
    ['{"value": ' + "1" * 5000 + "}", '{"value": ' + "[" * 300 + "]" * 300 + "}", "[" * 400 + "]" * 400, "-" + "1" * 5000,
     '{"v": "' + '\\"}]' * 50 + '", "w": ' + "[" * 300 + "]" * 300 + "}", '{"value": "ü€😀\\ud800", "n": ' + "1" * 5000 + "}",
     '{"value": ' + '{"arguments": ' * 20000 + "1" + "}" * 20000 + "}"],
)  # fmt: skip
def test_arguments_that_no_parser_takes_are_read_as_text(arguments: str) -> None:
    """A03 with A11: byte for byte, whether name or arguments; what stands around them stays."""
    around = '{"choices": [{"message": {"content": "\\"arguments\\": {", "tool_calls": [{"function": {"name": "f", "arguments" : %s}}]}}]}'
    value = strict_json.loads(calls_as_text((around % arguments).encode()))
    (call,) = [each for each in chat_to_response(value, {})["output"] if each["type"] == "function_call"]
    assert call["arguments"] == arguments
    named = strict_json.loads(calls_as_text(f'{{"name": {arguments}, "arguments": "{{}}"}}'.encode()))
    assert named == {"name": arguments, "arguments": "{}"}


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b'{"arguments": {"a": [', b'{"arguments": {"a": "}', b'{"arguments": {"a": "\\', b'{"arguments": "{}", "a": NaN}',
     b'{"name": null, "arguments": true', b'"arguments": {"\xff": 1}', b'["arguments", {"a": 1}]', b'{"arguments": [' * 20000,
     b'"' + b'\\"' * 200000],
)  # fmt: skip
def test_what_is_no_call_is_left_as_it_is(body: bytes) -> None:
    """Cut off, not JSON for another reason, no bytes of UTF-8; in time that grows with the body alone."""
    assert calls_as_text(body) == body


@pytest.mark.parametrize(
    ("delta", "texts_of_it"),
    [
        ({"content": [None, {"type": "text", "text": None}, {"type": "text", "text": "a"}, "b"]}, ["ab"]),
        ({"content": {"type": "text", "text": "a"}}, ["a"]),
        ({"refusal": [{"type": "refusal", "refusal": "No."}]}, ["No."]),
    ],
)
def test_odd_forms_in_a_stream(delta: JSON, texts_of_it: list[str]) -> None:
    """The same forms as in a whole answer."""
    assembler = ChatStreamAssembler({})
    assembler.feed({"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]})
    assembler.finish(done=True)
    assert texts(assembler.response) == texts_of_it


def test_an_old_call_beside_an_empty_list_in_a_stream() -> None:
    """`tool_calls: []` and `function_call`."""
    assembler = ChatStreamAssembler({})
    delta = {"tool_calls": [], "function_call": {"name": "f", "arguments": "{}"}}
    assembler.feed({"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]})
    assembler.finish(done=True)
    assert kinds(assembler.response) == ["function_call"]


def test_the_servers_own_code_is_kept() -> None:
    """So that a prompt that is too long can be told from a failure."""
    assert error_sentence(error_inside("m", code="context_length_exceeded")) == ("m", "context_length_exceeded")
    assert error_sentence(error_inside("m", code=400, type="BadRequestError")) == ("m", "BadRequestError")
    assert error_sentence(MSG("x")) is None
    assert error_sentence({"detail": "Not Found"}) == ("Not Found", None)


def test_parameters_are_echoed_only_as_far_as_given() -> None:
    """A step's bytes must not grow with the tools of the conversation."""
    echoed = chat_to_response(MSG("x"), {"tools": [{"type": "function", "name": "f"}], "temperature": 0.5})
    assert (echoed["tools"][0]["name"], echoed["temperature"]) == ("f", 0.5)
    assert len(json.dumps(chat_to_response(MSG("x"), {}))) < 1000


def test_a_small_answer_costs_tens_of_microseconds() -> None:
    """It is on the path of every step; the bound is ten times what it takes, for slow machines."""
    import timeit

    body = TC(("a", "f", '{"x": 1}'))
    assert min(timeit.repeat(lambda: chat_to_response(body, {}), number=200, repeat=5)) / 200 < 300e-6
