"""Programs graded by tests that they can neither see nor fake."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from resources_server.grading import code
from resources_server.sandbox import Limits, Sandbox, SandboxUnavailable, open_sandbox

SMALL = Limits(cpu_s=2.0, wall_s=6.0)
DOUBLE = "def f(x):\n    return 2 * x\n"
TESTS: list[code.Test] = ["assert f(2) == 4", "assert f(7) == 14", {"call": "f", "args": [5], "expected": 10}]


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    try:
        opened = await open_sandbox("namespaces", limits=SMALL)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    async with opened:
        yield opened


async def test_a_right_program_passes(sandbox: Sandbox) -> None:
    """Asserts and calls alike."""
    grade = await code.grade(sandbox, DOUBLE, TESTS)
    assert (grade.reward, grade.parts) == (1.0, {"passed": 3, "total": 3})


async def test_all_or_nothing_and_the_share(sandbox: Sandbox) -> None:
    """One wrong answer costs all, or its share; the reason names the first failing test."""
    program = "def f(x):\n    return 4 if x == 2 else 0\n"
    grade = await code.grade(sandbox, program, TESTS)
    assert grade.reward == 0
    assert "test 2: AssertionError" in grade.reason
    assert (await code.grade(sandbox, program, TESTS, score="share")).reward == pytest.approx(1 / 3)


CHEATS = {
    "exit": "import sys; sys.exit(0)",
    "os_exit": "import os; os._exit(0)",
    "exit_in_call": "import os\ndef f(x): os._exit(0)",
    "equal_to_all": "class E:\n  def __eq__(s, o): return True\n  def __ne__(s, o): return False\ndef f(x): return E()",
    "equal_int": "class E(int):\n  def __eq__(s, o): return True\n  __hash__ = int.__hash__\ndef f(x): return E(0)",
    "equal_str": "class E(str):\n  def __eq__(s, o): return True\n  __hash__ = str.__hash__\ndef f(x): return E('')",
    "equal_list": "class E(list):\n  def __eq__(s, o): return True\ndef f(x): return E()",
    "raises_nothing": "class E(BaseException): pass\ndef f(x): raise E",
    "assertion_patched": "import builtins\nbuiltins.AssertionError = KeyError\nbuiltins.print = lambda *a: None\ndef f(x): return 0",
    "frames": "import sys\ndef f(x):\n  g = sys._getframe()\n"
    "  while g:\n    if 'test' in g.f_locals: return 4\n    g = g.f_back\n  return 0",
    "gc": "import gc\ndef f(x):\n"
    "  for o in gc.get_objects():\n    if isinstance(o, dict) and 'expected' in o: return o['expected']\n  return 0",
    "parent_memory": "import os\nd = open(f'/proc/{os.getppid()}/mem', 'rb').read()\ndef f(x): return 0",
    "parent_stdout": "import os\nopen(f'/proc/{os.getppid()}/fd/1', 'w').write('x')\ndef f(x): return 0",
    "kill_parent": "import os\nos.kill(os.getppid(), 9)\ndef f(x): return 2 * x",
    "forged_frame": (
        "import os, struct, json\nd = json.dumps({'ok': 4}).encode()\n"
        "for fd in range(3, 20):\n  try: os.write(fd, (struct.pack('!I', len(d)) + d) * 50)\n  except OSError: pass\n"
        "def f(x): return 0"
    ),
    "rubbish_frame": (
        "import os\nfor fd in range(3, 20):\n  try: os.write(fd, b'\\xff' * 100)\n  except OSError: pass\ndef f(x): return 0"
    ),
    "hang": "def f(x):\n  while True: pass",
    "hang_at_import": "while True: pass",
    "stop_parent": "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\ndef f(x): return 2 * x",
    "syntax": "def f(x) return 2 * x",
    "empty": "",
    "prints": 'print(\'["", "", ""]\')\ndef f(x): print(4); return 0',
    "deep": "def f(x):\n  a = []\n  for _ in range(100000): a = [a]\n  return a",
    "huge": "def f(x): return 'x' * 10**9",
    "tests_on_disk": "import glob\n"
    "t = ''.join(open(p).read() for p in glob.glob('/work/**', recursive=True) + glob.glob('/tmp/*') if p[-3:] == '.py')\n"
    "def f(x): return 4 if 'f(2) ==' in t else 0",
}


@pytest.mark.parametrize("program", CHEATS.values(), ids=CHEATS.keys())
async def test_cheats_earn_nothing(sandbox: Sandbox, program: str) -> None:
    """Neither in full nor in part: leaving early, lying objects, patched built-ins, looking around, forged messages."""
    grade = await code.grade(sandbox, program, ["assert f(2) == 4", "assert f(7) == 14"], score="share", test_s=0.5)
    assert grade.reward == 0


OWN_JUDGES = [
    ("abs = lambda x: 0\ndef f(x): return 0", "assert abs(f(2) - 4) < 1e-9"),
    ("len = lambda x: 4\ndef f(x): return 0", "assert len([1] * f(2)) == 4"),
    ("isinstance = lambda *a: True\ndef f(x): return 0", "assert isinstance(f(2), str)"),
    ("class math:\n  isclose = lambda *a, **k: True\ndef f(x): return 0", "assert math.isclose(f(2), 4)"),
    ("import math\nmath.isclose = lambda *a, **k: True\ndef f(x): return 0", "assert math.isclose(f(2), 4)"),
    ("class AssertionError(Exception): pass\ndef f(x): return 0", "assert f(2) == 4"),
    ("import sys\nsys.modules['math'] = sys.modules['candidate']\ndef isclose(*a): return True\ndef f(x): return 0",
     "import math\nassert math.isclose(f(2), 4)"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "test"), OWN_JUDGES)
async def test_a_program_does_not_judge_itself(sandbox: Sandbox, program: str, test: str) -> None:
    """Its own `abs`, `len` or `math` are not what a test sees under these names."""
    assert (await code.grade(sandbox, program, [test])).reward == 0


async def test_a_function_named_like_a_built_in_is_called_by_name(sandbox: Sandbox) -> None:
    """By a call test, which names it; a source test sees the built-in."""
    program = "def sum(xs): return 42"
    assert (await code.grade(sandbox, program, [{"call": "sum", "args": [[1]], "expected": 42}])).reward == 1


async def test_one_hanging_test_does_not_take_the_others_along(sandbox: Sandbox) -> None:
    """It fails, and the rest get a fresh process."""
    program = "def f(x):\n    while x == 2: pass\n    return 2 * x"
    grade = await code.grade(sandbox, program, TESTS, score="share", test_s=0.5)
    assert grade.parts == {"passed": 2, "total": 3}


STYLES: list[tuple[str, str]] = [
    ("def f(a): a.sort()", "x = [3, 1]; f(x); assert x == [1, 3]"),
    ("def f(d): d['k'] = 1", "x = {}; f(x); assert x == {'k': 1}"),
    ("def f(): return (1, {2}, {'a': None}, 1.5, 2**5000, b'x', 1j)",
     "assert f() == (1, {2}, {'a': None}, 1.5, 2**5000, b'x', 1j)"),
    ("def f(x):\n  if x < 0: raise ValueError('negative')\n  return x",
     "try:\n  f(-1)\nexcept ValueError as e:\n  assert 'negative' in str(e)\nelse:\n  assert False"),
    ("class Full(Exception): pass\ndef f(): raise Full('x')",
     "try:\n  f()\nexcept Full:\n  pass\nelse:\n  assert False"),
    ("class Stack:\n  def __init__(s): s.items = []\n  def push(s, x): s.items.append(x)\n  def __len__(s): return len(s.items)",
     "s = Stack(); s.push(3); s.push(4); assert len(s) == 2 and s.items == [3, 4] and s"),
    ("def f(g, x): return [g(y) for y in x]", "assert f(lambda y: y + 1, [1, 2]) == [2, 3]"),
    ("def f(n):\n  for i in range(n): yield i", "assert list(f(3)) == [0, 1, 2]"),
    ("from dataclasses import dataclass\n@dataclass\nclass P:\n  x: int\n  y: int = 0", "assert P(1) == P(1, 0) and P(1).x == 1"),
    ("def f(*, a=1, b): return a - b", "assert f(b=2) == -1 and f(a=3, b=1) == 2"),
    ("LIMIT = 5", "assert LIMIT == 5"),
    ("def f(): return float('inf'), float('nan')", "a, b = f(); assert a > 1e300 and b != b"),
    ("import math\ndef f(x): return math.sqrt(x)", "import math\nassert math.isclose(f(2), 1.41421356, rel_tol=1e-6)"),
    ("def add(a, b): return a + b",
     "import unittest\nclass T(unittest.TestCase):\n  def test_a(self): self.assertEqual(add(1, 2), 3)\n"
     "r = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(T)); assert r.wasSuccessful()"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "test"), STYLES)
async def test_tests_of_every_usual_style(sandbox: Sandbox, program: str, test: str) -> None:
    """In-place changes, exceptions, classes, callbacks, generators, keyword arguments, unittest."""
    grade = await code.grade(sandbox, program, [test])
    assert grade.reward == 1, grade.reason


async def test_programs_that_read_and_print(sandbox: Sandbox) -> None:
    """Compared outside the sandbox, line by line."""
    tests = [{"input": "3\n", "output": "6"}, {"input": "5\n", "output": "10\n\n"}]
    assert (await code.grade(sandbox, "print(2 * int(input()))  ", tests)).reward == 1
    assert (await code.grade(sandbox, "print(6)", tests, score="share")).reward == 0.5
    assert (await code.grade(sandbox, "print(6); exit(1)", tests, score="share")).reward == 0
    assert "over the limit on" in (await code.grade(sandbox, "while True: print(6)", tests[:1])).reason


@pytest.mark.parametrize("tests", [[], "assert f(2) == 4", ["assert f(2 == 4"], [{"input": "1"}], [{"call": "f"}]])
def test_broken_tests_are_the_rows_fault(tests: Any) -> None:
    """Found without running anything, so that rows can be refused at load."""
    with pytest.raises(ValueError, match="test"):
        code.check(tests)


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("```python\na\n```", "a"),
        ("First:\n```python\na\n```\nBetter:\n```python\nb\n```\nRun it:\n```sh\nrun\n```", "b"),
        ("```\na\n```", "a"),
        ("```py\na\nb", "a\nb"),
        ("a = 1", "a = 1"),
    ],
)
def test_the_program_in_an_answer(text: str, program: str) -> None:
    """The last Python block counts; an unclosed one runs to the end."""
    assert code.extract(text) == program
