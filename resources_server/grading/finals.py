r"""Where in a model's text its final answer stands.

One answer is judged, never several: the last one that is marked (`<answer>…</answer>`, `\boxed{…}`, `#### …`,
`Answer: …`, `the answer is …`). Marks with different answers that follow each other with no reasoning between
them are a spray, and a spray has no answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>|^.*?</think(?:ing)?>", re.S | re.I)
FENCE = re.compile(r"^```[\w+-]*\n(.*?)\n?```$", re.S)
TAGGED = re.compile(r"<answer>(.*?)</answer>", re.S | re.I)
HASHED = re.compile(r"^[ \t]*####[ \t]*(\S.*?)[ \t]*$", re.M)
SAID = re.compile(
    r"\b(?:final\s+answer(?:\*\*|__)?[ \t]*\n|answers?(?:\*\*|__)?[ \t]*(?:\bis\b|\bare\b|=|:|\uff1a))"
    r"[ \t]*(?:\*\*|__)?[ \t]*:?\s*(?P<said>\S.*)",
    re.I,
)
SENTENCE_END = re.compile(
    r"(?<=[\w)\]}*`\"'%$°])[.;!](?=\s|$)|,?\s+(?:because|since|as|which|where|given that|so that)\s", re.I
)
JOINERS = re.compile(r"\b(?:or|and|also|maybe|perhaps|either|final|answers?|the|is|are|my)\b|[\W_]+", re.I)
WRAPPERS = (("**", "**"), ("__", "__"), ("*", "*"), ("`", "`"), ('"', '"'), ("'", "'"))
QUOTES = (("\u201c", "\u201d"), ("\u2018", "\u2019"), ("\u00ab", "\u00bb"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"))


@dataclass(frozen=True)
class Final:
    """The answer a text settles on. `marked` says that the text itself pointed at it; `text` is None when it
    settles on none, and `note` says why."""

    text: str | None
    marked: bool
    note: str = ""


def final(text: str) -> Final:
    """The last marked answer, or the whole text (reasoning between think tags removed) when nothing is marked."""
    text = THINKING.sub("", text).strip()
    for marks in (_tagged(text), _boxed(text), _hashed(text), _said(text)):
        if marks:
            return _last(text, marks)
    fenced = FENCE.match(text)
    return Final(fenced.group(1) if fenced else text, marked=False)


def boxed(text: str) -> str | None:
    r"""What stands in the last complete `\boxed{…}` or `\fbox{…}`, braces balanced; None when there is none."""
    marks = _boxed(text)
    return marks[-1].text if marks else None


def unwrapped(text: str) -> str:
    r"""Without what only decorates: bold and code marks, quotes, `$…$`, `\text{…}`, a final full stop."""
    previous = None
    while previous != text:
        previous, text = text, text.strip()
        for left, right in (*WRAPPERS, *QUOTES):
            if len(text) > len(left) + len(right) and text.startswith(left) and text.endswith(right):
                inner = text[len(left) : -len(right)]
                text = inner if left not in inner else text
        styled = re.fullmatch(r"\\(?:text|textbf|mathrm|mathbf|mbox)\s*\{([^{}]*)\}", text)
        text = styled.group(1) if styled else text
        if re.search(r"[^\s.]\.$", text):
            text = text[:-1]
    return text


@dataclass(frozen=True)
class Mark:
    start: int
    end: int
    text: str


def _tagged(text: str) -> list[Mark]:
    return [Mark(m.start(), m.end(), m.group(1)) for m in TAGGED.finditer(text)]


def _hashed(text: str) -> list[Mark]:
    return [Mark(m.start(), m.end(), m.group(1)) for m in HASHED.finditer(text)]


def _boxed(text: str) -> list[Mark]:
    marks = []
    for opening in re.finditer(r"\\(?:boxed|fbox)\s*\{", text):
        end = _closing(text, opening.end())
        if end is not None:
            marks.append(Mark(opening.start(), end + 1, text[opening.end() : end]))
    return marks


def _closing(text: str, start: int) -> int | None:
    """Where the brace opened before `start` is closed; an escaped brace does not count."""
    depth, index = 1, start
    while index < len(text):
        if text[index] == "\\":
            index += 1
        elif text[index] in "{}":
            depth += 1 if text[index] == "{" else -1
            if depth == 0:
                return index
        index += 1
    return None


def _said(text: str) -> list[Mark]:
    """`Answer: …` to the end of its sentence; a second mark on the same line is a mark of its own."""
    marks, start = [], 0
    while (found := SAID.search(text, start)) is not None:
        following = SAID.search(text, found.start("said"), found.end("said"))
        stop = following.start() if following else found.end("said")
        said = SENTENCE_END.split(text[found.start("said") : stop], maxsplit=1)[0]
        end = found.start("said") + len(said)
        said = (
            said.rstrip().removesuffix("**") if said.count("**") % 2 else said
        )  # `Answer: **Paris**`, opened before it
        marks.append(Mark(found.start(), end, said))
        start = stop
    return marks


def _last(text: str, marks: list[Mark]) -> Final:
    last = marks[-1]
    if len(marks) > 1:
        before = marks[-2]
        differs = unwrapped(before.text).casefold() != unwrapped(last.text).casefold()
        if differs and not JOINERS.sub("", text[before.end : last.start]):
            return Final(None, marked=True, note="several different answers are marked, one after the other")
    return Final(last.text.strip(), marked=True)
