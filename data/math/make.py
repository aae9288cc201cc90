"""Writes train.jsonl, validation.jsonl and example.jsonl: twelve kinds of problems at three levels. `python data/math/make.py`

No statement holds an expression that equals its answer: repeating it earns nothing, though the verdict takes any form.
"""

import json
import random
from collections.abc import Callable
from fractions import Fraction
from math import comb, gcd, isqrt, lcm
from pathlib import Path

SEED = 29
HERE = Path(__file__).parent
Dice = random.Random
Made = tuple[str, str]  # problem, answer
PROMPT = "{problem}\nThink step by step, then give the final answer in \\boxed{{}}."


def some(dice: Dice, most: int, least: int = 1) -> int:
    """A number that is not 0, of either sign."""
    return dice.choice([-1, 1]) * dice.randint(least, most)


def number(value: Fraction | int) -> str:
    value = Fraction(value)
    sign = "-" if value < 0 else ""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def polynomial(coefficients: list[int], x: str = "x") -> str:
    """From the constant up; as it is written, highest power first."""
    out = ""
    for power in range(len(coefficients) - 1, -1, -1):
        c = coefficients[power]
        if c:
            name = "" if power == 0 else x if power == 1 else f"{x}^{{{power}}}"
            size = "" if abs(c) == 1 and power else str(abs(c))
            out += (" - " if c < 0 else " + ") + size + name if out else ("-" if c < 0 else "") + size + name
    return out or "0"


def linear(dice: Dice, level: int) -> Made:
    x = Fraction(some(dice, 9 * level), dice.randint(1, level))
    a, c = dice.sample(range(2, 6 + 3 * level), 2)
    b = some(dice, 20)
    d = (a - c) * x + b
    return f"Solve ${a}x {b:+d} = {c}x + {number(d)}$ for $x$.".replace("+ -", "- "), number(x)


def roots(dice: Dice, level: int) -> Made:
    one, two = dice.sample([n for n in range(-4 - 3 * level, 5 + 3 * level) if n], 2)
    a = dice.randint(1, level)
    return (
        f"Find all solutions of ${polynomial([a * one * two, -a * (one + two), a])} = 0$, as a set.",
        f"\\{{{min(one, two)}, {max(one, two)}\\}}",
    )


def derivative(dice: Dice, level: int) -> Made:
    c = [some(dice, 9) for _ in range(level + 3)]
    return (
        f"Let $f(x) = {polynomial(c)}$. Find $f'(x)$.",
        polynomial([power * each for power, each in enumerate(c)][1:]),
    )


def integral(dice: Dice, level: int) -> Made:
    c = [some(dice, 9) for _ in range(level + 1)]
    low, high = sorted(dice.sample(range(-2, 3 + level), 2))
    area = sum(Fraction(each * (high ** (n + 1) - low ** (n + 1)), n + 1) for n, each in enumerate(c))
    return f"Compute $\\int_{{{low}}}^{{{high}}} \\left({polynomial(c)}\\right) dx$.", number(area)


def system(dice: Dice, level: int) -> Made:
    x, y = some(dice, 5 * level), some(dice, 5 * level)
    while True:
        a, b, c, d = (some(dice, 3 + 2 * level) for _ in range(4))
        if a * d != b * c:
            break
    return (
        f"Solve the system ${a}x {b:+d}y = {a * x + b * y}$, ${c}x {d:+d}y = {c * x + d * y}$. Give the pair $(x, y)$.",
        f"({x}, {y})",
    )


def series(dice: Dice, level: int) -> Made:
    first, step, count = some(dice, 20), some(dice, 3 + 3 * level), dice.randint(8, 12 + 20 * level)
    shown = ", ".join(str(first + n * step) for n in range(4))
    return f"What is the sum of the first {count} terms of the arithmetic sequence {shown}, …?", str(
        count * first + step * count * (count - 1) // 2
    )


