r"""Where in a model's text its final answer stands.

One answer is judged, never several: the last one that is marked (`<answer>…</answer>`, `\boxed{…}`, `#### …`,
`Answer: …`, `the answer is …`). Marks with different answers that follow each other with no reasoning between
them are a spray, and a spray has no answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_CHARS = 100_000  # from the end: a final answer stands there, and a flood costs no more than this
THOUGHT = re.compile(r"</think(?:ing)?>", re.I)
FENCE = re.compile(r"^```[\w+-]*\n(.*?)\n?```$", re.S)
TAG = re.compile(r"<(/?)answer>", re.I)
BRACES = re.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", re.S)
HASHED = re.compile(r"^[ \t]*####[ \t]*(\S.*?)[ \t]*$", re.M)
SAID = re.compile(
    r"\b(?:final\s+answer(?:\*\*|__)?[ \t]*\n|answers?(?:\*\*|__)?[ \t]*(?:\bis\b|\bare\b|=|:|\uff1a))"
    r"[ \t]*(?:\*\*|__)?[ \t]*:?\s*(?=\S)",
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
    """The last marked answer, or the whole text when nothing is marked; what stands before the end of a think tag is
    reasoning and does not count."""
    text = _spoken(text)
    for marks in (_tagged(text), _boxed(text), _hashed(text), _said(text)):
        if marks:
            return _last(text, marks)
    fenced = FENCE.match(text)
    return Final(fenced.group(1) if fenced else text, marked=False)


def boxed(text: str) -> str | None:
    r"""What stands in the last complete `\boxed{…}` or `\fbox{…}`, braces balanced; None when there is none."""
    marks = _boxed(text[-MOST_CHARS:])
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


def _spoken(text: str) -> str:
    text = text[-MOST_CHARS:]
    ends = [match.end() for match in THOUGHT.finditer(text)]
    return text[ends[-1] :].strip() if ends else text.strip()


def _tagged(text: str) -> list[Mark]:
    """From the nearest opening tag to each closing one."""
    marks, opened = [], None
    for tag in TAG.finditer(text):
        if not tag[1]:
            opened = tag
        elif opened is not None:
            marks.append(Mark(opened.start(), tag.end(), text[opened.end() : tag.start()]))
            opened = None
    return marks


def _hashed(text: str) -> list[Mark]:
    return [Mark(m.start(), m.end(), m.group(1)) for m in HASHED.finditer(text)]


def _boxed(text: str) -> list[Mark]:
    """Complete boxes in the order in which they open; an escaped brace does not count."""
    marks: list[Mark] = []
    opened: list[re.Match[str]] = []
    for brace in BRACES.finditer(text):
        if brace[0][-1] == "{" and brace[0] != "\\{":
            opened.append(brace)
        elif brace[0] == "}" and opened:
            start = opened.pop()
            if len(start[0]) > 1:
                marks.append(Mark(start.start(), brace.end(), text[start.end() : brace.start()]))
    return sorted(marks, key=lambda mark: mark.start)


def _said(text: str) -> list[Mark]:
    """`Answer: …` to the end of its sentence; a second mark on the same line is a mark of its own."""
    found = list(SAID.finditer(text))
    starts = [match.start() for match in found[1:]] + [len(text)]
    marks = []
    for match, following in zip(found, starts, strict=False):
        line = text.find("\n", match.end(), following)
        said = text[match.end() : following if line < 0 else line]
        if sentence := SENTENCE_END.search(said):
            said = said[: sentence.start()]
        end = match.end() + len(said)
        said = (
            said.rstrip().removesuffix("**") if said.count("**") % 2 else said
        )  # `Answer: **Paris**`, opened before it
        marks.append(Mark(match.start(), end, said))
    return marks


def _last(text: str, marks: list[Mark]) -> Final:
    last = marks[-1]
    if len(marks) > 1:
        before = marks[-2]
        differs = unwrapped(before.text).casefold() != unwrapped(last.text).casefold()
        if differs and not JOINERS.sub("", text[before.end : last.start]):
            return Final(None, marked=True, note="several different answers are marked, one after the other")
    return Final(last.text.strip(), marked=True)
