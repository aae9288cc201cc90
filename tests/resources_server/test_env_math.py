"""The environment `math`: any form that means the same is right, and repeating the question is not."""

import re
from pathlib import Path

import pytest

from resources_server import Response
from resources_server.environments.math import Math
from tests.stack import run, stack
from wire import jsonl
from wire.testing import serving
from wire.testing.upstream import MSG, Upstream

DATA = Path(__file__).parents[2] / "data" / "math"


def said(text: str) -> Response:
    return Response(output=[{"type": "message", "role": "assistant", "content": text}])


@pytest.mark.parametrize(
    ("answer", "text", "reward"),
    [
        (r"\frac{5}{12}", r"so \boxed{10/24}", 1.0),
        (r"\frac{5}{12}", r"so 5/12", 0.0),
        (r"2\sqrt{2}", r"\boxed{\sqrt{8}}", 1.0),
        (r"\{4, 6\}", r"\boxed{6, 4}", 1.0),
        (r"\{4, 6\}", r"\boxed{\{4\}}", 0.0),
        ("(-3, 1)", r"\boxed{(1, -3)}", 0.0),
        (r"(-\infty, -7)", r"\boxed{x < -7}", 1.0),
        ("6x - 9", r"\boxed{3(2x-3)}", 1.0),
        ("6x - 9", r"\boxed{f'(x) = 6x - 9}", 1.0),
        ("-16", r"\boxed{\int_0^2 (-x-7) dx}", 0.0),
        ("7", r"\boxed{6} or \boxed{7}", 0.0),
        ("7", r"\boxed{9^{9^{9^9}}}", 0.0),
        ("7", "", 0.0),
    ],
)
async def test_the_boxed_answer_is_compared_by_meaning(answer: str, text: str, reward: float) -> None:
    """An answer without a box, several, and one that cannot be worked out are worth nothing."""
    assert (await Math.of_row({"answer": answer}).verify(said(text))).reward == reward


async def test_repeating_the_question_earns_nothing() -> None:
    """Every formula of a statement, boxed: none equals the answer."""
    for _, row in jsonl.read(DATA / "example.jsonl"):
        prompt = row["responses_create_params"]["input"]
        for formula in re.findall(r"\$([^$]+)\$|(?:\bof|by) ([-\d]+)", prompt.splitlines()[0]):
            text = formula[0] or formula[1]
            assert (await Math.of_row(row).verify(said(f"\\boxed{{{text}}}"))).reward == 0.0, (row["task_id"], text)


async def test_a_row_whose_answer_cannot_be_read_is_no_zero() -> None:
    """E05, through the servers: the failure is the verifier's, and the model's answer is kept."""
    async with (
        serving(up=Upstream([MSG(r"\boxed{7}")])) as up,
        stack(up["up"], resources_server={"environment": "math"}, agent_server={"agent": "single_turn"}) as urls,
    ):
        line = await run(urls, {"responses_create_params": {"input": "?"}, "answer": r"\frac{1}{"})
    assert (line["failure"]["kind"], line["reward"], line["mask_sample"]) == ("verifier_error", None, True)
    assert line["response"]["output"]
