"""Responses items as the chat messages a server accepts: the record may be wrong in every way, the wire never is.

Rules, each of them checked by the strict upstream of `wire.testing`:
- the calls of one turn are one assistant message, in order, with the turn's text and thoughts;
- arguments are the text of a JSON object, names match `^[A-Za-z0-9_-]{1,64}$`, no call id occurs twice;
- each call is answered before anything else is said, and nothing is answered that was not called;
- an assistant message has content or calls; beside calls an absent content is "", since templates print null as "None".
What the model really wrote stays in the items.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Literal

from model_interface.translate.content import assistant_text, chat_content, item_thoughts, wire_arguments, wire_name
from model_interface.translate.errors import InvalidRequest
from model_interface.translate.reasoning import FIELDS, with_tags

Item = dict[str, Any]
Message = dict[str, Any]
ThoughtsAs = Literal["reasoning_content", "reasoning", "tags", "drop"]

UNANSWERED = "No output was recorded for this call."


def items_to_messages(
    items: Sequence[Item], instructions: str | None = None, *, thoughts_as: ThoughtsAs = "reasoning_content"
) -> list[Message]:
    """The chat messages of a whole conversation; `MessageBuilder` does the same as it grows.

    Raises:
        InvalidRequest: an item has no counterpart in chat, or is the output of a call that nobody made.
    """
    builder = MessageBuilder(instructions, thoughts_as=thoughts_as)
    builder.append(items)
    return builder.take()


class MessageBuilder:
    """The chat messages of one conversation; costs what is new, and never rewrites a message that `take` has given out.

    Args:
        instructions: System prompt that comes first.
        thoughts_as: Where earlier thoughts ride on their assistant message; a server that gave them under the other of the two field
            names gets them back under its own.
    """

    def __init__(self, instructions: str | None = None, *, thoughts_as: ThoughtsAs = "reasoning_content") -> None:
        self.messages: list[Message] = []
        self.call_ids: set[str] = set()
        """Every call id on the wire so far; `chat_to_response(taken=…)` makes ids that differ from them."""
        self._thoughts_as = thoughts_as
        self._seen = 0  # items so far, for error messages
        self._turn: _Turn | None = None  # the assistant's turn that is being put together
        self._waiting: dict[str, deque[str]] = {}  # caller's call id -> wire ids without an answer, oldest first
        if instructions:
            self.messages.append({"role": "system", "content": instructions})

    def append(self, items: Sequence[Item]) -> None:
        """Add items that `check_items` has passed.

        Raises:
            InvalidRequest: an item has no counterpart in chat, or is the output of a call that nobody made. The builder then holds what
                came before it, and is of no more use.
        """
        first, moved = self._seen, set[int]()
        for position, item in enumerate(items):
            self._seen = first + position
            if position in moved:
                continue
            kind = item.get("type", "message")
            if kind == "function_call_output":
                self._answer(item)
                continue
            if not self._goes_on(kind, item):
                moved |= self._settle(items, position)
            if kind == "function_call":
                self._call(item)
            else:
                self._speak(kind, item)
        self._seen = first + len(items)

    def append_answer(self, message: Message, items: Sequence[Item]) -> None:
        """Add a model's answer as the very message that its server gave, repaired only where the wire needs it.

        Args:
            message: The chat message of the answer.
            items: The items it was translated to; their call ids are the ones the caller will answer.
        """
        self._settle((), 0)
        self._turn = turn = _Turn()
        text = message.get("content") if self._thoughts_as != "drop" else None  # its thoughts may be tagged in it
        if isinstance(text, str):
            turn.say(text)
        for item in items:
            kind = item.get("type")
            if kind == "function_call":
                self._call(item)
            elif kind == "message" and not isinstance(text, str):
                turn.say(assistant_text(item["content"], "answer"))
        for name in FIELDS:
            if isinstance(message.get(name), str) and message[name]:
                turn.field, turn.thoughts = name, message[name]
        self._seen += len(items)

    def take(self) -> list[Message]:
        """All messages so far, fit to be sent: every call is answered. The list is the live one; its entries are never changed."""
        self._settle((), 0)
        return self.messages

    def _goes_on(self, kind: str, item: Item) -> bool:
        """Whether the item belongs to the turn that is open: calls, and words and thoughts that stand before or among calls."""
        turn = self._turn
        if turn is None or turn.sent:
            return False
        if kind == "function_call":
            return True
        speaks = kind == "reasoning" or (kind == "message" and item.get("role") == "assistant")
        return speaks and (bool(turn.calls) or not turn.spoken)

    def _speak(self, kind: str, item: Item) -> None:
        path = f"input[{self._seen}]"
        if kind == "reasoning":
            self._open().think(item_thoughts(item, path))
        elif kind != "message":
            raise InvalidRequest(f"{path}: an item of type {kind!r} has no counterpart in Chat Completions", param=path)
        elif item["role"] == "assistant":
            self._open().say(assistant_text(item["content"], f"{path}.content"))
        else:
            role = "system" if item["role"] == "developer" else item["role"]  # few chat templates know `developer`
            message: Message = {"role": role, "content": chat_content(item["content"], f"{path}.content")}
            if item.get("name"):
                message["name"] = item["name"]
            self.messages.append(message)

    def _open(self) -> "_Turn":
        if self._turn is None:
            self._turn = _Turn()
        return self._turn

    def _call(self, item: Item) -> None:
        call_id = item["call_id"]
        wire_id = self._fresh(call_id)
        function = {"name": wire_name(item["name"]), "arguments": wire_arguments(item["arguments"])}
        self._open().calls.append({"id": wire_id, "type": "function", "function": function})
        self._waiting.setdefault(call_id, deque()).append(wire_id)

    def _answer(self, item: Item) -> None:
        call_id, path = item["call_id"], f"input[{self._seen}]"
        waiting = self._waiting.get(call_id)
        if not waiting:
            raise InvalidRequest(
                f"{path} is the output of call {call_id!r}, which is not waiting for one", param=f"{path}.call_id"
            )
        self._send_turn()
        content = chat_content(item["output"], f"{path}.output")
        self.messages.append({"role": "tool", "tool_call_id": waiting.popleft(), "content": content})
        if not waiting:
            del self._waiting[call_id]

    def _send_turn(self) -> None:
        if self._turn is not None and not self._turn.sent:
            self._turn.sent = True
            message = self._turn.message(self._thoughts_as)
            if message is not None:
                self.messages.append(message)

    def _settle(self, items: Sequence[Item], position: int) -> set[int]:
        """End the open turn: outputs that come late in `items` are moved up (their positions are returned), the rest made up."""
        self._send_turn()
        moved: set[int] = set()
        if self._waiting:
            moved = self._move_up(items, position)
            for wire_id in [each for waiting in self._waiting.values() for each in waiting]:
                self.messages.append({"role": "tool", "tool_call_id": wire_id, "content": UNANSWERED})
            self._waiting.clear()
        self._turn = None
        return moved

    def _move_up(self, items: Sequence[Item], position: int) -> set[int]:
        moved, called_again = set[int](), set[str]()
        for later in range(position, len(items)):
            item = items[later]
            if item.get("type") == "function_call":
                called_again.add(item["call_id"])  # outputs from here on are that call's
            elif item.get("type") == "function_call_output":
                call_id = item["call_id"]
                if call_id in self._waiting and call_id not in called_again:
                    self._answer(item)
                    moved.add(later)
        return moved

    def _fresh(self, call_id: str) -> str:
        """The caller's id, with a number behind it where it is empty or was used before."""
        wire_id, number = call_id or "call_1", 2
        while wire_id in self.call_ids:
            wire_id, number = f"{call_id or 'call'}_{number}", number + 1
        self.call_ids.add(wire_id)
        return wire_id


