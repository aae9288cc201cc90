"""How a conversation goes on in tokens: the ids that new messages add behind what was sampled, never a new rendering of what came before.

A chat template renders whole conversations. What it puts between the end of a model's turn and the next one is found by rendering a
stand-in conversation with and without the new messages; so a step costs what is new, and the ids so far stay what the model saw and said.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from model_interface.backend import Request, same_prompt
from model_interface.tokens import Fidelity, Thread
from model_interface.translate.history import Message
from wire import strict_json

STAND_IN, OTHER = "ok", "no"  # two contents that differ, so that what follows the content can be told from it
KEPT = 256  # rendered stand-ins


class Tokenizer(Protocol):
    """A server that renders messages with its chat template and gives the token ids."""

    async def tokenize(self, messages: Sequence[Message], *, generation: bool, tools: Any = None) -> list[int]:
        """Ids of the rendered messages; with the opening of the model's turn where `generation`."""
        ...


class Continuation:
    """The ids between turns under one server's chat template."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._rendered: dict[bytes, list[int]] = {}
        self._shows_ids: bool | None = None  # whether the template renders call ids; None = not seen yet

    async def prompt(
        self, request: Request, messages: Sequence[Message], *, tools: Any = None
    ) -> tuple[Thread, list[int], Fidelity]:
        """The ids so far and those that are new, and whether these go on from those of the step before.

        Args:
            request: Whose conversation goes on.
            messages: All of it, rendered anew only where the ids cannot go on.
            tools: As the template takes them, for a whole rendering.
        """
        conversation, thread = request.conversation, request.conversation.thread
        if thread is not None and not same_prompt(request):
            conversation.resumed, thread = True, None
        if thread is not None:
            more = await self.after(thread.end, new_messages(messages))
            if more is not None:
                return thread, more, "exact"
        whole = await self._tokenizer.tokenize(messages, generation=True, tools=tools)
        if thread is None:
            return Thread(), whole, "exact" if conversation.first else "forked"
        if whole[: thread.length] == thread.ids:
            return thread, whole[thread.length :], "exact"
        return Thread(), whole, "retokenized"

    async def after(self, last_id: int | None, new: Sequence[Message]) -> list[int] | None:
        """Ids to put behind a generation, so that the model goes on after `new`.

        Args:
            last_id: What the generation ended with: the model's own end of turn; None where the server ended it without one.
            new: The messages that follow.

        Returns:
            None where the template does not allow it: it ends a turn otherwise, so that this one was cut off; or it renders what came
            before differently once something follows.
        """
        if not new:
            return None
        if new[0]["role"] == "tool" and not await self._call_ids_shown():
            new = _renamed(new)  # so that the stand-in is the same for every step, and rendered once
        before = _stand_in(new, STAND_IN)
        ended = await self._render(before)
        whole = await self._tokenizer.tokenize([*before, *new], generation=True)
        if whole[: len(ended)] != ended or len(whole) == len(ended):
            return None
        start = len(ended) - await self._ending(last_id, new, ended)
        return whole[start:] if start < len(ended) or last_id == ended[-1] else None

    async def _call_ids_shown(self) -> bool:
        if self._shows_ids is None:
            one, other = (
                [{"role": "tool", "tool_call_id": each, "content": STAND_IN}] for each in ("call_a", "call_b")
            )
            rendered = [await self._render([*_stand_in(each, STAND_IN), *each]) for each in (one, other)]
            self._shows_ids = rendered[0] != rendered[1]
        return self._shows_ids

    async def _ending(self, last_id: int | None, new: Sequence[Message], ended: list[int]) -> int:
        """How many ids of the template's end of turn are still to come."""
        if last_id is not None:
            return ended[::-1].index(last_id) if last_id in ended else 0
        return _common_suffix(ended, await self._render(_stand_in(new, OTHER)))

    async def _render(self, messages: Sequence[Message]) -> list[int]:
        key = strict_json.dumps(list(messages))
        known = self._rendered.get(key)
        if known is None:
            if len(self._rendered) >= KEPT:
                self._rendered.clear()
            known = self._rendered[key] = await self._tokenizer.tokenize(messages, generation=False)
        return known


def new_messages(messages: Sequence[Message]) -> list[Message]:
    """The messages behind the last one that the model made."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] == "assistant":
            return list(messages[index + 1 :])
    return []


def _stand_in(new: Sequence[Message], content: str) -> list[Message]:
    """A user's and a model's message after which `new` may follow: with calls where it begins with their outputs."""
    calls = []
    for message in new:
        if message["role"] != "tool":
            break
        function = {"name": content, "arguments": "{}"}
        calls.append({"id": message["tool_call_id"], "type": "function", "function": function})
    model: Message = {"role": "assistant", "content": content}
    if calls:
        model["tool_calls"] = calls
    return [{"role": "user", "content": STAND_IN}, model]


def _renamed(new: Sequence[Message]) -> list[Message]:
    """The messages with call ids that are the same at every step."""
    return [
        {**message, "tool_call_id": f"call_{index}"} if message["role"] == "tool" else message
        for index, message in enumerate(new)
    ]


def _common_suffix(one: list[int], other: list[int]) -> int:
    length = 0
    for left, right in zip(reversed(one), reversed(other), strict=False):
        if left != right:
            break
        length += 1
    return length
