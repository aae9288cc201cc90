"""Programming problems: the answer is a program, judged by hidden tests in a sandbox; another tool runs what the model wants to try."""

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field

from resources_server import Environment, Response, Task, ToolError, Verdict, tool
from resources_server.grading import code
from resources_server.grading.aside import Aside
from resources_server.sandbox import Limits, Sandbox, open_sandbox

MOST_CHARS = 100_000  # of a program; longer ones are no answer to these problems


class CodeTask(Task):
    tests: list[str | dict[str, Any]] = Field(min_length=1)  # the ground truth, never shown; forms as in `grading.code`
    setup: str = ""  # source before each source test
    reference: str = ""  # a program that passes, never shown
    run_python: bool = True  # whether the model may try things out


class CodeOptions(BaseModel, extra="forbid"):
    """Where programs run, and what a pass is worth."""

    sandbox: Literal["auto", "namespaces", "container"] = "auto"
    score: Literal["all", "share"] = "all"
    """`all`: 1 when every test passes, else 0. `share`: the share of tests that pass."""
    cpu_s: float = Field(2.0, gt=0, le=60)
    """Of one run of a program."""
    memory_mib: int = Field(256, ge=32, le=4096)
    running: int | None = Field(None, ge=1)
    """Programs at once on this machine; by default one for each core."""

    def limits(self) -> Limits:
        """For one run."""
        wall_s = 2 * self.cpu_s + 1
        return Limits(cpu_s=self.cpu_s, wall_s=wall_s, memory_bytes=self.memory_mib * 2**20, output_bytes=2**18)


class Code(Environment[CodeTask]):
    """The last code block of the answer counts. The verdict needs the row and the response only."""

    Options = CodeOptions
    stateless = True
    shared: ClassVar[Aside[Sandbox]]

    @classmethod
    def load(cls, options: CodeOptions) -> Aside[Sandbox]:
        """The sandbox; without one the server does not start."""
        return Aside(
            lambda: open_sandbox(options.sandbox, limits=options.limits(), running=options.running),
            lambda box: box.close(),
        )

    def offered(self) -> list[str]:
        return ["run_python"] if self.task.run_python else []

    @tool(read_only=True)
    async def run_python(self, program: str, stdin: str = "") -> str:
        """Run a Python program and see what it prints. Nothing is kept from one run to the next; there is no network.

        Args:
            program: The source of the whole program.
            stdin: What it reads from standard input.
        """
        if len(program) + len(stdin) > MOST_CHARS:
            raise ToolError(f"the program and its input have more than {MOST_CHARS} characters")
        result = await self.shared.run(lambda sandbox: sandbox.run(program, stdin=stdin))
        return result.text() or "[nothing was printed]"

    async def verify(self, response: Response) -> Verdict:
        program = code.extract(response.text)
        if not program.strip() or len(program) > MOST_CHARS:
            return Verdict(reward=0.0, metrics={"answered": 0.0, "passed": 0.0}, reason="the answer holds no program")
        task, options = self.task, self.options
        grade = await self.shared.run(
            lambda sandbox: code.grade(sandbox, program, task.tests, setup=task.setup, score=options.score)
        )
        share = grade.parts["passed"] / grade.parts["total"]
        return Verdict(reward=grade.reward, metrics={"answered": 1.0, "passed": share}, reason=grade.reason)

    def solution(self) -> str:
        return f"```\n{self.task.reference}\n```"
