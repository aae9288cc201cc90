"""Writes train.jsonl, validation.jsonl and example.jsonl: 150 problems out of 15 templates. `python data/code/make.py`

A template draws its parameters, states the problem, and has a reference program; the expected values of the hidden tests are what the
reference gives on inputs that are drawn too, edge cases first. The example in the statement is no hidden test.
"""

import contextlib
import io
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SEED = 23
EACH = 10  # problems of each template
TESTS = 10  # hidden, of each problem
HERE = Path(__file__).parent
Dice = random.Random
WORDS = "apple river stone cloud maple tiger lemon piano ocean amber cedar delta ember frost grape honey".split()  # noqa: SIM905


class Problem:
    """One problem; `edges` and `draw` give argument lists, or, for a whole program, texts to read."""

    def __init__(
        self,
        name: str,
        statement: str,
        reference: str,
        draw: Callable[[Dice], Any],
        edges: list[Any],
        whole: bool = False,
    ) -> None:
        self.name, self.statement, self.reference = name, statement, reference.strip() + "\n"
        self.draw, self.edges, self.whole = draw, edges, whole

    def answer(self, given: Any) -> Any:
        """What the reference makes of an input."""
        if self.whole:
            out = io.StringIO()
            before, sys.stdin = sys.stdin, io.StringIO(given)
            try:
                with contextlib.redirect_stdout(out):
                    exec(self.reference, {"__name__": "__main__"})
            finally:
                sys.stdin = before
            return out.getvalue()
        scope: dict[str, Any] = {}
        exec(self.reference, scope)
        return scope[self.name](*json.loads(json.dumps(given)))

    def test(self, given: Any) -> dict[str, Any]:
        if self.whole:
            return {"input": given, "output": self.answer(given)}
        return {"call": self.name, "args": given, "expected": self.answer(given)}


def ints(dice: Dice, low: int = -50, high: int = 50, least: int = 0, most: int = 12) -> list[int]:
    return [dice.randint(low, high) for _ in range(dice.randint(least, most))]


def text(dice: Dice, least: int = 1, most: int = 8) -> str:
    return " ".join(dice.choice(WORDS) for _ in range(dice.randint(least, most)))


def window(dice: Dice) -> Problem:
    size, what = dice.randint(2, 5), dice.choice(["sum", "max", "min"])
    return Problem(
        "windows",
        f"Write a function windows(numbers) that takes a list of integers and returns the list of the {what}s of all runs of {size} "
        f"neighbours, from left to right. A list of fewer than {size} numbers gives [].",
        f"def windows(numbers):\n    return [{what}(numbers[i:i + {size}]) for i in range(len(numbers) - {size} + 1)]",
        lambda d: [ints(d)],
        [[[]], [[4] * size], [list(range(size - 1))], [[-3, -1, -2, -8, 0, -5, -5]]],
    )


def caesar(dice: Dice) -> Problem:
    shift = dice.choice([s for s in range(-12, 13) if s])
    return Problem(
        "encode",
        f"Write a function encode(text) that shifts every lower-case letter a-z by {shift} places in the alphabet, going round at its "
        "end, shifts every upper-case letter A-Z by as many places the other way, and leaves all other characters alone.",
        f"""
def encode(text):
    out = []
    for c in text:
        if "a" <= c <= "z":
            c = chr((ord(c) - 97 + {shift}) % 26 + 97)
        elif "A" <= c <= "Z":
            c = chr((ord(c) - 65 - {shift}) % 26 + 65)
        out.append(c)
    return "".join(out)""",
        lambda d: [
            "".join(d.choice([w.lower(), w.title(), w.upper()]) + d.choice([" ", ", ", "7! "]) for w in text(d).split())
        ],
        [[""], ["abcxyz ABCXYZ"], ["0-9 é ß"]],
    )


def digits(dice: Dice) -> Problem:
    base, power = dice.choice([2, 3, 7, 8, 10, 16]), dice.randint(1, 3)
    return Problem(
        "digit_sum",
        f"Write a function digit_sum(n) that returns the sum of the digits of the integer n in base {base}, each digit raised to the "
        f"power {power}. A negative n counts as -n.",
        f"""
def digit_sum(n):
    n, total = abs(n), 0
    while n:
        n, digit = divmod(n, {base})
        total += digit ** {power}
    return total""",
        lambda d: [d.randint(-(10**6), 10**9)],
        [[0], [1], [-base], [base**5 - 1], [10**30 + 7]],
    )


