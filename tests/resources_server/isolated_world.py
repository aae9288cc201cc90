"""A world whose verdict is best given elsewhere; a module of its own, since another process has to find it."""

import os
import re
from typing import Any, ClassVar

from pydantic import BaseModel

from resources_server import Environment, Response, Task, Verdict, tool
from wire.errors import Failed


class LineTask(Task):
    pattern: str = "x"


class Line(Environment[LineTask]):
    """Collects lines; scores them by a regular expression that the row brings."""

    class Options(BaseModel):
        bonus: float = 0.0

    options: ClassVar[Options]
    verify_isolated: ClassVar[bool] = True

    lines: list[str] = []

    @tool
    def add(self, line: str) -> int:
        """Add a line.

        Args:
            line: The text.
        """
        self.lines.append(line)
        return len(self.lines)

    def verify(self, response: Response) -> Any:
        print("authors print")  # noqa: T201
        match response.text:
            case "die":
                os._exit(3)
            case "raise":
                raise KeyError("answer")
            case "judge":
                raise Failed("judge_unavailable", "the judge answered 503")
            case "text":
                return "1.0"
        found = sum(bool(re.fullmatch(self.task.pattern, line)) for line in self.lines)
        return Verdict(reward=found + self.options.bonus, metrics={"pid": os.getpid(), "calls": len(self.calls)})
