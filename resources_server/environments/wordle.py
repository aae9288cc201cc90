"""Wordle: six guesses at a five-letter word, a reward of named parts that tells near misses from wild ones."""

import string
from collections import Counter
from typing import Any

from pydantic import BaseModel, Field

from resources_server import Call, Game, Response, Step, Task, ToolError, Verdict
from resources_server.grading.components import Components

LETTERS = 5
GREEN, YELLOW, GREY = "G", "Y", "-"


class WordleTask(Task):
    secret: str = Field(pattern="^[a-z]{5}$")  # the ground truth, never shown


class Weights(BaseModel):
    """What each part of the reward is worth. Only `correct` is the goal; the others help a policy that never gets there."""

    correct: float = 1.0
    greens: float = 0.0
    yellows: float = 0.0
    repetition: float = 0.0


class Options(BaseModel):
    """Rules and reward."""

    guesses: int = Field(6, ge=1, le=50)
    weights: Weights = Weights()


class Wordle(Game[WordleTask]):
    """An action is any text; the last word of five letters in it is the guess, in `[brackets]` or bare."""

    Options = Options
    blocking = False
    guesses: list[str] = []

    def reset(self) -> str:
        return (
            f"Guess a secret English word of five letters. You have {self.options.guesses} guesses. Answer with one word in brackets, "
            f"such as [crane]. After each guess every letter is marked: {GREEN} right place, {YELLOW} elsewhere in the word, "
            f"{GREY} not in it."
        )

    def step(self, action: str) -> Step:
        guess = _guess(action)
        if guess is None:
            raise ToolError("no guess found: answer with one word of five letters in brackets, such as [crane]")
        self.guesses.append(guess)
        right = guess == self.task.secret
        left = self.options.guesses - len(self.guesses)
        marks = marked(guess, self.task.secret)
        told = f"{' '.join(guess.upper())}\n{' '.join(marks)}\n" + ("Right." if right else f"{left} guesses left.")
        return Step(told, reward=float(right), done=right or left == 0)

    def verify(self, response: Response) -> Verdict:
        found = dict.fromkeys(("correct", "greens", "yellows", "repetition"), 0.0)
        if self.guesses:
            marks = marked(self.guesses[-1], self.task.secret)
            found["correct"] = float(self.guesses[-1] == self.task.secret)
            found["greens"] = marks.count(GREEN) / LETTERS
            found["yellows"] = marks.count(YELLOW) / LETTERS
            found["repetition"] = len(set(self.guesses)) / len(self.guesses) - 1  # 0 without, towards -1 with
        weights: dict[str, Any] = self.options.weights.model_dump()
        return Components(weights).verdict(found, metrics={"guesses": float(len(self.guesses))})

    def solution(self) -> list[Call]:
        return [Call("act", {"action": f"[{self.task.secret}]"})]


def marked(guess: str, secret: str) -> str:
    """One mark per letter. A letter is yellow only as often as the secret has it outside the greens."""
    spare = Counter(there for here, there in zip(guess, secret, strict=True) if here != there)
    marks = []
    for here, there in zip(guess, secret, strict=True):
        if here == there:
            marks.append(GREEN)
        elif spare[here]:
            spare[here] -= 1
            marks.append(YELLOW)
        else:
            marks.append(GREY)
    return "".join(marks)


def _guess(action: str) -> str | None:
    """The last bracketed word of five letters, or the last bare one."""
    inside = [part.partition("]")[0].strip() for part in action.split("[")[1:] if "]" in part]
    bare = [word.strip(string.punctuation) for word in action.split()]
    for words in (inside, bare):
        fitting = [word.lower() for word in words if len(word) == LETTERS and word.isascii() and word.isalpha()]
        if fitting:
            return fitting[-1]
    return None
