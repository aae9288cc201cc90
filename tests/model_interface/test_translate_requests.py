"""What may be asked, and how it is asked of a chat server: unknown things are refused by name, known things all arrive."""

from typing import Any

import pytest

from model_interface.translate import InvalidRequest, check_items, check_request, request_to_chat

JSON = dict[str, Any]
TOOL = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": None}
OTHER = {"type": "function", "name": "g"}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"max_ouput_tokens": 5}, "max_ouput_tokens"),
        ({"messages": []}, "messages"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"input": 7}, "input"),
        ({"stream": "yes"}, "stream"),
        ({"tools": [{"type": "funktion"}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools[0].name"),
        ({"tools": [TOOL, TOOL]}, "tools[1].name"),
        ({"tools": [{**TOOL, "parameters": []}]}, "tools[0].parameters"),
        ({"include": ["x"]}, "include[0]"),
        ({"metadata": []}, "metadata"),
        ({"instructions": ["x"]}, "instructions"),
        ({"tools": [{**TOOL, "returns": "x"}]}, "tools[0].returns"),
        ({"reasoning": {"effrot": "low"}}, "reasoning.effrot"),
        ({"text": {"fromat": {}}}, "text.fromat"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(body: JSON, param: str) -> None:
    """400, with the name in `param` and in the sentence."""
    with pytest.raises(InvalidRequest) as caught:
        check_request({"input": "hi", **body})
    assert caught.value.param == param
    assert caught.value.status == 400
    assert param.split("[")[0].split(".")[0] in str(caught.value)


def test_what_is_known_passes() -> None:
    """Nulls, servers' own sampling parameters, our own field."""
    check_request({"input": "hi", "temperature": None, "top_k": 5, "stop": ["x"], "tools": [TOOL], "trivium": {}})
    check_request({"input": [], "metadata": {"a": "b"}, "tool_choice": "auto"})


@pytest.mark.parametrize(
    ("item", "param"),
    [
        ("text", "input[3]"),
        ({"type": "mesage"}, "input[3].type"),
        ({"role": "tool", "content": "x"}, "input[3].role"),
        ({"content": "x"}, "input[3].role"),
        ({"role": "user"}, "input[3].content"),
        ({"role": "user", "content": None}, "input[3].content"),
        ({"role": "user", "content": "x", "colour": "red"}, "input[3].colour"),
        ({"role": "user", "content": [{"type": "text", "text": "x"}]}, "input[3].content[0].type"),
        ({"role": "user", "content": [{"type": "input_text", "text": "x", "bold": True}]}, "input[3].content[0].bold"),
        ({"role": "user", "content": [{"type": "input_text"}]}, "input[3].content[0].text"),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "input[3].call_id"),
        ({"type": "function_call", "call_id": "a", "name": "f", "arguments": {}}, "input[3].arguments"),
        ({"type": "function_call_output", "call_id": "a"}, "input[3].output"),
        ({"type": "function_call_output", "call_id": "a", "output": {"x": 1}}, "input[3].output"),
        ({"type": "reasoning", "summary": ["x"]}, "input[3].summary"),
        ({"type": ["x"]}, "input[3].type"),
    ],
)
def test_a_wrong_item_is_refused_by_its_place(item: Any, param: str) -> None:
    """The index is the caller's, where only new items are checked."""
    with pytest.raises(InvalidRequest) as caught:
        check_items([item], start=3)
    assert caught.value.param == param


def test_items_of_every_kind_pass() -> None:
    """What a model made may carry its server's own fields and token ids."""
    check_items(
        [
            {"role": "user", "content": "x", "id": None},
            {"type": "message", "role": "assistant", "content": [], "channel": "final", "prompt_token_ids": [1]},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "namespace": None},
            {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "x"}], "status": "completed"},
            {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": None},
            {"type": "web_search_call", "id": "w"},
        ]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("params", "chat"),
    [
        ({"model": "m", "temperature": 0, "top_p": 0.9, "max_output_tokens": 7},
         {"model": "m", "temperature": 0, "top_p": 0.9, "max_tokens": 7}),
        ({"temperature": None, "store": True, "stream": True, "metadata": {"a": "b"}, "truncation": "disabled"}, {}),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_effort": "low"}),
        ({"top_logprobs": 3}, {"logprobs": True, "top_logprobs": 3}),
        ({"include": ["message.output_text.logprobs"]}, {"logprobs": True}),
        ({"stop": ["x"], "top_k": 5, "seed": 0}, {"stop": ["x"], "top_k": 5, "seed": 0}),
        ({"metadata": {"extra_body": '{"top_k": 9, "odd": 123456789012345678901234567890}'}},
         {"top_k": 9, "odd": 123456789012345678901234567890}),
        ({"metadata": {"extra_body": '{"a": 1, "b": 1}'}, "extra_body": {"b": 2}}, {"a": 1, "b": 2}),
        ({"text": {"format": {"type": "text"}}}, {}),
        ({"text": {"format": {"type": "json_object"}, "verbosity": "low"}},
         {"response_format": {"type": "json_object"}, "verbosity": "low"}),
        ({"text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}}},
         {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True}}}),
        ({"tools": []}, {}),
        ({"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}, {}),
    ],
)  # fmt: skip
def test_parameters_arrive(params: JSON, chat: JSON) -> None:
    """Each under chat's own name."""
    assert request_to_chat(params) == chat


@pytest.mark.parametrize(
    ("choice", "wanted", "names"),
    [
        ("auto", "auto", "fg"),
        ("none", "none", "fg"),
        ("required", "required", "fg"),
        (None, None, "fg"),
        ({"type": "function", "name": "g"}, {"type": "function", "function": {"name": "g"}}, "fg"),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]}, "required", "f"),
    ],
)
def test_every_tool_choice_arrives(choice: Any, wanted: Any, names: str) -> None:
    """`allowed_tools` by offering only those."""
    body = request_to_chat({"tools": [TOOL, OTHER], "tool_choice": choice, "parallel_tool_calls": False})
    assert body.get("tool_choice") == wanted
    assert "".join(tool["function"]["name"] for tool in body["tools"]) == names
    assert body["parallel_tool_calls"] is False
    assert body["tools"][0] == {
        "type": "function",
        "function": {"name": "f", "description": "d", "parameters": {"type": "object"}},
    }


def test_a_newer_name_for_the_limit() -> None:
    """OpenAI's own models refuse `max_tokens`."""
    assert request_to_chat({"max_output_tokens": 7}, max_tokens_field="max_completion_tokens") == {
        "max_completion_tokens": 7
    }


@pytest.mark.parametrize(
    ("params", "param"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "web_search"}}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "name": "z"}}, "tool_choice.name"),
        ({"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "tools": [{"name": "z"}]}}, "tool_choice"),
        ({"background": True}, "background"),
        ({"conversation": "c"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"truncation": "auto"}, "truncation"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format"),
        ({"text": {"format": {"type": "json_schema"}}}, "text.format"),
        ({"metadata": {"extra_body": "{bad"}}, "metadata.extra_body"),
        ({"metadata": {"extra_body": "[1]"}}, "metadata.extra_body"),
        ({"extra_body": {"messages": []}}, "extra_body.messages"),
    ],
)
def test_what_chat_cannot_express_is_refused_by_name(params: JSON, param: str) -> None:
    """Nothing is dropped in silence."""
    with pytest.raises(InvalidRequest) as caught:
        request_to_chat(params)
    assert caught.value.param == param
