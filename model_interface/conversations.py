"""What `previous_response_id` points at: the items, the parameters and the backend's own memory of a conversation so far.

Bounded in number, bytes and age: what goes over a bound is forgotten, the caller is told `previous_response_not_found` and sends all of
it again. Those whose last answer called no tool go first, so that a long run of short episodes does not fill memory with finished ones.
A conversation is a line of steps; continuing from a step that is not the last makes a new one (`fork`), so that retries and
branches never disturb each other.
"""

import os
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Any

from model_interface.settings import ConversationBounds
from model_interface.tokens import ID_BYTES, Thread
from wire.errors import PreviousResponseNotFound
from wire.responses import Item

RESTED = 500  # conversations kept whose last answer called no tool: most of them are over
STEP_BYTES = 600  # what Python keeps for a step beside its text, about
EXPANSION = 3  # a JSON text becomes items (dicts) and the backend's serialised messages


@dataclass(slots=True)
class Step:
    """One model call that was answered."""

    response_id: str
    items_end: int  # how many of the conversation's items there were after it
    tokens_end: int  # how many of the thread's token ids there were after it
    thread_key: object | None  # the thread that these ids are in; None = there were none


@dataclass(slots=True)
class Conversation:
    """Everything said so far, by both sides."""

    items: list[Item] = field(default_factory=list)
    params: dict[str, Any] = field(default_factory=dict)
    """Of the last call, without its input."""
    steps: list[Step] = field(default_factory=list)
    thread: Thread | None = None
    """Token ids so far, where the backend has them; None before the first step, or where they were lost."""
    memory: Any = None
    """The backend's own; None = to be made from `items`."""
    resumed: bool = False
    """It was sent again whole by a caller that had lost it here: its first step is not the first one."""
    busy: bool = False
    size: int = 0
    used_at: float = 0.0

    @property
    def turn(self) -> int:
        """How many model calls have been answered in it."""
        return len(self.steps)

    @property
    def first(self) -> bool:
        """Whether no model call of it has been answered, here or before it was sent again."""
        return not self.steps and not self.resumed

    def fork(self, step: int) -> "Conversation":
        """A new conversation that knows the first `step + 1` steps of this one."""
        last = self.steps[step]
        same = self.thread is not None and last.thread_key is self.thread.key
        thread = self.thread.cut(last.tokens_end) if self.thread is not None and same else None
        size = self.size * (step + 1) // len(self.steps)  # about: what the steps share counts for each fork
        steps = [*self.steps[:step], replace(last, thread_key=thread.key if thread is not None else None)]
        return Conversation(self.items[: last.items_end], self.params, steps, thread, resumed=thread is None, size=size)


class Conversations:
    """The conversations held, found by the id of any response in them.

    A conversation is used by one call at a time: `begin`, then `commit` or `abandon`.
    """

    def __init__(self, bounds: ConversationBounds) -> None:
        self._bounds = bounds
        self._steps: dict[str, tuple[Conversation, int]] = {}
        self._used: OrderedDict[int, Conversation] = OrderedDict()
        self._rested: OrderedDict[int, Conversation] = OrderedDict()  # those of them that are likely to be over
        self.bytes = 0
        self.forgotten = 0
        """Conversations dropped so far because of a bound."""

    def __len__(self) -> int:
        return len(self._used)

    def begin(self, previous_response_id: str | None) -> Conversation:
        """The conversation that a call continues, for its use alone.

        Raises:
            PreviousResponseNotFound: it was never here, or has been forgotten.
        """
        if previous_response_id is None:
            return Conversation(busy=True)
        self._expire()
        found = self._steps.get(previous_response_id)
        if found is None:
            raise PreviousResponseNotFound(
                f"previous response {previous_response_id!r} is not held here (any more); send the whole conversation",
                param="previous_response_id",
            )
        conversation, step = found
        if conversation.busy or step + 1 != len(conversation.steps):
            conversation = conversation.fork(step)
        conversation.busy = True
        return conversation

    def commit(
        self, conversation: Conversation, response_id: str, new: list[Item], output: list[Item], size: int
    ) -> None:
        """A call was answered: remember what it added.

        Args:
            response_id: The answer's id.
            new: The items that the caller sent.
            output: The items that the model made.
            size: Bytes of the JSON text of both.
        """
        conversation.items += new
        conversation.items += output
        thread = conversation.thread
        tokens_end, key = (thread.length, thread.key) if thread is not None else (0, None)
        before = conversation.steps[-1].tokens_end if conversation.steps else 0
        conversation.steps.append(Step(response_id, len(conversation.items), tokens_end, key))
        conversation.busy = False
        conversation.used_at = time.monotonic()
        grown = EXPANSION * size + STEP_BYTES + ID_BYTES * max(0, tokens_end - before)
        if id(conversation) in self._used:
            self._used.move_to_end(id(conversation))
        else:
            self._used[id(conversation)] = conversation
            self.bytes += conversation.size  # of a fork
        self.bytes += grown
        conversation.size += grown
        self._steps[response_id] = (conversation, len(conversation.steps) - 1)
        self._rested.pop(id(conversation), None)
        if not any(item.get("type") == "function_call" for item in output):
            self._rested[id(conversation)] = conversation
        self._bound(conversation)

    def abandon(self, conversation: Conversation) -> None:
        """A call failed: the conversation is as it was before, except that the backend's memory has to be made again.

        Ids that the call may have added already are dropped with all others: the next step starts a new segment.
        """
        conversation.busy = False
        conversation.memory = None
        last, thread = conversation.steps[-1] if conversation.steps else None, conversation.thread
        if thread is not None and (last is None or (last.thread_key, last.tokens_end) != (thread.key, thread.length)):
            conversation.thread, conversation.resumed = None, True

    def _bound(self, newest: Conversation) -> None:
        while len(self._rested) > RESTED:
            self._forget(next(iter(self._rested.values())))
        while len(self._used) > self._bounds.max or self.bytes > self._bounds.max_bytes:
            oldest = next(iter(self._used.values()))
            self._forget(oldest)
            if oldest is newest:
                return

    def _expire(self) -> None:
        limit = time.monotonic() - self._bounds.ttl_s
        while self._used:
            oldest = next(iter(self._used.values()))
            if oldest.used_at >= limit:
                return
            self._forget(oldest)

    def _forget(self, conversation: Conversation) -> None:
        del self._used[id(conversation)]
        self._rested.pop(id(conversation), None)
        self.bytes -= conversation.size
        self.forgotten += 1
        for step in conversation.steps:
            held = self._steps.get(step.response_id)
            if held is not None and held[0] is conversation:
                del self._steps[step.response_id]


def new_id(prefix: str) -> str:
    """An id that nobody can guess: `resp_` and 128 random bits."""
    return f"{prefix}{os.urandom(16).hex()}"
