"""Responses <-> Chat Completions <-> Messages: pure functions, no I/O; nothing is dropped in silence.

`check_request`, `check_items`      what a caller may send, refused by name
`MessageBuilder`, `items_to_messages`, `request_to_chat`   towards a chat server
`chat_to_response`                  its answer
The faces for clients that speak Chat or Messages are in `chat_face` and `messages_face`.
"""

from model_interface.translate.answers import (
    calls_of,
    chat_to_response,
    logprobs_of,
    new_id,
    response_object,
    usage_of,
)
from model_interface.translate.errors import InvalidRequest, UpstreamError, error_sentence, raise_if_error
from model_interface.translate.history import MessageBuilder, items_to_messages
from model_interface.translate.parameters import extra_body, request_to_chat
from model_interface.translate.reasoning import Reasoning, ThoughtSplitter, split_thoughts
from model_interface.translate.requests import EXTRA_SAMPLING, PARAMETERS, check_items, check_request

__all__ = [
    "EXTRA_SAMPLING",
    "PARAMETERS",
    "InvalidRequest",
    "MessageBuilder",
    "Reasoning",
    "ThoughtSplitter",
    "UpstreamError",
    "calls_of",
    "chat_to_response",
    "check_items",
    "check_request",
    "error_sentence",
    "extra_body",
    "items_to_messages",
    "logprobs_of",
    "new_id",
    "raise_if_error",
    "request_to_chat",
    "response_object",
    "split_thoughts",
    "usage_of",
]
