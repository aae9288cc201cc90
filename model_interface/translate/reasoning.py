"""Where a model's thoughts end and its answer begins: fields of their own, or `<think>` tags in the text.

Three settings. `auto`: fields where there are any, else leading tags in the text. `think`: as `auto`, for a model whose prompt template
has already opened the tag, so that a text cut off before `</think>` is all thought. `off`: the text is left as it is.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

Reasoning = Literal["auto", "think", "off"]

OPEN, CLOSE = "<think>", "</think>"
FIELDS = ("reasoning_content", "reasoning")  # vLLM before 0.12 and DeepSeek; vLLM since, OpenRouter


def reasoning_field(message: dict[str, Any]) -> str:
    """The reasoning a server put beside the text, or ""."""
    for name in FIELDS:
        value = message.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list):
            return "".join(
                part["text"] for part in value if isinstance(part, dict) and isinstance(part.get("text"), str)
            )
    return ""


def split_thoughts(text: str, setting: Reasoning = "auto", *, cut: bool = False) -> tuple[str, str]:
    """(thoughts, answer) of a text that may hold `<think>` tags: several leading blocks, never closed, or closed only.

    Args:
        text: What the model wrote.
        setting: See the module.
        cut: The token limit ended the text.
    """
    if setting == "off" or not text:
        return "", text
    thoughts: list[str] = []
    rest = text
    while rest.lstrip().startswith(OPEN):
        thought, closed, rest = rest.lstrip()[len(OPEN) :].partition(CLOSE)
        thoughts.append(thought)
        if not closed:
            return _join(thoughts), ""
    if not thoughts:
        before, closed, after = rest.partition(CLOSE)
        if closed and OPEN not in before:
            return _join([before]), after.lstrip("\n")
        if setting == "think" and cut and not closed:
            return _join([rest]), ""
        return "", text
    return _join(thoughts), rest.lstrip("\n")


def with_tags(thoughts: str, answer: str) -> str:
    """One text that `split_thoughts` takes apart again."""
    return f"{OPEN}\n{thoughts}\n{CLOSE}\n\n{answer}" if thoughts else answer


class ThoughtSplitter:
    """`split_thoughts` for a text that comes in pieces; feeds out what is certain, holds back what might be part of a tag.

    A closing tag without an opening one is found only under `think`, which holds a text without tags back until it ends; under `auto`
    the text before it has been passed on by then.
    """

    def __init__(self, setting: Reasoning = "auto") -> None:
        self._held = ""
        self._think = setting == "think"
        self._state = "answer" if setting == "off" else "start"
        self._thought_before = False

    def feed(self, piece: str) -> tuple[str, str]:
        """(more thoughts, more of the answer) that the text so far makes certain."""
        if self._state == "answer":
            return "", piece
        self._held += piece
        thoughts, answer, state = "", "", ""
        while state != self._state:
            state = self._state
            more, said = self._STEPS[state](self)
            thoughts, answer = thoughts + more, answer + said
        return thoughts, answer

    def close(self, *, cut: bool = False) -> tuple[str, str]:
        """What was held back, now that no more comes; `cut`: by the token limit."""
        held, self._held = self._held, ""
        if self._state == "thought" or (self._state == "opened"):
            return held.strip("\n"), ""
        if self._state == "unmarked" or (self._state == "start" and self._think):
            return split_thoughts(held, "think", cut=cut)
        return "", held.lstrip("\n") if self._state == "between" else held

    def _start(self) -> tuple[str, str]:
        """Nothing but white space, or part of a tag, so far; `between` blocks likewise."""
        text = self._held.lstrip()
        if text.startswith(OPEN):
            self._held, self._state = text[len(OPEN) :], "opened"
        elif not OPEN.startswith(text):
            if self._state == "between":
                self._held = self._held.lstrip("\n")
            self._state = "unmarked" if self._think and self._state == "start" else "answer"
        return "", ""

    def _opened(self) -> tuple[str, str]:
        """Just after an opening tag: the newlines there are the tag's."""
        self._held = self._held.lstrip("\n")
        if not self._held or (CLOSE.startswith(self._held) and self._held != CLOSE):
            return "", ""
        self._state = "thought"
        joint = "\n\n" if self._thought_before and not self._held.startswith(CLOSE) else ""
        return joint, ""

    def _thought(self) -> tuple[str, str]:
        thought, closed, rest = self._held.partition(CLOSE)
        if closed:
            self._held, self._state = rest, "between"
            self._thought_before = self._thought_before or bool(thought.strip())
            return thought.rstrip("\n"), ""
        keep = _tail_of_tag(self._held)
        self._held, out = self._held[len(self._held) - keep :], self._held[: len(self._held) - keep]
        self._thought_before = self._thought_before or bool(out.strip())
        return out, ""

    def _unmarked(self) -> tuple[str, str]:
        """No opening tag, and the template may have given one: wait for the closing one."""
        before, closed, after = self._held.partition(CLOSE)
        if OPEN in before:  # an opening tag in mid-text is text, as in `split_thoughts`
            self._state = "answer"
            return "", ""
        if not closed:
            return "", ""
        self._held = after.lstrip("\n")
        self._state = "trailing" if not self._held else "answer"
        return before.strip("\n"), ""

    def _trailing(self) -> tuple[str, str]:
        self._held = self._held.lstrip("\n")
        if self._held:
            self._state = "answer"
        return "", ""

    def _answer(self) -> tuple[str, str]:
        said, self._held = self._held, ""
        return "", said

    _STEPS: ClassVar[dict[str, Callable[["ThoughtSplitter"], tuple[str, str]]]] = {
        "start": _start,
        "between": _start,
        "opened": _opened,
        "thought": _thought,
        "unmarked": _unmarked,
        "trailing": _trailing,
        "answer": _answer,
    }


def _join(thoughts: list[str]) -> str:
    return "\n\n".join(each for each in (thought.strip("\n") for thought in thoughts) if each.strip())


def _tail_of_tag(text: str) -> int:
    """How many characters at the end could belong to a closing tag, newlines before it included."""
    keep = next((n for n in range(min(len(CLOSE) - 1, len(text)), 0, -1) if CLOSE.startswith(text[-n:])), 0)
    while keep < len(text) and text[len(text) - keep - 1] == "\n":
        keep += 1
    return keep
