"""Responses <-> Chat Completions <-> Messages: pure functions, no I/O; nothing is dropped in silence.

`check_request`, `check_items`      what a caller may send, refused by name
`MessageBuilder`, `items_to_messages`, `request_to_chat`   towards a chat server
`answer_items`, `chat_to_response`  its answer: the items alone, or as a Responses object
`calls_as_text`                     its bytes, where no parser takes them for what the model put into a call
`chat_request_to_responses`, `response_to_chat`            for clients that speak Chat
`messages_request_to_responses`, `response_to_messages`    for clients that speak Anthropic's Messages
"""

from model_interface.translate.answers import (
    answer_items,
    calls_of,
    chat_to_response,
    count_of,
    logprobs_of,
    new_id,
    response_object,
    usage_of,
    wants_scores,
)
from model_interface.translate.chat_face import chat_request_to_responses, messages_to_items, response_to_chat
from model_interface.translate.errors import InvalidRequest, UpstreamError, error_object, error_sentence, raise_if_error
from model_interface.translate.history import MessageBuilder, items_to_messages
from model_interface.translate.items import check_items
from model_interface.translate.messages_face import error_body, messages_request_to_responses, response_to_messages
from model_interface.translate.parameters import extra_body, request_to_chat
from model_interface.translate.raw_calls import calls_as_text
from model_interface.translate.reasoning import Reasoning, ThoughtSplitter, split_thoughts
from model_interface.translate.requests import EXTRA_SAMPLING, PARAMETERS, check_request

__all__ = [
    "EXTRA_SAMPLING",
    "PARAMETERS",
    "InvalidRequest",
    "MessageBuilder",
    "Reasoning",
    "ThoughtSplitter",
    "UpstreamError",
    "answer_items",
    "calls_as_text",
    "calls_of",
    "chat_request_to_responses",
    "chat_to_response",
    "check_items",
    "check_request",
    "count_of",
    "error_body",
    "error_object",
    "error_sentence",
    "extra_body",
    "items_to_messages",
    "logprobs_of",
    "messages_request_to_responses",
    "messages_to_items",
    "new_id",
    "raise_if_error",
    "request_to_chat",
    "response_object",
    "response_to_chat",
    "response_to_messages",
    "split_thoughts",
    "usage_of",
    "wants_scores",
]
