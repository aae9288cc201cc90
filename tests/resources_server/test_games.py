"""The bundled games and puzzles: their rules, and rewards that cannot be had without playing."""

import pytest

from resources_server import Response, Step, ToolError
from resources_server.environments.echo import Echo
from resources_server.environments.mastermind import Mastermind, pegs
from resources_server.environments.reasoning.kinds import KINDS, LEVELS
from resources_server.environments.reasoning.scoring import final_answer, score
from resources_server.environments.sudoku import Sudoku, last_grid
from resources_server.environments.wordle import Wordle, marked


def say(text: str) -> Response:
    """A final answer."""
    return Response(output=[{"type": "message", "role": "assistant", "content": text}])


def wordle(secret: str, **weights: float) -> Wordle:
    world = Wordle.bound({"weights": weights} if weights else {}).of_row({"secret": secret})
    world.seed()
    return world


@pytest.mark.parametrize(
    ("guess", "secret", "marks"),
    [
        ("crane", "crane", "GGGGG"),
        ("allow", "loyal", "YYYY-"),
        ("llama", "loyal", "GY-Y-"[:2] + "-" + "-Y"[::-1]),
        ("speed", "erase", "Y-YY-"),
        ("sheep", "elder", "--YY-"[:2] + "G-"[::-1] + "-"),
    ],
)
def test_marks_count_a_letter_as_often_as_it_is_there(guess: str, secret: str, marks: str) -> None:
    """Greens first; what is left of a letter is yellow, then grey."""
    found = marked(guess, secret)
    assert sum(mark != "-" for mark in found) == sum(min(guess.count(each), secret.count(each)) for each in set(guess))
    if "G" not in marks or guess == secret:
        assert found == marks


def test_the_parts_of_a_wordle_reward_sum_to_it() -> None:
    """Two greens and a yellow at the end, one of three guesses repeated."""
    world = wordle("crane", correct=1.0, greens=0.5, yellows=0.1, repetition=0.3)
    for guess in ("[slate]", "I say [crust].", "[crust]"):
        assert isinstance(world.step(guess), Step)
    verdict = world.verify(Response())
    assert verdict.reward_components == pytest.approx({"correct": 0, "greens": 0.2, "yellows": 0, "repetition": -0.1})
    assert verdict.reward == sum((verdict.reward_components or {}).values())


def test_a_turn_without_a_guess_costs_nothing_and_says_so() -> None:
    """The rules are told again."""
    world = wordle("crane")
    with pytest.raises(ToolError, match="no guess found"):
        world.step("???")
    assert world.guesses == []


def test_naming_many_words_is_one_guess() -> None:
    """A spray of words cannot hit: the last in brackets counts."""
    world = wordle("crane")
    world.step("[crane] [slate] [pride]")
    assert world.guesses == ["pride"]


def test_the_game_ends_after_six_guesses() -> None:
    """And pays nothing."""
    world = wordle("crane")
    steps = [world.step("[slate]") for _ in range(6)]
    assert [each.done for each in steps] == [False] * 5 + [True]
    assert world.verify(Response()).reward == 0.0


def test_echo_pays_by_length_up_to_a_limit() -> None:
    """Half of the limit is worth half; spaces are no words."""
    world = Echo.of_row({"turns": 2})
    world.seed()
    assert [world.step("x" * 50).reward, world.step(" " * 500).reward] == [0.25, 0.0]


@pytest.mark.parametrize(
    ("guess", "code", "found"),
    [
        ("rgb", "rgb", (3, 0)),
        ("rrg", "grr", (1, 2)),
        ("rrr", "rgb", (1, 0)),
        ("bbb", "rgg", (0, 0)),
        ("gbr", "rgb", (0, 3)),
    ],
)
def test_pegs(guess: str, code: str, found: tuple[int, int]) -> None:
    """Places, and colours elsewhere, none counted twice."""
    assert pegs(list(guess), list(code)) == found


def test_mastermind_bounds_its_guesses() -> None:
    """A wrong colour or length is refused and costs nothing."""
    world = Mastermind.of_row({"code": ["red", "blue"], "guesses": 1})
    for wrong in (["red"], ["red", "pink"]):
        with pytest.raises(ToolError, match="2 colours of"):
            world.guess(wrong)
    world.guess(["Blue", "red"])
    with pytest.raises(ToolError, match="used up"):
        world.guess(["red", "blue"])
    assert world.verify(Response()).reward == 0.0


PUZZLE = {
    "puzzle": [[1, 0, 0, 4], [0, 4, 1, 0], [2, 0, 0, 3], [0, 3, 2, 0]],
    "solution": [[1, 2, 3, 4], [3, 4, 1, 2], [2, 1, 4, 3], [4, 3, 2, 1]],
}


@pytest.mark.parametrize(
    ("answer", "reward"),
    [
        ("1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 1", 1.0),
        ("Here it is:\n| 1 2 | 3 4 |\n| 3 4 | 1 2 |\n|-----+-----|\n| 2 1 | 4 3 |\n| 4 3 | 2 1 |\nDone.", 1.0),
        ("1234\n3412\n2143\n4321", 1.0),
        ("1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 2", 0.0),
        ("2 1 3 4\n3 4 1 2\n1 2 4 3\n4 3 2 1", 0.0),
        ("1 2 3 4\n3 4 1 2\n2 1 4 3", 0.0),
        ("", 0.0),
        ("1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 1\nor rather\n1 1 1 1\n1 1 1 1\n1 1 1 1\n1 1 1 1", 0.0),
    ],
)
def test_the_last_grid_of_an_answer_counts(answer: str, reward: float) -> None:
    """Rulers and prose around it do not matter; rules and clues do."""
    assert Sudoku.of_row(PUZZLE).verify(say(answer)).reward == reward


def test_a_grid_is_not_pieced_together_from_prose() -> None:
    """A line of words between rows starts anew."""
    assert last_grid("1 2 3 4\nthen 5\n3 4 1 2\n2 1 4 3\n4 3 2 1", 4) is None


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_accepts_its_own_answer_and_no_other(kind: str) -> None:
    """At each level, for several dice; an empty or another kind's answer is worth nothing."""
    import random

    for level in LEVELS:
        for seed in range(20):
            made = KINDS[kind](random.Random(seed), level)
            assert score(kind, made.answer, made.answer, made.metadata) == 1.0
            assert score(kind, "no idea", made.answer, made.metadata) == 0.0


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("(3 + 5) * 2", True),
        ("2*(5+3) = 16", True),
        ("2 × (5 + 3)", True),
        ("16", False),
        ("3 + 5 + 5 + 3", False),
        ("(3 + 5) * 2)", False),
        ("__import__('os')", False),
        ("2 ** 4", False),
    ],
)
def test_countdown_takes_any_expression_of_its_numbers(answer: str, right: bool) -> None:
    """Numbers once each, no more than arithmetic, never run."""
    assert score("countdown", answer, "", {"numbers": [2, 3, 5], "target": 16}) == float(right)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Well: 3.\n<answer> 14 </answer>", "14"),
        ("<answer>1</answer> no, <answer>2</answer>", "2"),
        ("The answer is **7**.", "7"),
        ("I think\n\n12\n", "12"),
        ("", None),
    ],
)
def test_the_last_answer_counts(text: str, answer: str | None) -> None:
    """Tags before words before lines."""
    assert final_answer(text) == answer
