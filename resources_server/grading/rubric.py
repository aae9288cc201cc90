"""Rubrics: a tree of weighted criteria, whose parts are logged with the verdict.

A leaf is a criterion with a check; a branch puts its children together by weighted mean, by all, by any, or as a gate
in front of the rest. As data (in a row or config):

    {"name": "answer", "children": [
        {"name": "right", "weight": 3, "check": {"type": "number", "expected": "42"}},
        {"name": "polite", "weight": 1, "criterion": "The answer is polite."}]}
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from resources_server.grading import answers
from resources_server.grading.grade import Grade
from resources_server.grading.judge import Judge

Check = Callable[[Any], "Grade | Awaitable[Grade]"]
Rule = Literal["mean", "all", "any", "gate"]
RULES = ("mean", "all", "any", "gate")
PASSED = 1.0  # what a criterion needs to count as met, under all, any and gate


@dataclass(frozen=True)
class Node:
    """One criterion (`check`) or several (`children`). `weight` counts among its siblings, under `mean`.

    `rule`: `mean` is the weighted mean; `all` is 1 when every child is; `any` when one is; `gate` is 0 unless the first
    child is met, and then the weighted mean of the others. A negative weight is a penalty: it takes its share away.
    """

    name: str
    weight: float = 1.0
    check: Check | None = None
    children: tuple[Node, ...] = ()
    rule: Rule = "mean"

    def __post_init__(self) -> None:
        if (self.check is None) == (not self.children):
            raise ValueError(f"rubric {self.name!r} has either a check or children")
        if self.rule not in RULES:
            raise ValueError(f"rubric {self.name!r}: rule {self.rule!r} is none of {', '.join(RULES)}")
        if isinstance(self.weight, bool) or not math.isfinite(self.weight):
            raise ValueError(f"rubric {self.name!r}: weight {self.weight!r} is no finite number")
        names = [child.name for child in self.children]
        if len(set(names)) != len(names) or any("/" in name for name in [self.name, *names]):
            raise ValueError(f"rubric {self.name!r}: names of criteria are different among siblings and hold no '/'")
        if self.rule == "gate" and len(self.children) < 2:
            raise ValueError(f"rubric {self.name!r}: a gate has something behind it")
        counted = self.children[1:] if self.rule == "gate" else self.children
        if counted and self.rule in ("mean", "gate") and sum(max(0.0, child.weight) for child in counted) <= 0:
            raise ValueError(f"rubric {self.name!r}: no child has a weight above 0")


@dataclass(frozen=True)
class Part:
    """What one node of the tree was worth."""

    score: float
    reason: str
    children: Mapping[str, Part] = field(default_factory=dict)

    def flat(self, prefix: str = "") -> Iterator[tuple[str, Part]]:
        """Every part below this one by its path: `answer/right`."""
        for name, part in self.children.items():
            yield prefix + name, part
            yield from part.flat(f"{prefix}{name}/")


async def grade(rubric: Node, subject: Any) -> Grade:
    """The tree's score of `subject` (what the checks take: a text, a world). `parts` has each node's score by path, for
    metrics. A check that raises, raises: a part that could not be judged makes the whole unjudged."""
    whole = await _scored(rubric, subject)
    told = [f"{path}: {part.reason}" for path, part in whole.flat() if part.score < PASSED and not part.children]
    parts = {path: part.score for path, part in whole.flat()}
    return Grade(whole.score, "; ".join(told)[:2000] or "every criterion is met", parts)


async def _scored(node: Node, subject: Any) -> Part:
    if node.check is not None:
        found = node.check(subject)
        given = found if isinstance(found, Grade) else await found
        return Part(given.reward, given.reason)
    scored = await asyncio.gather(*(_scored(child, subject) for child in node.children))
    parts = {child.name: part for child, part in zip(node.children, scored, strict=True)}
    return Part(_together(node, [part.score for part in scored]), node.rule, parts)


def _together(node: Node, scores: list[float]) -> float:
    if node.rule == "all":
        return float(all(score >= PASSED for score in scores))
    if node.rule == "any":
        return float(any(score >= PASSED for score in scores))
    children = node.children
    if node.rule == "gate":
        if scores[0] < PASSED:
            return 0.0
        children, scores = children[1:], scores[1:]
    most = sum(max(0.0, child.weight) for child in children)
    return sum(child.weight * score for child, score in zip(children, scores, strict=True)) / most


def load(data: Mapping[str, Any], judge: Judge | None = None, question: str = "") -> Node:
    """A rubric from data. `check: {type, expected, …}` is a verdict of `answers`; `criterion` is a sentence for `judge`.
    ValueError, naming the place, when it is not well formed."""
    known = {"name", "weight", "rule", "children", "check", "criterion"}
    name = data.get("name")
    if not isinstance(name, str) or not data.keys() <= known:
        raise ValueError(f"rubric {name!r} has unknown keys or no name: {sorted(data.keys() - known)}")
    children = tuple(load(child, judge, question) for child in data.get("children", ()))
    check: Check | None = None
    if "check" in data:
        options = dict(data["check"])
        if "expected" not in options:
            raise ValueError(f"rubric {name!r}: its check has nothing expected")
        check = _answer_check(options.pop("expected"), options)
    elif "criterion" in data:
        if judge is None:
            raise ValueError(f"rubric {name!r} has a criterion, and there is no judge")
        check = _judged(judge, str(data["criterion"]), question)
    return Node(name, float(data.get("weight", 1.0)), check, children, data.get("rule", "mean"))


def _answer_check(expected: Any, match: Mapping[str, Any]) -> Check:
    return lambda subject: answers.grade(subject, expected, match)


def _judged(judge: Judge, criterion: str, question: str) -> Check:
    return lambda subject: judge.grade(question, subject, f"The answer must meet this criterion: {criterion}")
