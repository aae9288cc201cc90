"""Questions with three kinds of verdict: an exact answer, a choice, or the opinion of a judge model."""

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field, model_validator

from resources_server import Environment, Response, Task, Verdict
from resources_server.grading import answers
from resources_server.grading.aside import Aside
from resources_server.grading.judge import Judge, JudgeUnavailable, over_http
from wire.client import Client

ROOM = "judge"


class QaTask(Task):
    kind: Literal["exact", "choice", "judge"]
    question: str
    answer: str  # the ground truth: a text, a choice's label, or the reference that the judge goes by; never shown
    choices: dict[str, str] = {}  # label -> text, for a choice
    match: dict[str, Any] = {"type": "string", "case": "ignore", "collapse": True}  # for an exact answer

    @model_validator(mode="after")
    def _a_choice_is_among_the_choices(self) -> "QaTask":
        if self.kind == "choice" and self.answer not in self.choices:
            raise ValueError("'answer' should be a label of 'choices'")
        return self


class JudgeOptions(BaseModel, extra="forbid"):
    """Who judges: any Responses endpoint, such as a model interface of ours."""

    url: str
    """Without `/v1/responses`."""
    api_key: str | None = None
    """Bearer token; from the environment as `${oc.env:JUDGE_KEY}`."""
    model: str | None = None
    """Sent as `model`, where one server has several."""
    instruction: str = "Does the answer say what the reference says, without contradicting it?"
    votes: int = Field(1, ge=1, le=15)
    """So many opinions for each answer; the majority counts, and a tie is the worse label."""
    timeout_s: float = Field(60.0, gt=0)
    """Of one request."""


class QaOptions(BaseModel, extra="forbid"):
    """The judge."""

    judge: JudgeOptions | None = None
    """None: rows of kind `judge` fail as `judge_unavailable`; the others need none."""


class QaJudge(Environment[QaTask]):
    """The final answer counts: in `<answer>` tags, boxed, or after "Answer:"; else the whole text. A judge reads all of it."""

    Options = QaOptions
    stateless = True
    shared: ClassVar[Aside[Client] | None]

    @classmethod
    def load(cls, options: QaOptions) -> Aside[Client] | None:
        """The way to the judge."""
        asked = options.judge
        if asked is None:
            return None
        url, key = asked.url, asked.api_key
        return Aside(
            lambda: Client({ROOM: url}, token=key).__aenter__(), lambda client: client.__aexit__(None, None, None)
        )

    async def verify(self, response: Response) -> Verdict:
        task, text = self.task, response.text
        if task.kind == "judge":
            return await self._judged(text)
        match = {"type": "choice", "choices": task.choices} if task.kind == "choice" else task.match
        grade = answers.grade(text, task.answer, match)
        return Verdict(reward=grade.reward, reason=grade.reason)

    async def _judged(self, text: str) -> Verdict:
        options = self.options.judge
        if options is None or self.shared is None:
            raise JudgeUnavailable("the row wants a judge, and none is configured (resources_server.options.judge.url)")
        parameters = {"temperature": 0.0, **({"model": options.model} if options.model else {})}
        task = self.task

        async def asked(client: Client) -> Verdict:
            ask = over_http(client, server=ROOM, seconds=options.timeout_s)
            judge = Judge(ask, instruction=options.instruction, votes=options.votes, parameters=parameters)
            grade = await judge.grade(task.question, text, task.answer)
            return Verdict(reward=grade.reward, reason=grade.reason)

        return await self.shared.run(asked)

    def solution(self) -> str:
        return self.task.answer if self.task.kind == "judge" else f"<answer>{self.task.answer}</answer>"
