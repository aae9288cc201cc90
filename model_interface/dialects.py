"""The three ways in which a client may speak to a model: what it asks as a Responses request, and the answer in its own words."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from model_interface.streaming import Dialect as Name
from model_interface.translate.chat_face import chat_request_to_responses, response_to_chat
from model_interface.translate.messages_face import error_body, messages_request_to_responses, response_to_messages
from wire.errors import TriviumError, UsageError

JSON = dict[str, Any]


@dataclass(frozen=True)
class Dialect:
    """One of them."""

    name: Name
    path: str
    """Below the base URL."""
    summary: str
    request: Callable[[JSON], JSON]
    """The Responses request that asks the same; raises InvalidRequest for what has no counterpart."""
    response: Callable[[JSON], JSON]
    """A Responses object in this dialect."""
    error: Callable[[TriviumError], JSON]
    """An error as its clients read it."""


def _same(body: JSON) -> JSON:
    return body


def _error(error: TriviumError) -> JSON:
    return error.body()


RESPONSES = Dialect("responses", "/v1/responses", "The model's next turn", _same, _same, _error)
CHAT = Dialect(
    "chat",
    "/v1/chat/completions",
    "The same, for Chat Completions clients",
    chat_request_to_responses,
    response_to_chat,
    _error,
)
MESSAGES = Dialect(
    "messages",
    "/v1/messages",
    "The same, for Anthropic's clients",
    messages_request_to_responses,
    response_to_messages,
    error_body,
)
DIALECTS = {dialect.path: dialect for dialect in (RESPONSES, CHAT, MESSAGES)}


def json_object(body: Any) -> JSON:
    """The body as an object.

    Raises:
        UsageError: it is something else.
    """
    if not isinstance(body, dict):
        raise UsageError(f"a request is a JSON object, not {str(body)[:40]!r}")
    return body
