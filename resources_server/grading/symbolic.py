"""Are these two mathematical answers the same? By a computer algebra library, in a process that can be killed.

Answers come as a model writes them (LaTeX or plain); `latex` turns them into a small safe grammar, never into
Python source. The worker process is started once, has limits on memory and CPU, and is killed and replaced when a
comparison takes too long: that answer then counts as not shown to be equal. What sympy is not needed for
(identical text, plain numbers) is decided here, at once. Needs the extra `trivium[math]`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from resources_server.grading import finals, latex, numbers
from resources_server.grading.forms import Form, plain
from resources_server.grading.grade import Grade, right, short, wrong
from wire.errors import Failed, UsageError

WORKER = Path(__file__).with_name("symbolic_worker.py")
LATEX = Path(__file__).with_name("latex.py")
START_S = 30.0  # importing sympy takes 0.5 s, on a busy machine longer
WORDS = re.compile(r"[^\W\d_]+(?:[ '’-][^\W\d_]+)*")
MOST_CHARS = 2000  # of an answer
CPU_SLACK = 4  # time by the clock for each second of CPU, on a busy machine


class Symbolic:
    """The verdict and its worker. One comparison at a time in each; several workers for several at once."""

    def __init__(self, *, seconds: float = 3.0, memory_bytes: int = 1 << 30, workers: int = 1) -> None:
        if importlib.util.find_spec("sympy") is None:
            raise UsageError("the symbolic verdict needs sympy: pip install 'trivium[math]'")
        self.seconds, self.memory_bytes = seconds, memory_bytes
        self._idle: asyncio.LifoQueue[Worker] = asyncio.LifoQueue()
        for _ in range(workers):
            self._idle.put_nowait(Worker(memory_bytes))

    async def match(self, text: str, expected: str, *, tolerance: float = 0.0, ordered: bool = False) -> Grade:
        r"""1 when the final answer of `text` (`\boxed{…}`, `Answer: …`, or all of it) equals `expected`.

        Numbers, expressions, equations (up to a factor), inequalities and intervals, sets, tuples, matrices, vectors.
        Words (`no solution`) are compared as text. `tolerance` is relative, for answers that are decimals; `ordered` makes
        lists without brackets count in order. ValueError when `expected` cannot be read: the row's fault.
        """
        found = finals.final(text)
        if found.text is None:
            return wrong(found.note)
        said = finals.unwrapped(found.text)
        if len(said) > MOST_CHARS:
            return wrong(f"an answer of {len(said)} characters")
        if plain(said) == plain(expected) or (not tolerance and _same_number(said, expected)):
            return right()
        if _is_words(expected):
            form = Form(unicode="nfkc", collapse=True)
            same = form.of(said) == form.of(finals.unwrapped(expected))
            return right() if same else wrong(f"answered {short(said)}, expected {short(expected)}")
        answer = await self._ask({"a": said, "b": expected, "tolerance": tolerance, "ordered": ordered})
        if "unreadable" in answer:
            raise ValueError(f"the expected answer {short(expected)} cannot be read: {answer['unreadable']}")
        return (
            right()
            if answer.get("same")
            else wrong(f"answered {short(said)}, expected {short(expected)}{_why(answer)}")
        )

    async def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        worker = await self._idle.get()
        try:
            return await worker.ask(question, self.seconds)
        finally:
            self._idle.put_nowait(worker)

    async def close(self) -> None:
        """Ends the workers."""
        while not self._idle.empty():
            await self._idle.get_nowait().stop()


class Worker:
    """A process with sympy in it: lines of JSON in and out."""

    def __init__(self, memory_bytes: int) -> None:
        self.memory_bytes = memory_bytes
        self._process: asyncio.subprocess.Process | None = None

    async def ask(self, question: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Its answer; `{"late": True}` when it took longer and was killed. `Failed` when no worker can be had."""
        process = await self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            async with asyncio.timeout(CPU_SLACK * seconds):
                process.stdin.write(json.dumps({**question, "seconds": seconds}).encode() + b"\n")
                line = await process.stdout.readline()
            return json.loads(line) if line else await self._late()
        except (TimeoutError, ConnectionError):
            return await self._late()
        except BaseException:  # cancelled: the next answer would be the last question's
            await self.stop()
            raise

    async def _late(self) -> dict[str, Any]:
        await self.stop()
        return {"late": True}

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-B", str(WORKER), str(LATEX), str(self.memory_bytes)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={},
            )
            assert self._process.stdout is not None
            try:
                async with asyncio.timeout(START_S):
                    ready = await self._process.stdout.readline()
            except TimeoutError:
                ready = b""
            if not ready:
                await self.stop()
                raise Failed("verifier_error", "the symbolic verdict's worker did not start")
        return self._process

    async def stop(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            self._process = None


def _is_words(expected: str) -> bool:
    """Whether the row expects plain words, which are no mathematics."""
    if not WORDS.fullmatch(finals.unwrapped(expected)):
        return False
    try:
        latex.parse(expected)
    except latex.Unreadable:
        return True
    return False


def _same_number(said: str, expected: str) -> bool:
    one, other = numbers.read(said), numbers.read(expected)
    return one is not None and other is not None and one == other and not one.unit


def _why(answer: dict[str, Any]) -> str:
    if answer.get("late"):
        return " (the comparison took too long)"
    return f" ({answer['note']})" if answer.get("note") else ""
