"""Which option of a multiple-choice question a text names. Naming several is naming none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from resources_server.grading import finals
from resources_server.grading.forms import Form, plain

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
NEGATION = re.compile(r"\b(?:not|never|cannot|neither|nor|hardly)\b|n['’]t\b", re.I)


def options_of(choices: Sequence[str] | Mapping[str, str] | None, expected: str) -> dict[str, str]:
    if isinstance(choices, Mapping):
        return {str(label): str(text) for label, text in choices.items()}
    if choices is None:
        return dict.fromkeys("ABCDEFGHIJ", "")
    if all(len(str(each)) == 1 for each in choices):
        return {str(each): "" for each in choices}
    if str(expected).strip().strip("()").upper() in LETTERS[: len(choices)]:
        return dict(zip(LETTERS, map(str, choices), strict=False))
    return {str(each): str(each) for each in choices}


def option_of(said: str, options: Mapping[str, str]) -> str | None:
    """The one option that `said` is: its label, its text, or both when they agree."""
    text = plain(finals.unwrapped(said)).strip(" .,;:")
    text = re.sub(r"^(?:the\s+)?(?:option|choice|answer)\s+", "", text, flags=re.I)
    form = Form(unicode="nfkc", collapse=True)
    for label, meaning in options.items():
        if form.of(text) in {form.of(label), form.of(f"({label})"), form.of(f"{label})"), form.of(f"[{label}]")}:
            return label
        if meaning and form.of(text.rstrip(".")) == form.of(meaning.rstrip(".")):
            return label
    both = re.match(r"[(\[]?(\w{1,3})[)\].:,-]+\s*(.+)$", text, re.S)
    if both:
        named = option_of(both.group(1), dict.fromkeys(options, ""))
        if named and form.of(both.group(2).rstrip(".")) == form.of(options[named].rstrip(".")):
            return named
    return None


def named_in(said: str, options: Mapping[str, str]) -> str | None:
    """The one option that a sentence settles on; None when it names none, several, or says what it is not."""
    if NEGATION.search(said):
        return None
    labels = "|".join(re.escape(label) for label in sorted(options, key=len, reverse=True))
    named = re.findall(
        rf"\(({labels})\)|\b(?:[Oo]ption|[Cc]hoice|[Aa]nswer)\s+({labels})\b|\*\*\(?({labels})\)?\*\*"
        rf"|(?<![\w'])({labels})(?=\s*(?:[).:,;]|$|\n|\b(?:or|and)\b))",
        plain(said),
    )
    labelled = {label for groups in named for label in groups if label}
    folded = plain(said).casefold()
    meant = {
        label
        for label, meaning in options.items()
        if meaning and re.search(rf"(?<!\w){re.escape(plain(meaning).casefold())}(?!\w)", folded)
    }
    bare = re.findall(rf"(?<![\w'])({labels})(?![\w'])(?! [a-z])", plain(said))  # `A dog` has an article, no label
    return (labelled | meant).pop() if (labelled | meant) and len(labelled | meant | set(bare)) == 1 else None