def determinant(dice: Dice, level: int) -> Made:
    size = 2 if level == 1 else 3
    rows = [[dice.randint(-3 - level, 4 + level) for _ in range(size)] for _ in range(size)]
    return f"Find the determinant of the matrix with the rows {', '.join(map(str, rows))}.", str(det(rows))


def det(rows: list[list[int]]) -> int:
    if len(rows) == 1:
        return rows[0][0]
    return sum((-1) ** n * each * det([row[:n] + row[n + 1 :] for row in rows[1:]]) for n, each in enumerate(rows[0]))


def inequality(dice: Dice, level: int) -> Made:
    if level == 1:
        a, b, x = some(dice, 9, 2), some(dice, 15), some(dice, 9)
        side = f"(-\\infty, {x})" if a > 0 else f"({x}, \\infty)"
        return f"Solve ${a}x {b:+d} < {a * x + b}$. Give the solution as an interval.", side
    one, two = sorted(dice.sample(range(-4 - level, 5 + level), 2))
    return (
        f"Solve ${polynomial([one * two, -(one + two), 1])} \\le 0$. Give the solution as an interval.",
        f"[{one}, {two}]",
    )


def chance(dice: Dice, level: int) -> Made:
    red, blue = dice.randint(2, 4 + 3 * level), dice.randint(2, 4 + 3 * level)
    drawn = dice.randint(2, min(red, level + 1))
    return (
        f"A bag holds {red} red and {blue} blue balls. {drawn} are drawn at random, none put back. What is the probability that all "
        f"{drawn} are red?",
        number(Fraction(comb(red, drawn), comb(red + blue, drawn))),
    )


def remainder(dice: Dice, level: int) -> Made:
    base, power, by = dice.randint(2, 12), dice.randint(5 * level, 40 * level), dice.randint(5, 10 + 10 * level)
    return f"What is the remainder when ${base}^{{{power}}}$ is divided by {by}?", str(pow(base, power, by))


def divisors(dice: Dice, level: int) -> Made:
    one, two, three = (dice.randint(2, 10 * level) for _ in range(3))
    a, b = one * two, one * three
    if level == 1:
        return f"What is the greatest common divisor of {a} and {b}?", str(gcd(a, b))
    return f"What is the least common multiple of {a} and {b}?", str(lcm(a, b))


def distance(dice: Dice, level: int) -> Made:
    x, y = dice.randint(-5, 5), dice.randint(-5, 5)
    a, b = some(dice, 3 * level), some(dice, 3 * level)
    square = a * a + b * b
    outer = max(n for n in range(1, isqrt(square) + 1) if square % (n * n) == 0)
    root = square // (outer * outer)
    answer = str(outer) if root == 1 else f"{outer if outer > 1 else ''}\\sqrt{{{root}}}"
    return f"How far is the point $({x}, {y})$ from $({x + a}, {y + b})$? Give the exact value.", answer


KINDS: tuple[Callable[[Dice, int], Made], ...] = (
    *(linear, roots, derivative, integral, system, series),
    *(determinant, inequality, chance, remainder, divisors, distance),
)


def main() -> None:
    dice, seen, rows = random.Random(SEED), set(), []
    for count in range(12):
        for level in (1, 2, 3):
            for kind in KINDS:
                problem, answer = kind(dice, level)
                while problem in seen:
                    problem, answer = kind(dice, level)
                seen.add(problem)
                rows.append(
                    {
                        "task_id": f"math-{kind.__name__}-{level}-{count}",
                        "responses_create_params": {"input": PROMPT.format(problem=problem)},
                        "level": level,
                        "answer": answer,
                    }
                )
    parts = {"train": rows[: 10 * 36], "validation": rows[10 * 36 :], "example": rows[10 * 36 : 10 * 36 + 12]}
    for name, each in parts.items():
        HERE.joinpath(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in each))


if __name__ == "__main__":
    main()
