"""The forms of a text that count as the same: case, outer and inner white space, Unicode composition."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

SPACE = re.compile(r"\s+")  # in str patterns \s covers no-break, thin and ideographic spaces
INVISIBLE = {ord(char): None for char in "\u200b\u200c\u200d\u2060\ufeff\u00ad"}  # zero-width and soft hyphen


@dataclass(frozen=True)
class Form:
    """Which differences between two texts do not matter.

    `collapse` makes any run of white space (no-break spaces too) one space; without it inner spaces count.
    `unicode` is the normal form compared in: nfkc also takes full-width letters, ligatures and superscripts for
    their plain ones.
    """

    case: Literal["ignore", "exact"] = "ignore"
    trim: bool = True
    unicode: Literal["nfc", "nfkc", "none"] = "nfc"
    collapse: bool = False

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("case", self.case, ("ignore", "exact")),
            ("unicode", self.unicode, ("nfc", "nfkc", "none")),
        ):
            if value not in allowed:
                raise ValueError(f"match option {name}: {value!r} is none of {', '.join(allowed)}")

    def of(self, text: str) -> str:
        """`text` in this form: two texts are the same exactly when their forms are equal."""
        text = self._composed(text)
        if self.case == "ignore":
            text = self._composed(text.casefold())  # folding can take a composed letter apart
        if self.collapse:
            text = SPACE.sub(" ", text)
        return _trim(text) if self.trim else text

    def _composed(self, text: str) -> str:
        if self.unicode == "none":
            return text
        return unicodedata.normalize("NFKC" if self.unicode == "nfkc" else "NFC", text)


EXACT = Form(case="exact")


def plain(text: str) -> str:
    """`text` for reading numbers, dates and choices in it: NFKC, no invisible characters, single spaces."""
    text = unicodedata.normalize("NFKC", text).translate(INVISIBLE)
    return SPACE.sub(" ", text).strip()


def _trim(text: str) -> str:
    return text.strip().strip("\u200b\u2060\ufeff").strip()
