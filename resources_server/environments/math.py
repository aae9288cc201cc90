"""Mathematics with answers that a computer algebra library compares: any form that means the same is right."""

import re
from typing import ClassVar

from pydantic import BaseModel, Field

from resources_server import Environment, Response, Task, Verdict
from resources_server.grading.aside import Aside
from resources_server.grading.symbolic import Symbolic

NAMED = re.compile(r"(\\boxed\{\s*)[a-zA-Z]['′]*\([a-z]\)\s*=")  # \boxed{f'(x) = …}: what is asked for, said again


class MathTask(Task):
    answer: str  # the ground truth, in LaTeX or plain; never shown
    ordered: bool = False  # whether a list without brackets has an order
    tolerance: float = 0.0  # relative, for answers that are decimals


class MathOptions(BaseModel, extra="forbid"):
    """The processes that compare."""

    seconds: float = Field(3.0, gt=0)
    """CPU time of one comparison; past it the answer counts as not shown to be right."""
    workers: int = Field(2, ge=1, le=64)
    """Processes with the library in them, started when first needed; about 60 MB each."""


class Math(Environment[MathTask]):
    r"""The last `\boxed{…}` of the answer counts; needs `pip install 'trivium[math]'`."""

    Options = MathOptions
    stateless = True
    shared: ClassVar[Aside[Symbolic]]

    @classmethod
    def load(cls, options: MathOptions) -> Aside[Symbolic]:
        """The comparison; without the extra `math` the server does not start."""

        async def made() -> Symbolic:
            return Symbolic(seconds=options.seconds, workers=options.workers)

        return Aside(made, lambda symbolic: symbolic.close())

    async def verify(self, response: Response) -> Verdict:
        task, text = self.task, NAMED.sub(r"\1", response.text)
        if "\\boxed{" not in text:
            return Verdict(reward=0.0, metrics={"boxed": 0.0}, reason="no boxed answer")
        grade = await self.shared.run(
            lambda symbolic: symbolic.match(text, task.answer, tolerance=task.tolerance, ordered=task.ordered)
        )
        return Verdict(reward=grade.reward, metrics={"boxed": 1.0}, reason=grade.reason)

    def solution(self) -> str:
        return f"\\boxed{{{self.task.answer}}}"
