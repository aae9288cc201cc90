"""Mathematics as models write it, read into trees without ever being Python."""

from typing import Any

import pytest

from resources_server.grading import latex

ONE, TWO, X = ("number", "1"), ("number", "2"), ("symbol", "x")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1", ONE),
        ("2x", ("multiply", TWO, X)),
        (r"\frac12", ("divide", ONE, TWO)),
        ("x^2", ("power", X, TWO)),
        ("-x^2", ("negate", ("power", X, TWO))),
        ("1, 2", ("list", ONE, TWO)),
        ("(1, 2)", ("tuple", ONE, TWO)),
        ("[1, 2)", ("interval", "[", ONE, TWO, ")")),
        (r"\{1, 2\}", ("set", ONE, TWO)),
        ("x < 2", ("relation", X, "<", TWO)),
        ("1,000", ("number", "1000")),
        (r"\sqrt{2}", ("root", TWO, TWO)),
        (r"\log_2 x", ("call", "log", X, TWO)),
    ],
)
def test_the_tree_of_a_text(text: str, tree: Any) -> None:
    """Tuples of kinds and leaves."""
    assert latex.parse(text) == tree


@pytest.mark.parametrize("text", ["", "(", "1 +", "[1, 2", "the answer", "}{", "^2"])
def test_what_is_not_in_the_grammar(text: str) -> None:
    """Is said so, by one exception."""
    with pytest.raises(latex.Unreadable):
        latex.parse(text)
