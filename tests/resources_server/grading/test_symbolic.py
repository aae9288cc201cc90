"""Mathematical answers compared by sympy, in a process that can be killed."""

import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from resources_server.grading.symbolic import Symbolic

pytest.importorskip("sympy")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def symbolic() -> AsyncIterator[Symbolic]:
    verdict = Symbolic(seconds=1.0)
    yield verdict
    await verdict.close()


pytestmark = pytest.mark.asyncio(loop_scope="module")

SAME = [
    (r"\frac{1}{2}", "0.5"),
    (r"\dfrac12", r"\frac{1}{2}"),
    (r"1\frac{1}{2}", "3/2"),
    (r"2\sqrt{2}", r"\sqrt{8}"),
    ("sqrt(8)", r"2\sqrt{2}"),
    (r"\sqrt[3]{8}", "2"),
    ("x^2 - 1", "(x-1)(x+1)"),
    ("(x+1)**2", "x^2+2x+1"),
    ("2x", "x*2"),
    (r"\sin^2 x + \cos^2 x", "1"),
    (r"\frac{\pi}{4}", "pi/4"),
    (r"e^{i\pi}", "-1"),
    (r"\log_2 8", "3"),
    (r"\ln e^2", "2"),
    (r"\binom{5}{2}", "10"),
    ("5!", "120"),
    ("x = 5", "5"),
    ("5", "x = 5"),
    ("y = 2x + 1", "2x - y + 1 = 0"),
    ("2y = 4x + 2", "y = 2x + 1"),
    ("x > 3", "3 < x"),
    (r"x \in (3, \infty)", "x > 3"),
    ("x > 3", r"(3, \infty)"),
    (r"-1 < x \le 2", "(-1, 2]"),
    ("[0, 1)", r"\left[0, 1\right)"),
    (r"(-\infty, -1) \cup (1, \infty)", r"(1,\infty) \cup (-\infty,-1)"),
    (r"\{1, 2, 3\}", r"\{3, 2, 1\}"),
    ("1, 2", "2, 1"),
    (r"1 \text{ and } 2", r"\{1, 2\}"),
    (r"\pm 2", "2, -2"),
    (r"x = \pm\sqrt{2}", r"\{\sqrt2, -\sqrt2\}"),
    ("(1, 2)", "(1, 2)"),
    (r"\left(\frac{2}{4}, 2\right)", "(0.5, 2)"),
    (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\begin{bmatrix}1&2\\3&4\end{bmatrix}"),
    (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", "(1, 2)"),
    ("1,000,000", "10^6"),
    (r"\text{So } \boxed{\frac{3}{4}}", "0.75"),
    ("Answer: $x^2$", "x*x"),
    (r"$\frac{a}{b}$", "a/b"),
    ("|x|", r"\lvert x\rvert"),
    (r"45^\circ", "45"),
    (r"\alpha + \beta", r"\beta+\alpha"),
    (r"\emptyset", r"\{\}"),
    ("2^{10}", "1024"),
    ("9^9^9", "9^{9^9}"),
    ("x = 1 or x = 2", r"\{1, 2\}"),
    ("x=1, x=2", "2, 1"),
    (r"\frac{1}{2}x", "x/2"),
    ("(1, 0), (-1, 0)", "(-1,0), (1,0)"),
    ("No solution.", r"\text{no solution}"),
    ("Monday", "monday"),
    (r"3\cdot 10^{-2}", "0.03"),
    (r"\frac{\sqrt{3}}{3}", r"\frac{1}{\sqrt{3}}"),
    ("a_1 + a_2", "a_2 + a_1"),
    (r"x \le 2", r"(-\infty, 2]"),
    ("f(x)", "f(x)"),
    ("12\\text{ cm}", "12"),
    (r"50\%", "50"),
    (r"\$5", "5"),
    ("n!", "n!"),
    (r"2^{n+1} - 2^n", "2^n"),
]
DIFFERENT = [
    ("0.333", r"\frac{1}{3}"),
    ("x^2 + 1", "(x-1)(x+1)"),
    ("2x", "2y"),
    ("y = 2x", "y = 3x"),
    ("x > 3", r"x \ge 3"),
    ("x > 3", "x < 3"),
    ("(0, 1)", "(1, 0)"),
    ("[0, 1)", "[0, 1]"),
    (r"\{1, 2\}", r"\{1, 2, 3\}"),
    ("1, 2, 3", "1, 2"),
    ("1", r"\{1, 2\}"),
    (r"\begin{pmatrix} 1 & 2 \end{pmatrix}", r"\begin{pmatrix} 2 & 1 \end{pmatrix}"),
    ("0 = 0", "y = 2x"),
    ("nan", "5"),
    (r"\infty", "5"),
    ("1/0", "5"),
    ("", "5"),
    ("all of them", "5"),
    (r"\boxed{4} \boxed{5}", "5"),
    ("x", "5"),
    ("True", "1"),
    ("5 or 6", "5"),
    ("i don't know", "5"),
    ("Tuesday", "Monday"),
    ("5", "no solution"),
    ("Monday or Tuesday", "Monday"),
    ("a_1", "a_2"),
    (r"x \le 2", r"(-\infty, 2)"),
]


@pytest.mark.parametrize(("text", "expected"), SAME)
async def test_the_same_in_another_form(symbolic: Symbolic, text: str, expected: str) -> None:
    """Numbers, expressions, equations, intervals, sets, tuples, matrices."""
    assert (await symbolic.match(text, expected)).reward == 1


@pytest.mark.parametrize(("text", "expected"), DIFFERENT)
async def test_something_else(symbolic: Symbolic, text: str, expected: str) -> None:
    """Close is not equal, several answers are none, and what cannot be read is wrong."""
    assert (await symbolic.match(text, expected)).reward == 0


HOSTILE = [
    "9**9**9 + 1",
    "9^9^9^9 - 3",
    "(9^9^9)!",
    "99999999999!",
    "(" * 50_000,
    "(" * 900 + "x" + ")" * 900,
    r"\frac" * 400,
    "__import__('os').system('touch /tmp/x')",
    "().__class__.__base__.__subclasses__()",
    "x" + "+x^{x}" * 300,
    r"\sin(" * 40 + "x" + ")" * 40,
    "(x+y+z)^{5000}",
    "10^{400000} + 1",
    r"\binom{10^{9}}{5\cdot10^{8}}",
    "\\" * 1000,
    "x_{x_{x_{x}}}",
]


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_answers_neither_hang_nor_run(symbolic: Symbolic, text: str) -> None:
    """Each is wrong, within the time of one comparison, and the next one is judged."""
    start = time.monotonic()
    assert (await symbolic.match(text, "x^2 - 5")).reward == 0
    assert time.monotonic() - start < 15
    assert (await symbolic.match("4/2", "2")).reward == 1


async def test_decimals_within_a_tolerance(symbolic: Symbolic) -> None:
    """Relative to the expected value."""
    assert (await symbolic.match("0.333", r"\frac{1}{3}", tolerance=0.01)).reward == 1
    assert (await symbolic.match("0.3", r"\frac{1}{3}", tolerance=0.01)).reward == 0


async def test_an_unreadable_expected_answer_is_the_rows_fault(symbolic: Symbolic) -> None:
    """A failed verdict, not a zero."""
    with pytest.raises(ValueError, match="cannot be read"):
        await symbolic.match("5", "the 7 horses of {")
