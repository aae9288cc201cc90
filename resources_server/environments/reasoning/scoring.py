"""From a text to its answer, and from an answer to a score of 0 to 1."""

import re
from typing import Any

OPENED, CLOSED = re.compile("<answer>", re.IGNORECASE), re.compile("</answer>", re.IGNORECASE)
NAMED = re.compile(r"(?:final\s+)?answer\s*(?:is|:)\s*(.+)", re.IGNORECASE)
NUMBER = re.compile(r"^[-+]?\d+(?:\.\d+)?$")
WRAPPING = " \t\r\n.*`\"'$"


def final_answer(text: str) -> str | None:
    """What the model settled on: the last tag, the last "answer: …", or the last line."""
    found = _tagged(text) or NAMED.findall(text)[-1:]
    if found:
        return str(found[-1]).strip(WRAPPING) or None
    lines = [line.strip(WRAPPING) for line in text.splitlines()]
    return next((line for line in reversed(lines) if line), None)


def _tagged(text: str) -> list[str]:
    """What stands in the last complete tag. In linear time: a text of many opening tags must not hold up the server."""
    ends = [each.start() for each in CLOSED.finditer(text)]
    starts = [each.end() for each in OPENED.finditer(text, 0, ends[-1])] if ends else []
    return [text[starts[-1] : ends[-1]]] if starts else []


def score(kind: str, answer: str, truth: str, metadata: dict[str, Any]) -> float:
    """1 for the truth, or for anything that fulfils the same conditions where a kind has several right answers."""
    if kind == "countdown":
        return float(_reaches(answer, metadata["numbers"], metadata["target"]))
    if kind in {"sorting", "word_sorting"}:
        return _in_place(_items(answer), _items(truth))
    return float(_canonical(answer) == _canonical(truth))


def _canonical(text: str) -> str:
    """Case, spaces, thousands separators and a number's form do not matter."""
    plain = " ".join(text.strip(WRAPPING).casefold().split())
    number = plain.replace(",", "")
    if NUMBER.match(number):
        return f"{float(number):g}" if "." in number else str(int(number))
    return re.sub(r"\s*,\s*", ", ", plain)


def _items(text: str) -> list[str]:
    return [each.strip(WRAPPING + "[]()").casefold() for each in re.split(r"[,\n]", text) if each.strip()]


def _in_place(items: list[str], truth: list[str]) -> float:
    """Share of places that hold the right thing; other lengths or other things score nothing."""
    if sorted(items) != sorted(truth):
        return 0.0
    return sum(one == other for one, other in zip(items, truth, strict=True)) / len(truth)


def _reaches(expression: str, numbers: list[int], target: int) -> bool:
    """Whether an expression of the given numbers, each used at most as often as it is there, has the target's value."""
    text = expression.partition("=")[0].replace("×", "*").replace("÷", "/").replace("−", "-")
    if not re.fullmatch(r"[\d+\-*/() \t]{1,200}", text):
        return False
    used = [int(each) for each in re.findall(r"\d+", text)]
    spare = list(numbers)
    for each in used:
        if each not in spare:
            return False
        spare.remove(each)
    try:
        return _Sum(text).value() == target
    except (ValueError, ZeroDivisionError, RecursionError):
        return False


class _Sum:
    """Arithmetic of whole numbers by recursive descent; nothing of the text is ever run."""

    def __init__(self, text: str) -> None:
        self._tokens = re.findall(r"\d+|[+\-*/()]", text)
        self._place = 0

    def value(self) -> float:
        """The value of the whole text. ValueError where it is no expression."""
        found = self._sum()
        if self._place != len(self._tokens):
            raise ValueError("something is left over")
        return found

    def _sum(self) -> float:
        found = self._product()
        while self._peek() in {"+", "-"}:
            found = found + self._product() if self._take() == "+" else found - self._product()
        return found

    def _product(self) -> float:
        found = self._atom()
        while self._peek() in {"*", "/"}:
            found = found * self._atom() if self._take() == "*" else found / self._atom()
        return found

    def _atom(self) -> float:
        token = self._take()
        if token == "(":
            found = self._sum()
            if self._take() != ")":
                raise ValueError("a bracket is open")
            return found
        if token == "-":
            return -self._atom()
        return int(token)

    def _peek(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._place += 1
        return token