class _Turn:
    """One turn of the assistant, until it is a message."""

    __slots__ = ("calls", "field", "sent", "spoken", "text", "thoughts")

    def __init__(self) -> None:
        self.text, self.thoughts = "", ""
        self.spoken = self.sent = False
        self.calls: list[dict[str, Any]] = []
        self.field: str | None = None  # where this server itself put the thoughts

    def say(self, text: str) -> None:
        self.text, self.spoken = self.text + text, True

    def think(self, thoughts: str) -> None:
        self.thoughts = f"{self.thoughts}\n\n{thoughts}" if self.thoughts and thoughts else self.thoughts or thoughts

    def message(self, thoughts_as: ThoughtsAs) -> Message | None:
        """The assistant message; None where there is nothing that a server would take."""
        thoughts = "" if thoughts_as == "drop" else self.thoughts
        text = self.text
        if thoughts and (thoughts_as == "tags" or not (text or self.calls)):
            text, thoughts = with_tags(thoughts, text).rstrip("\n"), ""  # thoughts alone are no content elsewhere
        if not text and not self.calls:
            if not self.spoken:
                return None
            text = " "  # an empty answer: no server refuses this, and the roles go on alternating
        message: Message = {"role": "assistant", "content": text}
        if thoughts:
            message[self.field or thoughts_as] = thoughts
        if self.calls:
            message["tool_calls"] = self.calls
        return message