def runs(dice: Dice) -> Problem:
    least, mark = dice.randint(2, 4), dice.choice(["*", "x", "#", "~"])
    return Problem(
        "pack",
        f"Write a function pack(text) that shortens runs of one character: a run of {least} or more of the same character c becomes c, "
        f"then {mark!r}, then the length of the run; shorter runs stay as they are. pack('') is ''.",
        f"""
from itertools import groupby


def pack(text):
    parts = []
    for c, run in groupby(text):
        length = len(list(run))
        parts.append(f"{{c}}{mark}{{length}}" if length >= {least} else c * length)
    return "".join(parts)""",
        lambda d: ["".join(d.choice("abcd ") * d.randint(1, 6) for _ in range(d.randint(1, 8)))],
        [[""], ["a" * 12], ["ab" * 4], ["z" * (least - 1)], ["z" * least]],
    )


def rounds(dice: Dice) -> Problem:
    people, step = dice.randint(2, 9), dice.randint(2, 7)
    return Problem(
        "last_left",
        f"People stand in a circle, in the order of a list of names. Counting starts at number {people - 1} of the list (the first is "
        f"number 0; count on round the circle where the list is shorter) and every {step}th person counted leaves; counting goes on "
        "with the next one. Write a function last_left(names) that returns the name of the person who is left, or None for an empty list.",
        f"""
def last_left(names):
    circle = list(names)
    if not circle:
        return None
    at = {people - 1} % len(circle)
    while len(circle) > 1:
        at = (at + {step - 1}) % len(circle)
        circle.pop(at)
    return circle[0]""",
        lambda d: [[f"p{i}" for i in range(d.randint(1, 20))]],
        [[[]], [["ada"]], [["ada", "bo"]], [["ada", "bo", "cy"]]],
    )


def intervals(dice: Dice) -> Problem:
    gap, want = dice.randint(0, 3), dice.choice(["length", "count", "list"])
    told = {
        "length": "the sum of their lengths (end - start)",
        "count": "how many there are",
        "list": "them, sorted by start",
    }[want]
    give = {"length": "sum(end - start for start, end in out)", "count": "len(out)", "list": "out"}[want]
    return Problem(
        "merged",
        "Write a function merged(intervals) that takes a list of [start, end] pairs of integers with start <= end, merges those that "
        f"overlap or lie at most {gap} apart (next start - end <= {gap}) until no two can be merged, and returns {told}.",
        f"""
def merged(intervals):
    out = []
    for start, end in sorted(intervals):
        if out and start - out[-1][1] <= {gap}:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([start, end])
    return {give}""",
        lambda d: [[[s, s + d.randint(0, 6)] for s in ints(d, 0, 40, 1, 8)]],
        [[[]], [[[5, 9], [1, 3]]], [[[0, 10], [2, 3]]], [[[0, 1], [1 + gap, 2 + gap]]], [[[0, 1], [2 + gap, 3 + gap]]]],
    )


def brackets(dice: Dice) -> Problem:
    pairs = dice.sample(["()", "[]", "{}", "<>"], dice.randint(2, 4))
    deep = dice.randint(2, 6)
    listed = ", ".join(pairs)
    return Problem(
        "balanced",
        f"Write a function balanced(text) that says (True or False) whether the brackets {listed} in the text are opened and closed in "
        f"the right order and never nested deeper than {deep}. Other characters do not matter.",
        f"""
def balanced(text):
    opened, pairs = [], {dict(tuple(p) for p in pairs)!r}
    for c in text:
        if c in pairs:
            opened.append(pairs[c])
            if len(opened) > {deep}:
                return False
        elif c in pairs.values():
            if not opened or opened.pop() != c:
                return False
    return not opened""",
        lambda d: [
            _nested(d, pairs, d.randint(1, deep + 1))
            if d.random() < 0.7
            else "".join(d.choice("".join(pairs)) for _ in range(6))
        ],
        [
            [""],
            ["(" * deep + ")" * deep],
            [pairs[0][0]],
            [pairs[0][::-1]],
            [pairs[0][0] * (deep + 1) + pairs[0][1] * (deep + 1)],
        ],
    )


