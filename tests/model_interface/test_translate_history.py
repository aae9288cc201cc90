"""Responses items towards a chat server: the wire is valid whatever the record holds (cases A01, A05, A07, A11)."""

import json
from typing import Any

import pytest

from model_interface.translate import InvalidRequest, MessageBuilder, items_to_messages
from model_interface.translate.history import ThoughtsAs

Item = dict[str, Any]


def call(call_id: str, arguments: str = "{}", name: str = "get_weather") -> Item:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def output(call_id: str, text: str = "sun") -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def user(text: str = "hi") -> Item:
    return {"role": "user", "content": text}


def answer(text: str) -> Item:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def roles(messages: list[dict[str, Any]]) -> str:
    return " ".join(message["role"] for message in messages)


A07: list[Item] = [
    {"role": "developer", "content": "Be brief."},
    {
        "role": "user",
        "content": [{"type": "input_text", "text": "Weather "}, {"type": "input_text", "text": "in Paris and Rome?"}],
    },
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "two calls"}]},
    call("a", '{"city": "Paris"}'),
    call("b", '{"city": "Rome"}'),
    output("b", "rain"),
    output("a", "sun"),
    {"role": "assistant", "content": "Sun in Paris, rain in Rome."},
    {"role": "user", "content": "Thanks"},
]


def test_a_whole_history_becomes_seven_messages() -> None:
    """A07, word for word."""
    system, asked, called, rain, sun, said, thanks = items_to_messages(A07)
    assert (system["role"], asked["content"]) == ("system", "Weather in Paris and Rome?")
    assert [each["id"] for each in called["tool_calls"]] == ["a", "b"]
    assert called["content"] == ""
    assert called["reasoning_content"] == "two calls"
    assert [(each["role"], each["tool_call_id"], each["content"]) for each in (rain, sun)] == [
        ("tool", "b", "rain"),
        ("tool", "a", "sun"),
    ]
    assert said == {"role": "assistant", "content": "Sun in Paris, rain in Rome."}
    assert thanks == {"role": "user", "content": "Thanks"}


@pytest.mark.parametrize("step", range(1, 9))
def test_growing_in_pieces_gives_the_same_messages(step: int) -> None:
    """However the items arrive, as long as no request is sent while calls are open."""
    builder = MessageBuilder()
    for start in range(0, len(A07), step):
        builder.append(A07[start : start + step])
    assert builder.take() == items_to_messages(A07)


