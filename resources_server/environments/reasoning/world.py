"""One question, one answer in text, scored by its kind."""

import importlib
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from pydantic import BaseModel

from resources_server import Environment, Response, Task, Verdict
from resources_server.environments.reasoning.kinds import KINDS, LEVELS
from resources_server.environments.reasoning.scoring import final_answer, score

PROMPT = "{question}\nThink step by step, then give the answer alone in <answer> </answer> tags."


class ReasoningTask(Task):
    question: str
    answer: str  # the ground truth, never shown
    metadata: dict[str, Any]  # `source_dataset` names the kind, `difficulty` its settings: reasoning-gym's own form


class Options(BaseModel):
    """How answers are read."""

    partial: bool = False
    """Give a kind's partial score where it has one, instead of right or wrong."""


class Reasoning(Environment[ReasoningTask]):
    """The answer is what stands in `<answer>` tags, else after the last "answer:", else the last line.

    A kind that is not one of the ten is scored by the package `reasoning_gym`, which has to be installed for it.
    """

    Options = Options
    stateless = True
    waived = {"form.numbers": "digits of another base are no decimal number; the other kinds take 5.0 for 5"}

    def verify(self, response: Response) -> Verdict:
        answer = final_answer(response.text)
        if answer is None:
            return Verdict(reward=0.0, metrics={"answered": 0.0}, reason="no answer")
        kind = str(self.task.metadata.get("source_dataset", ""))
        found = (
            score(kind, answer, self.task.answer, self.task.metadata) if kind in KINDS else self._foreign(kind, answer)
        )
        reward = found if self.options.partial else float(found >= 1.0)
        return Verdict(reward=reward, metrics={"answered": 1.0, "score": found})

    @classmethod
    def templates(cls) -> dict[str, Callable[[Random], dict[str, Any] | None]]:
        return {f"{kind}-{level}": partial(_row, kind, level) for level in LEVELS for kind in KINDS}

    def _foreign(self, kind: str, answer: str) -> float:
        try:
            package: Any = importlib.import_module("reasoning_gym")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(f"kind {kind!r} is reasoning-gym's: pip install reasoning-gym") from error
        entry = {"question": self.task.question, "answer": self.task.answer, "metadata": self.task.metadata}
        return float(package.get_score_answer_fn(kind)(answer, entry))

    def solution(self) -> str:
        return f"<answer>{self.task.answer}</answer>"


def _row(kind: str, level: int, dice: Random) -> dict[str, Any]:
    """A task of a kind and level, as the bundled rows have it."""
    made = KINDS[kind](dice, level)
    return {
        "responses_create_params": {"input": PROMPT.format(question=made.question)},
        "question": made.question,
        "answer": made.answer,
        "metadata": {"source_dataset": kind, "difficulty": {"level": level}, **made.metadata},
    }