def _nested(dice: Dice, pairs: list[str], depth: int) -> str:
    if depth == 0:
        return dice.choice(["", "a", "x y"])
    left, right = dice.choice(pairs)
    return left + _nested(dice, pairs, depth - 1) + right + (dice.choice(pairs) if dice.random() < 0.5 else "")


def change(dice: Dice) -> Problem:
    coins = sorted({1, *dice.sample([2, 3, 4, 5, 7, 10, 12, 20, 25], 3)})
    if dice.random() < 0.4:
        coins = coins[1:]
    return Problem(
        "fewest",
        f"There are coins of {', '.join(map(str, coins))}, as many of each as needed. Write a function fewest(amount) that returns the "
        "smallest number of coins that make exactly the amount (an integer, 0 or more), or -1 where none do.",
        f"""
def fewest(amount):
    best = [0] + [None] * amount
    for total in range(1, amount + 1):
        ways = [best[total - c] for c in {coins} if c <= total and best[total - c] is not None]
        best[total] = min(ways) + 1 if ways else None
    return -1 if best[amount] is None else best[amount]""",
        lambda d: [d.randint(0, 300)],
        [[0], [1], [max(coins) * 3], [max(coins) - 1], [2 * coins[-2]]],
    )


def steps(dice: Dice) -> Problem:
    odd, plus, even = dice.choice([3, 5, 7]), dice.choice([1, 3, 5]), dice.choice([2, 2, 4])
    most = 500
    return Problem(
        "path_length",
        f"Start with a positive integer n. A step takes n to n // {even} when n is divisible by {even}, else to ({odd} * n + {plus}) % "
        f"1009 + 1. Write a function path_length(n) that returns the number of steps until a value is seen for the second time (n itself "
        "counts as seen at the start).",
        f"""
def path_length(n):
    seen, count = set(), 0
    while n not in seen:
        seen.add(n)
        n = n // {even} if n % {even} == 0 else ({odd} * n + {plus}) % 1009 + 1
        count += 1
    return count""",
        lambda d: [d.randint(1, 10 * most)],
        [[1], [even], [even**6], [1009]],
    )


def grid(dice: Dice) -> Problem:
    what = dice.choice(["number of separate islands", "size of the largest island", "number of islands of one cell"])
    diagonal, land = dice.random() < 0.5, dice.choice("#X1@")
    near = "side by side or diagonally" if diagonal else "side by side (not diagonally)"
    near_code = "[(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]" if diagonal else "[(0, 1), (1, 0), (0, -1), (-1, 0)]"
    give = {
        "number of separate islands": "len(sizes)",
        "size of the largest island": "max(sizes, default=0)",
        "number of islands of one cell": "sizes.count(1)",
    }[what]
    return Problem(
        "islands",
        f"A map is a list of equally long strings; {land!r} is land, every other character water. Land cells that touch {near} belong to "
        f"one island. Write a function islands(rows) that returns the {what} (0 where there is no land).",
        f"""
def islands(rows):
    land = {{(y, x) for y, row in enumerate(rows) for x, c in enumerate(row) if c == {land!r}}}
    sizes = []
    while land:
        todo, size = [land.pop()], 0
        while todo:
            y, x = todo.pop()
            size += 1
            for a, b in {near_code}:
                if (y + a, x + b) in land:
                    land.remove((y + a, x + b))
                    todo.append((y + a, x + b))
        sizes.append(size)
    return {give}""",
        lambda d: [_map(d, land)],
        [[[]], [["..", ".."]], [[land]], [[f"{land}.", f".{land}"]], [[land * 4, f"{land}..{land}", land * 4]]],
    )


def _map(dice: Dice, land: str) -> list[str]:
    wide = dice.randint(2, 7)
    return ["".join(dice.choice([land, "."]) for _ in range(wide)) for _ in range(dice.randint(2, 6))]