@pytest.mark.parametrize(
    "raw", ['{"city": "Paris", }', "[1]", "7", "nonsense", "{" * 50_000, '{"a":' * 20_000 + "1" + "}" * 20_000]
)
def test_arguments_that_are_no_object_are_valid_on_the_wire_and_untouched_in_the_record(raw: str) -> None:
    """A01, A11: the history that was refused once must not be refused for ever."""
    item = call("a", raw)
    wire = items_to_messages([user(), item, output("a")])[1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(wire) == {"invalid_arguments": raw}
    assert item["arguments"] == raw


@pytest.mark.parametrize("raw", ['{"value": 123456789012345678901234567890}', '{ "a" : 1 }', "{}"])
def test_valid_arguments_keep_their_bytes(raw: str) -> None:
    """A11: no digit is lost, no space either."""
    assert items_to_messages([call("a", raw), output("a")])[0]["tool_calls"][0]["function"]["arguments"] == raw


@pytest.mark.parametrize(
    ("name", "wire"),
    [('get_weather" />', "get_weather____"), ("", "unnamed"), ("x" * 70, "x" * 64), ("get_wether", "get_wether")],
)
def test_names_are_valid_on_the_wire(name: str, wire: str) -> None:
    """A05: servers refuse a name outside their pattern, even in history."""
    assert items_to_messages([call("a", name=name), output("a")])[0]["tool_calls"][0]["function"]["name"] == wire


def test_a_call_id_used_twice_is_two_ids_on_the_wire() -> None:
    """Within a turn and across turns; answers go to the calls in order."""
    items = [
        call("a"),
        call("a"),
        output("a", "1"),
        output("a", "2"),
        call("a"),
        output("a", "3"),
        call(""),
        output("", "4"),
    ]
    messages = items_to_messages(items)
    ids = [each["id"] for message in messages for each in message.get("tool_calls", ())]
    answers = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    assert len(set(ids)) == 4
    assert [answers[each] for each in ids] == ["1", "2", "3", "4"]


def test_an_unanswered_call_gets_an_answer() -> None:
    """Before the next thing that is said, and at the end."""
    messages = items_to_messages([call("a"), call("b"), output("b"), user(), call("c")])
    assert roles(messages) == "assistant tool tool user assistant tool"
    assert messages[2]["content"] == messages[5]["content"] == "No output was recorded for this call."


def test_an_output_that_comes_late_is_moved_to_its_call() -> None:
    """Other frameworks write a user's remark between a call and its output."""
    messages = items_to_messages([call("a"), user("wait"), output("a", "late"), call("a"), output("a", "own")])
    assert roles(messages) == "assistant tool user assistant tool"
    assert [messages[1]["content"], messages[4]["content"]] == ["late", "own"]


def test_an_output_without_a_call_is_refused_by_name() -> None:
    """It has no place in chat, and dropping it would be silent."""
    with pytest.raises(InvalidRequest, match=r"input\[1\] is the output of call 'z'") as caught:
        items_to_messages([user(), output("z")])
    assert caught.value.param == "input[1].call_id"


def test_text_and_calls_of_one_turn_are_one_message() -> None:
    """In whichever order the turn has them."""
    before = items_to_messages([answer("Let me count"), call("a"), output("a")])
    after = items_to_messages([call("a"), answer("Let me count"), output("a")])
    assert before == after
    assert before[0]["content"] == "Let me count"


@pytest.mark.parametrize(
    "item",
    [
        {"type": "message", "role": "assistant", "content": []},
        {"role": "assistant", "content": ""},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    ],
)
def test_an_assistant_message_always_has_content(item: Item) -> None:
    """Check 3 of the strict upstream; thoughts alone travel in tags."""
    message = items_to_messages([user(), item, user()])[1]
    assert message["role"] == "assistant"
    assert message["content"]


def test_what_was_given_out_is_never_rewritten() -> None:
    """A server's prefix cache, and the prefix property, live from it."""
    builder = MessageBuilder("Be brief.")
    builder.append([user(), call("a"), call("b")])
    first = json.dumps(builder.take())
    builder.append([user("more"), answer("x"), call("c"), output("c")])
    assert json.dumps(builder.take()).startswith(first[:-1])


def test_a_models_own_message_goes_back_as_it_came() -> None:
    """Tags in the text and the server's own reasoning field stay; only what the wire refuses is repaired."""
    message = {"role": "assistant", "content": "<think>\na\n</think>\n\nLet me see", "reasoning": "b", "tool_calls": []}
    builder = MessageBuilder()
    builder.append([user()])
    builder.append_answer(message, [answer("Let me see"), call("a", "{bad")])
    builder.append([output("a")])
    sent = builder.take()[1]
    assert (sent["content"], sent["reasoning"]) == (message["content"], "b")
    assert json.loads(sent["tool_calls"][0]["function"]["arguments"]) == {"invalid_arguments": "{bad"}


@pytest.mark.parametrize(
    ("thoughts_as", "content", "field"),
    [
        ("reasoning_content", "x", {"reasoning": "t"}),
        ("reasoning", "x", {"reasoning": "t"}),
        ("tags", "<think>\nt\n</think>\n\nx", {}),
        ("drop", "x", {}),
    ],
)
def test_thoughts_ride_where_the_config_says(thoughts_as: ThoughtsAs, content: str, field: Item) -> None:
    """Under the server's own field name, in tags, or not at all."""
    builder = MessageBuilder(thoughts_as=thoughts_as)
    builder.append_answer({"role": "assistant", "content": "x", "reasoning": "t"}, [answer("x")])
    assert builder.take() == [{"role": "assistant", "content": content, **field}]


def test_dropped_thoughts_leave_the_text_too() -> None:
    """Where the server had left their tags in it."""
    builder = MessageBuilder(thoughts_as="drop")
    builder.append_answer({"role": "assistant", "content": "<think>t</think>x"}, [answer("x")])
    assert builder.take() == [{"role": "assistant", "content": "x"}]


@pytest.mark.parametrize(
    ("part", "wire"),
    [
        (
            {"type": "input_image", "image_url": "data:x", "detail": "low"},
            {"type": "image_url", "image_url": {"url": "data:x", "detail": "low"}},
        ),
        (
            {"type": "input_file", "file_data": "d", "filename": "f"},
            {"type": "file", "file": {"file_data": "d", "filename": "f"}},
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "d", "format": "wav"}},
            {"type": "input_audio", "input_audio": {"data": "d", "format": "wav"}},
        ),
    ],
)
def test_parts_that_are_not_text_stay_parts(part: Item, wire: Item) -> None:
    """Images as URLs and data, files, sound."""
    content = [{"type": "input_text", "text": "see"}, part]
    assert items_to_messages([{"role": "user", "content": content}])[0]["content"] == [
        {"type": "text", "text": "see"},
        wire,
    ]


@pytest.mark.parametrize(
    ("item", "param"),
    [
        ({"type": "web_search_call", "id": "x"}, "input[0]"),
        ({"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}, "input[0].content[0]"),
        ({"role": "assistant", "content": [{"type": "input_image", "image_url": "u"}]}, "input[0].content[0]"),
        ({"type": "reasoning", "summary": [], "encrypted_content": "x"}, "input[0].encrypted_content"),
    ],
)
def test_what_has_no_counterpart_is_named(item: Item, param: str) -> None:
    """Nothing is dropped in silence."""
    with pytest.raises(InvalidRequest, match=r"no counterpart|cannot be") as caught:
        items_to_messages([item])
    assert caught.value.param == param
