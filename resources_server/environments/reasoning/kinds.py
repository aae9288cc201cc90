"""The ten kinds. Each makes a question, its answer and what is worth knowing about it, from dice and a level from 1 to 5."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

WORDS = (
    *("apple", "river", "stone", "cloud", "tiger", "piano", "maple", "ocean"),
    *("candle", "bridge", "garden", "silver", "window", "forest", "rocket", "basket"),
)
NAMES = ["Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "June"]


@dataclass(frozen=True)
class Made:
    """One task."""

    question: str
    answer: str
    metadata: dict[str, Any] = field(default_factory=dict)


def arithmetic(dice: random.Random, level: int) -> Made:
    """A chain of sums and products; products first, as everywhere."""
    terms = [dice.randint(2, 9 + 10 * level) for _ in range(2 + level)]
    text, total = str(terms[0]), terms[0]
    for term in terms[1:]:
        if level > 2 and dice.random() < 0.3:
            factor = dice.randint(2, 9)
            text, term = f"{text} + {term} * {factor}", term * factor
            total += term
        elif dice.random() < 0.5:
            text, total = f"{text} + {term}", total + term
        else:
            text, total = f"{text} - {term}", total - term
    return Made(f"What is {text}?", str(total))


def number_sequence(dice: random.Random, level: int) -> Made:
    """The next number of a rule: a step, a growing step, or a factor."""
    start, step, growth = dice.randint(1, 10 * level), dice.randint(1, 3 + level), dice.randint(1, level)
    numbers = [start]
    geometric = level > 2 and dice.random() < 0.4
    for place in range(6):
        numbers.append(numbers[-1] * 2 + step if geometric else numbers[-1] + step + growth * place * (level > 1))
    return Made(f"What comes next: {', '.join(map(str, numbers[:-1]))}, …?", str(numbers[-1]))


def letter_count(dice: random.Random, level: int) -> Made:
    """How often a letter stands in some words."""
    words = dice.choices(WORDS, k=1 + 2 * level)
    letter = dice.choice("".join(words))
    return Made(
        f'How many times does the letter "{letter}" occur in: {" ".join(words)}?', str(" ".join(words).count(letter))
    )


def sorting(dice: random.Random, level: int) -> Made:
    """Numbers in order."""
    numbers = [dice.randint(-20 * level, 50 * level) for _ in range(3 + 2 * level)]
    up = dice.random() < 0.5
    question = f"Sort in {'ascending' if up else 'descending'} order: {', '.join(map(str, numbers))}. Answer with numbers parted by commas."
    return Made(question, ", ".join(map(str, sorted(numbers, reverse=not up))))


def word_sorting(dice: random.Random, level: int) -> Made:
    """Words in the order of the alphabet."""
    words = dice.sample(WORDS, k=3 + 2 * level)
    return Made(
        f"Sort alphabetically: {', '.join(words)}. Answer with words parted by commas.", ", ".join(sorted(words))
    )


def base_conversion(dice: random.Random, level: int) -> Made:
    """A whole number in another base."""
    number, base = dice.randint(5, 20 * 4**level), dice.choice((2, 2, 8, 16))
    digits, left = "", number
    while left:
        digits, left = "0123456789abcdef"[left % base] + digits, left // base
    return Made(f"Write the decimal number {number} in base {base}, in lower case and without a prefix.", digits)


def calendar(dice: random.Random, level: int) -> Made:
    """The day of the week some days away."""
    days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    today, away = dice.randrange(7), dice.randint(1, 7 * 3**level)
    later = dice.random() < 0.5
    when = f"will it be in {away} days" if later else f"was it {away} days ago"
    question = f"Today is {days[today]}. Which day of the week {when}?"
    return Made(question, days[(today + (away if later else -away)) % 7])


def family(dice: random.Random, level: int) -> Made:
    """Who is the oldest, from who is older than whom."""
    people = dice.sample(NAMES, k=3 + level)
    facts = [f"{older} is older than {younger}." for older, younger in pairwise(people)]
    dice.shuffle(facts)
    place = dice.randrange(len(people))
    ordinal = ("oldest", "second oldest", "third oldest")[place] if place < 3 else f"number {place + 1} from the oldest"
    return Made(f"{' '.join(facts)} Who is the {ordinal}?", people[place])


def boolean(dice: random.Random, level: int) -> Made:
    """The value of a logical expression."""

    def made(depth: int) -> tuple[str, bool]:
        if not depth:
            value = dice.random() < 0.5
            return str(value), value
        if dice.random() < 0.25:
            text, value = made(depth - 1)
            return f"not {text}" if text in {"True", "False"} else f"not ({text})", not value
        (left, a), (right, b) = made(depth - 1), made(depth - 1)
        both = dice.random() < 0.5
        return f"({left} {'and' if both else 'or'} {right})", (a and b) if both else (a or b)

    text, value = made(level)
    return Made(f"Is this true or false: {text}", str(value))


def countdown(dice: random.Random, level: int) -> Made:
    """Reach a target with some numbers, each used at most once: many answers are right."""
    numbers = [dice.randint(1, 10 * level) for _ in range(2 + level)]
    text, total = str(numbers[0]), numbers[0]
    for number in numbers[1:]:
        sign = dice.choice("+-*" if abs(total) < 200 else "+-")
        text = f"({text}) {sign} {number}"
        total = total + number if sign == "+" else total - number if sign == "-" else total * number
    shown = dice.sample(numbers, k=len(numbers))
    question = (
        f"Use the numbers {', '.join(map(str, shown))}, each at most once, with + - * / and brackets, to make {total}. "
        "Answer with the expression alone."
    )
    return Made(question, text, {"numbers": numbers, "target": total})


KINDS: dict[str, Callable[[random.Random, int], Made]] = {
    each.__name__: each
    for each in (
        arithmetic,
        number_sequence,
        letter_count,
        sorting,
        word_sorting,
        base_conversion,
        calendar,
        family,
        boolean,
        countdown,
    )
}
LEVELS = (1, 2, 3, 4, 5)