def ranking(dice: Dice) -> Problem:
    win, draw = dice.choice([(3, 1), (2, 1), (4, 2), (5, 2), (3, 0), (10, 3)])
    tie = dice.choice(["fewer goals against first, then by name", "more goals for first, then by name"])
    key = "table[t][2]" if tie.startswith("fewer") else "-table[t][1]"
    return Problem(
        "ranking",
        "Write a function ranking(games). Each game is [home, away, home_goals, away_goals]. "
        f"A win is worth {win} points, a draw {draw} to each team. Return the list of all team names that played, most points first; on "
        f"equal points {tie}.",
        f"""
def ranking(games):
    table = {{}}
    for home, away, scored, let_in in games:
        for team, own, other in ((home, scored, let_in), (away, let_in, scored)):
            points, plus, minus = table.get(team, (0, 0, 0))
            points += {win} if own > other else {draw} if own == other else 0
            table[team] = (points, plus + own, minus + other)
    return sorted(table, key=lambda t: (-table[t][0], {key}, t))""",
        lambda d: [[[*d.sample(WORDS[:5], 2), d.randint(0, 4), d.randint(0, 4)] for _ in range(d.randint(1, 8))]],
        [[[]], [[["b", "a", 0, 0]]], [[["a", "b", 2, 2], ["c", "d", 0, 0]]], [[["z", "y", 1, 3], ["x", "w", 3, 1]]]],
    )


def fields(dice: Dice) -> Problem:
    comma, quote = dice.choice(";|,:/"), dice.choice(["'", '"', "`"])
    return Problem(
        "fields",
        f"Write a function fields(line) that splits a line at every {comma} that is not inside a pair of {quote} characters and returns "
        f"the list of the parts. The {quote} characters themselves are left out, and every part is stripped of spaces at its ends. One "
        "that is never closed goes on to the end of the line.",
        f"""
def fields(line):
    parts, part, inside = [], "", False
    for c in line:
        if c == {quote!r}:
            inside = not inside
        elif c == {comma!r} and not inside:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return [*parts, part.strip()]""",
        lambda d: [comma.join(_field(d, comma, quote) for _ in range(d.randint(1, 6)))],
        [[""], [comma], [f" a {comma} b "], [f"{quote}a{comma}b{quote}{comma}c"], [f"{quote}open{comma} end "]],
    )


def _field(dice: Dice, comma: str, quote: str) -> str:
    words = text(dice, 0, 2)
    return dice.choice([words, f" {words} ", f"{quote}{words}{comma}{dice.randint(1, 9)}{quote}", ""])


def totals(dice: Dice) -> Problem:
    most, order = dice.randint(1, 8), dice.choice(["largest total first", "smallest total first"])
    sign = "-" if order.startswith("largest") else ""
    return Problem(
        "main",
        "Write a program that reads lines of the form 'name amount' from standard input (the amount is an integer, empty lines are to be "
        f"skipped), adds up the amounts of each name and prints 'name total' for the first {most} names, {order}, names with equal totals "
        "in alphabetical order. It prints nothing where there is nothing to read.",
        f"""
import sys

totals = {{}}
for line in sys.stdin:
    if line.strip():
        name, amount = line.split()
        totals[name] = totals.get(name, 0) + int(amount)
for name in sorted(totals, key=lambda name: ({sign}totals[name], name))[:{most}]:
    print(name, totals[name])""",
        lambda d: "".join(f"{d.choice(WORDS[:6])} {d.randint(-20, 60)}\n" for _ in range(d.randint(2, 14))),
        ["", "b 1\na 1\n\nc 1\nd 1\ne 1\nf 1", "x 5\nx -5\n"],
        whole=True,
    )


def columns(dice: Dice) -> Problem:
    wide, side = dice.randint(8, 20), dice.choice(["left", "right"])
    method = "ljust" if side == "left" else "rjust"
    return Problem(
        "main",
        f"Write a program that reads text from standard input and prints its words, filled into lines of at most {wide} characters: words "
        "are parted by one space, a line takes as many words as fit, and a longer word stands alone on its line, uncut. Each line is "
        f"filled up with spaces so that it is flush {side} at {wide} characters (longer ones stay). No words, no output.",
        f"""
import sys

lines = []
for word in sys.stdin.read().split():
    if lines and len(lines[-1]) + 1 + len(word) <= {wide}:
        lines[-1] += " " + word
    else:
        lines.append(word)
for line in lines:
    print(line.{method}({wide}))""",
        lambda d: text(d, 3, 20) + "\n",
        ["", "a\n\n b", "incomprehensibilities of internationalization at " + "w" * wide],
        whole=True,
    )


