"""Mastermind: find a code of colours from what each guess is told; a tool call is a guess."""

from collections import Counter

from pydantic import BaseModel, Field

from resources_server import Call, Environment, Response, Task, ToolError, Verdict, tool
from resources_server.grading.components import Components

COLOURS = ("red", "green", "blue", "yellow", "orange", "purple")


class MastermindTask(Task):
    code: list[str] = Field(min_length=1, max_length=8)  # the ground truth, never shown
    guesses: int = 10


class Weights(BaseModel):
    """What each part of the reward is worth."""

    solved: float = 1.0
    speed: float = 0.0
    closeness: float = 0.0


class Options(BaseModel):
    """The reward's weights."""

    weights: Weights = Weights()


class Mastermind(Environment[MastermindTask]):
    """State is the list of guesses; everything else follows from it and the code."""

    Options = Options
    blocking = False
    made: list[list[str]] = []

    @tool
    def guess(self, colours: list[str]) -> str:
        """Guess the code. The answer counts pegs of the right colour in the right place, and of the right colour elsewhere.

        Args:
            colours: One colour for each place, of red, green, blue, yellow, orange, purple.
        """
        code = self.task.code
        if code in self.made:
            raise ToolError("the code is found; say so")
        if len(self.made) >= self.task.guesses:
            raise ToolError(f"all {self.task.guesses} guesses are used up")
        wrong = [each for each in colours if each.lower() not in COLOURS]
        if len(colours) != len(code) or wrong:
            raise ToolError(
                f"a guess is {len(code)} colours of {', '.join(COLOURS)}" + (f", not {wrong[0]!r}" if wrong else "")
            )
        made = [each.lower() for each in colours]
        self.made.append(made)
        places, elsewhere = pegs(made, code)
        if made == code:
            return "right: that is the code"
        return f"{places} in the right place, {elsewhere} elsewhere; {self.task.guesses - len(self.made)} guesses left"

    def verify(self, response: Response) -> Verdict:
        code = self.task.code
        solved = code in self.made
        closest = max((pegs(each, code)[0] for each in self.made), default=0)
        found = {
            "solved": float(solved),
            "speed": (1 - (len(self.made) - 1) / self.task.guesses) if solved else 0.0,
            "closeness": closest / len(code),
        }
        return Components(self.options.weights.model_dump()).verdict(found, metrics={"guesses": float(len(self.made))})

    def solution(self) -> list[Call]:
        return [Call("guess", {"colours": self.task.code})]


def pegs(guess: list[str], code: list[str]) -> tuple[int, int]:
    """How many colours are in the right place, and how many more are right elsewhere."""
    places = sum(one == other for one, other in zip(guess, code, strict=True))
    common = sum((Counter(guess) & Counter(code)).values())
    return places, common - places
