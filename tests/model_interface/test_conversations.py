"""What is remembered behind `previous_response_id`, and what is forgotten first."""

import pytest

from model_interface.conversations import RESTED, Conversations
from model_interface.settings import ConversationBounds
from wire.errors import PreviousResponseNotFound
from wire.responses import Item

CALL: Item = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
TEXT: Item = {"type": "message", "role": "assistant", "content": "done"}


def said(held: Conversations, response_id: str, output: Item, previous: str | None = None) -> None:
    """One answered call."""
    held.commit(held.begin(previous), response_id, [], [output], 100)


def test_finished_episodes_do_not_fill_memory() -> None:
    """Far below the bound in number, the oldest that ended in words are forgotten; those that called a tool stay."""
    held = Conversations(ConversationBounds())
    said(held, "working", CALL)
    for number in range(3 * RESTED):
        said(held, f"first_{number}", CALL)
        said(held, f"last_{number}", TEXT, f"first_{number}")

    assert len(held) == RESTED + 1
    held.begin("working")
    with pytest.raises(PreviousResponseNotFound):
        held.begin("last_0")
    held.begin(f"last_{3 * RESTED - 1}")


def test_a_conversation_that_goes_on_after_words_is_kept() -> None:
    """It has called a tool since: it is not over."""
    held = Conversations(ConversationBounds())
    said(held, "a1", TEXT)
    said(held, "a2", CALL, "a1")
    for number in range(RESTED + 1):
        said(held, f"other_{number}", TEXT)
    held.begin("a2")


def test_bytes_are_given_back() -> None:
    """What is forgotten no longer counts: as many bytes are held as if the rest had never been there."""
    held, fewer = Conversations(ConversationBounds()), Conversations(ConversationBounds())
    for number in range(RESTED + 200):
        said(held, f"r{number}", TEXT)
    for number in range(RESTED):
        said(fewer, f"r{number}", TEXT)
    assert held.bytes == fewer.bytes and held.forgotten == 200