def machine(dice: Dice) -> Problem:
    start, low = dice.randint(0, 9), dice.choice([0, -10, -100])
    add, times, back = (
        dice.sample(["inc", "add", "plus", "up"], 1)[0],
        dice.choice(["mul", "times"]),
        dice.choice(["undo", "back"]),
    )
    return Problem(
        "run",
        f"A counter starts at {start}. Write a function run(commands) that takes a list of strings and returns the list of the counter's "
        f"values after each: '{add} k' adds the integer k, '{times} k' multiplies by it, '{back}' takes back the last command that has not "
        f"been taken back yet (nothing happens where there is none). A command that would bring the counter below {low} changes nothing "
        f"and cannot be taken back.",
        f"""
def run(commands):
    value, before, out = {start}, [], []
    for command in commands:
        name, _, k = command.partition(" ")
        if name == {back!r}:
            value = before.pop() if before else value
        else:
            new = value + int(k) if name == {add!r} else value * int(k)
            if new >= {low}:
                before.append(value)
                value = new
        out.append(value)
    return out""",
        lambda d: [
            [
                d.choice([f"{add} {d.randint(-9, 9)}", f"{times} {d.randint(-3, 4)}", back])
                for _ in range(d.randint(1, 9))
            ]
        ],
        [[[]], [[back]], [[f"{add} 5", f"{times} 2", back, back, back]], [[f"{add} -1000", back, f"{add} 1"]]],
    )


TEMPLATES = (
    window,
    caesar,
    digits,
    runs,
    rounds,
    intervals,
    brackets,
    change,
    steps,
    grid,
    ranking,
    fields,
    totals,
    columns,
    machine,
)


def problems(template: Callable[[Dice], Problem], dice: Dice) -> Iterator[Problem]:
    """As many different ones as are wanted."""
    seen: set[str] = set()
    while len(seen) < EACH:
        problem = template(dice)
        if problem.statement not in seen:
            seen.add(problem.statement)
            yield problem


def inputs(problem: Problem, dice: Dice) -> tuple[list[Any], Any]:
    """Those of the hidden tests, and one to show; no two are the same."""
    found = [json.dumps(each) for each in problem.edges]
    while len(found) < TESTS + 1:
        drawn = json.dumps(problem.draw(dice))
        if drawn not in found:
            found.append(drawn)
    return [json.loads(each) for each in found[:-1]], json.loads(found[-1])


def row(name: str, number: int, problem: Problem, dice: Dice) -> dict[str, Any]:
    hidden, shown = inputs(problem, dice)
    answer = problem.answer(shown)
    if problem.whole:
        example = f"For the input\n{shown.rstrip()}\nit prints\n{answer.rstrip()}"
    else:
        example = f"For example, {problem.name}({', '.join(map(repr, shown))}) returns {answer!r}."
    prompt = f"{problem.statement}\n{example}\nAnswer with the whole program in Python, in one code block."
    return {
        "task_id": f"code-{name}-{number}",
        "responses_create_params": {"input": prompt},
        "template": name,
        "tests": [problem.test(each) for each in hidden],
        "reference": problem.reference,
    }


def main() -> None:
    dice = random.Random(SEED)
    made = [
        [row(template.__name__, number, problem, dice) for number, problem in enumerate(problems(template, dice))]
        for template in TEMPLATES
    ]
    held_out = (
        "intervals",
        "fields",
        "machine",
    )  # whole templates, so that what is measured is not a known text with other numbers
    rows = {
        "train": [each for rows in made for each in rows if each["template"] not in held_out],
        "validation": [each for rows in made for each in rows if each["template"] in held_out],
        "example": [rows[0] for rows in made],
    }
    for name, each in rows.items():
        HERE.joinpath(f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in each))


if __name__ == "__main__":
    main()
