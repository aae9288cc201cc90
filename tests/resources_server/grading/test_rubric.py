"""Rubrics: trees of criteria whose parts are told."""

from typing import Any

import pytest

from resources_server.grading import Grade, right, rubric, wrong
from resources_server.grading.judge import Judge, JudgeUnavailable
from resources_server.grading.rubric import Node


def leaf(name: str, score: float, weight: float = 1.0) -> Node:
    return Node(name, weight, check=lambda _: Grade(score, f"{name} is {score}"))


def tree(rule: Any, *scores: float) -> Node:
    return Node("top", children=tuple(leaf(f"c{place}", score) for place, score in enumerate(scores)), rule=rule)


@pytest.mark.parametrize(
    ("node", "score"),
    [
        (tree("mean", 1, 0), 0.5),
        (tree("mean", 1, 0, 0.5), 0.5),
        (tree("all", 1, 1), 1),
        (tree("all", 1, 0.9), 0),
        (tree("any", 0, 1), 1),
        (tree("any", 0, 0.9), 0),
        (tree("gate", 1, 0.5), 0.5),
        (tree("gate", 0, 1), 0),
        (Node("top", children=(leaf("a", 1, 3), leaf("b", 0, 1))), 0.75),
        (Node("top", children=(leaf("a", 1, 2), leaf("rude", 1, -1))), 0.5),
        (leaf("alone", 0.3), 0.3),
    ],
)
async def test_parts_are_put_together_by_rule(node: Node, score: float) -> None:
    """Weighted mean, all, any, a gate in front; a negative weight takes away."""
    assert (await rubric.grade(node, "x")).reward == pytest.approx(score)


async def test_parts_are_logged_by_path() -> None:
    """Every node's score, and the reasons of the leaves that were not met."""
    node = Node("top", children=(tree("all", 1, 0), leaf("b", 1)))
    grade = await rubric.grade(node, "x")
    assert grade.parts == {"top": 0, "top/c0": 1, "top/c1": 0, "b": 1}
    assert grade.reason == "top/c1: c1 is 0"


async def test_an_unjudged_part_leaves_the_whole_unjudged() -> None:
    """A judge that is away is no zero in the mean."""

    async def away(_: Any) -> Grade:
        raise JudgeUnavailable("away")

    with pytest.raises(JudgeUnavailable):
        await rubric.grade(Node("top", children=(leaf("a", 1), Node("b", check=away))), "x")


async def test_a_rubric_from_data() -> None:
    """Checks are answer verdicts, criteria go to the judge."""

    async def ask(body: dict[str, Any]) -> dict[str, Any]:
        content = [{"type": "output_text", "text": '{"reasons": "", "label": "correct"}'}]
        return {"output": [{"type": "message", "role": "assistant", "content": content}]}

    data = {
        "name": "answer",
        "children": [
            {"name": "right", "weight": 3, "check": {"type": "number", "expected": "42"}},
            {"name": "polite", "criterion": "The answer is polite."},
        ],
    }
    assert (await rubric.grade(rubric.load(data, Judge(ask)), "41")).reward == 0.25
    with pytest.raises(ValueError, match="no judge"):
        rubric.load(data)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"name": "a"},
        {"name": "a", "check": {"type": "number"}},
        {"name": "a", "childs": []},
        {"name": "a", "rule": "median", "check": {"expected": "1"}},
        {"name": "a", "weight": float("nan"), "check": {"expected": "1"}},
        {"name": "a", "children": [{"name": "b", "check": {"expected": "1"}}] * 2},
        {"name": "a", "children": [{"name": "b", "weight": 0, "check": {"expected": "1"}}]},
        {"name": "a", "rule": "gate", "children": [{"name": "b", "check": {"expected": "1"}}]},
    ],
)
def test_rubrics_that_are_not_well_formed(data: dict[str, Any]) -> None:
    """Are refused when they are read, naming the place."""
    with pytest.raises(ValueError, match="rubric"):
        rubric.load(data)


def test_a_grade_is_a_finite_number() -> None:
    """No bool, no text, no infinity."""
    assert (right().reward, wrong("w").reward) == (1.0, 0.0)
    for value in (True, "1", float("nan"), float("inf"), None):
        with pytest.raises(ValueError, match="finite"):
            Grade(value, "")  # type: ignore[arg-type]
