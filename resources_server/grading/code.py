"""Is this program right? Decided by running it in a sandbox, on tests that it cannot see or touch.

Three kinds of test. `{"input": …, "output": …}` runs the whole program and compares what it prints, outside the
sandbox. `{"call": name, "args": […], "expected": …}` calls a function of it. Source text (`assert f(2) == 4`,
a class with tests) runs beside it with stand-ins for its names; see `tester`. A sandbox that is lost is a failure
(`sandbox_lost`), never a grade.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from resources_server.grading.grade import Grade
from resources_server.sandbox import Limits, Result, Sandbox

Test = str | Mapping[str, Any]
FENCE = re.compile(r"```[ \t]*(?P<language>[\w+-]*)[^\n]*\n(?P<code>.*?)(?:\n[ \t]*```|\Z)", re.S)
PYTHON = ("python", "py", "python3", "")
TESTER = Path(__file__).with_name("tester.py")
OUTPUT_BYTES = 8 * 2**20  # of the tester's one line; candidates print to nowhere


def extract(text: str) -> str:
    """The program in a model's answer: its last Python code block, else its last block, else the whole text."""
    blocks = [(match["language"].lower(), match["code"]) for match in FENCE.finditer(text)]
    ours = [code for language, code in blocks if language in PYTHON] or [code for _, code in blocks]
    return ours[-1] if ours else text


async def grade(
    sandbox: Sandbox,
    program: str,
    tests: Sequence[Test],
    *,
    setup: str = "",
    score: Literal["all", "share"] = "all",
    limits: Limits | None = None,
    test_s: float = 2.0,
) -> Grade:
    """1 when every test passes; with `score="share"` the share that does. `parts` has `passed` and `total`.

    `setup` is source that runs before each source test (imports, helpers). `test_s` is the CPU time of one test, `limits`
    bound one run of the program, or all tests of a run together. ValueError when there are no tests or one is broken:
    the row's fault.
    """
    check(tests, setup)
    limits = _roomy(limits or sandbox.limits)
    outcomes: dict[int, str] = {}
    printed = {place: test for place, test in enumerate(tests) if isinstance(test, Mapping) and "output" in test}
    for place, test in printed.items():
        outcomes[place] = await _printed(sandbox, program, test, limits)
    others = {place: test for place, test in enumerate(tests) if place not in printed}
    if others:
        told = await _tested(sandbox, program, list(others.values()), setup, limits, test_s)
        outcomes |= dict(zip(others, told, strict=True))
    passed = sum(not fault for fault in outcomes.values())
    faults = [f"test {place + 1}: {fault}" for place, fault in sorted(outcomes.items()) if fault]
    reward = passed / len(tests) if score == "share" else float(passed == len(tests))
    reason = f"{passed} of {len(tests)} tests pass" + (f"; {faults[0]}" if faults else "")
    return Grade(reward, reason, {"passed": passed, "total": len(tests)})


def check(tests: Sequence[Test], setup: str = "") -> None:
    """ValueError when the tests cannot be run, whatever the program: for loading rows, and before grading."""
    if not tests or isinstance(tests, str):
        raise ValueError("the tests are missing: a list of sources, calls or inputs with outputs")
    for place, test in enumerate(tests, start=1):
        if isinstance(test, str):
            try:
                ast.parse(f"{setup}\n{test}")
            except SyntaxError as error:
                raise ValueError(f"test {place} is no Python: {error}") from error
        elif not ("output" in test or ("call" in test and "expected" in test)):
            raise ValueError(f"test {place} has neither 'output' nor 'call' and 'expected': {sorted(test)}")


def same_output(produced: bytes | str, expected: str) -> bool:
    """The same lines, up to white space at their ends and empty lines at the end."""
    text = produced.decode(errors="replace") if isinstance(produced, bytes) else produced
    return _lines(text) == _lines(expected)


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


async def _printed(sandbox: Sandbox, program: str, test: Mapping[str, Any], limits: Limits) -> str:
    """What is wrong with what the program printed; "" when nothing is."""
    result = await sandbox.run(program, stdin=str(test.get("input", "")), limits=limits)
    if same_output(result.stdout, str(test["output"])) and result.killed_by is None and result.exit_code == 0:
        return ""
    return _ended(result) or "it printed something else than expected"


async def _tested(
    sandbox: Sandbox, program: str, tests: list[Test], setup: str, limits: Limits, test_s: float
) -> list[str]:
    nonce = secrets.token_hex(16)
    job = {"nonce": nonce, "code": program, "setup": setup, "tests": list(map(_plain, tests)), "test_s": test_s}
    enough = dataclasses.replace(limits, output_bytes=max(limits.output_bytes, OUTPUT_BYTES))
    result = await sandbox.run(TESTER.read_text(), stdin=json.dumps(job), limits=enough)
    _, found, line = result.stdout.rpartition(nonce.encode())
    if not found or result.killed_by or result.exit_code:
        return [_ended(result) or "the tests did not come to an end"] * len(tests)
    outcomes: list[str] = json.loads(line)
    return outcomes


def _roomy(limits: Limits) -> Limits:
    """More time by the clock where the machine is busy; the CPU limit stays, so that a verdict needs no luck."""
    return dataclasses.replace(limits, wall_s=max(limits.wall_s, 4 * limits.cpu_s))


def _plain(test: Test) -> Any:
    return test if isinstance(test, str) else dict(test)


def _ended(result: Result) -> str:
    if result.killed_by:
        return f"stopped, over the limit on {result.killed_by}"
    if result.exit_code:
        last = result.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return f"exit code {result.exit_code}: {last[:200]}"
    return ""
