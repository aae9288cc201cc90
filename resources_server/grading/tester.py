"""Runs inside a sandbox: tests in one process, the candidate's code in another, plain data between them.

A script of its own, on the standard library alone. The tests and their expected values never enter the candidate's
process; what comes back from it is decoded into plain data, so that no object with an `__eq__` of its own can pass
for the right answer. The candidate cannot look into the tester (not dumpable), and its output goes nowhere. It may
die, hang or lie: then the test fails, and the next one gets a fresh process.

    tester:     reads a job from stdin, {nonce, code, setup, tests, test_s}; writes one line, nonce + JSON, to stdout
    candidate:  `… candidate`; answers calls on its stdin and stdout
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import importlib
import json
import math
import os
import select
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

MOST_BYTES = 8 * 2**20  # of one message
MOST_NAMES = 1000  # of the candidate's that a test sees
MOST_STEPS = 100_000  # of one iteration over an object of the candidate's
TICK_S = 0.05  # how often the time of a test is looked at
WALL_FACTOR = 4  # a test may take so many times its CPU seconds by the clock
SAFE_BITS = 1000  # larger integers travel as hexadecimal text: decimal digits are slow and limited


class CandidateError(Exception):
    """An exception of a class that only the candidate has, or no answer at all."""


# plain data


def encode(value: Any, reference: Callable[[Any], Any]) -> Any:
    """JSON for plain data, exactly; everything else by `reference`."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if isinstance(value, int):
        value = int.__index__(value)
        return value if value.bit_length() <= SAFE_BITS else {"t": "int", "v": hex(value)}
    if isinstance(value, float):
        return float.__float__(value) if math.isfinite(value) else {"t": "float", "v": repr(float.__float__(value))}
    if isinstance(value, str):
        return str.__str__(value)
    if kind is complex:
        return {"t": "complex", "v": [encode(value.real, reference), encode(value.imag, reference)]}
    if kind in (bytes, bytearray):
        return {"t": "bytes", "v": value.hex()}
    if kind in (list, tuple, set, frozenset):
        return {"t": kind.__name__, "v": [encode(each, reference) for each in value]}
    if isinstance(value, dict):
        return {"t": "dict", "v": [[encode(k, reference), encode(v, reference)] for k, v in value.items()]}
    if isinstance(value, list | tuple | set | frozenset):
        plain: Any = next(base for base in (list, tuple, set, frozenset) if isinstance(value, base))
        return {"t": plain.__name__, "v": [encode(each, reference) for each in plain.__iter__(value)]}
    return reference(value)


def decode(data: Any, dereference: Callable[[Any], Any]) -> Any:
    """What `encode` meant."""
    if not isinstance(data, dict):
        return data
    kind, value = data["t"], data["v"]
    if kind in ("list", "tuple", "set", "frozenset"):
        return getattr(builtins, kind)(decode(each, dereference) for each in value)
    if kind == "dict":
        return {decode(k, dereference): decode(v, dereference) for k, v in value}
    if kind == "int":
        return int(value, 16)
    if kind == "float":
        return float(value)
    if kind == "complex":
        return complex(decode(value[0], dereference), decode(value[1], dereference))
    if kind == "bytes":
        return bytes.fromhex(value)
    return dereference(data)


# the tester's side


class Clock:
    """The time of one test: CPU of the candidate's, or several times as much by the clock, for those that sleep. So a
    busy machine does not turn a right answer into a wrong one."""

    def __init__(self, test_s: float) -> None:
        self.test_s, self.start, self.used = test_s, time.monotonic(), 0.0

    def wait(self, candidate: Candidate, reading: list[int], writing: list[int]) -> None:
        """Until one of the descriptors is ready; EOFError when the time is up."""
        while not any(select.select(reading, writing, [], TICK_S)):
            spent = cpu_of(candidate.pid) - self.used
            if spent > self.test_s or time.monotonic() - self.start > WALL_FACTOR * self.test_s:
                raise EOFError("out of time")


def cpu_of(pid: int) -> float:
    """CPU seconds of a process; 0 when it cannot be told."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (pathlib is slow to import)
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Candidate:
    """The candidate's process, started when first asked and again after it died or hung."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.process: subprocess.Popen[bytes] | None = None
        self.clock = Clock(0.0)
        self.callbacks: list[Any] = []
        self.errors: dict[str, type[Exception]] = {}
        self.generation = 0
        self.names: dict[str, str] = {}

    def start(self) -> None:
        """A fresh process with the candidate's code run in it; CandidateError when that fails."""
        self.stop()
        self.generation += 1
        words = [sys.executable, "-I", "-B", "-X", "utf8", os.path.abspath(__file__), "candidate"]  # noqa: PTH100
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(words, **streams)  # type: ignore[call-overload]
        told = self.ask({"op": "load", "code": self.code})
        self.names = {name: what for name, what in told.items() if type(name) is str} if type(told) is dict else {}
        for name, what in self.names.items():
            if what == "exception":
                self.errors.setdefault(name, type(name, (CandidateError,), {}))

    @property
    def pid(self) -> int:
        return self.process.pid if self.process is not None else 0

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def globals(self) -> dict[str, Any]:
        """What a test sees: the candidate's names, each a stand-in; but never in place of a built-in or of a module of
        the standard library, by which it would judge itself."""
        seen: dict[str, Any] = {}
        for name, what in list(self.names.items())[:MOST_NAMES]:
            if name in sys.stdlib_module_names:
                seen[name] = importlib.import_module(name)
            elif name.isidentifier() and not name.startswith("__") and not hasattr(builtins, name):
                seen[name] = self.errors[name] if what == "exception" else self.named(name)
        return seen

    def named(self, name: str) -> Any:
        return self.ask({"op": "global", "name": name})

    def ask(self, message: dict[str, Any], changed: list[Any] | None = None) -> Any:
        """Sends a request and serves the candidate's callbacks until the answer is there."""
        if self.process is None:
            raise CandidateError("the program has ended")
        try:
            self._write(message)
            while True:
                answer = self._read()
                if "callback" not in answer:
                    break
                self._write(self._called_back(answer))
            return self._result(answer, changed)
        except (OSError, EOFError, ValueError, KeyError, TypeError, RecursionError, AttributeError) as error:
            self.stop()
            raise CandidateError(f"the program gave no usable answer: {error}") from None

    def encode(self, value: Any) -> Any:
        return encode(value, self._reference)

    def decode(self, data: Any) -> Any:
        return decode(data, lambda ref: Remote(self, int(ref["v"]), self.generation))

    def _reference(self, value: Any) -> Any:
        if isinstance(value, Remote):
            return {"t": "yours", "v": object.__getattribute__(value, "_at")}
        if callable(value):
            self.callbacks.append(value)
            return {"t": "call", "v": len(self.callbacks) - 1}
        raise Unsendable(f"a {type(value).__name__} cannot be handed to the program")

    def _called_back(self, asked: dict[str, Any]) -> dict[str, Any]:
        call = self.callbacks[int(asked["callback"])]
        try:
            return {"ok": self.encode(call(*[self.decode(each) for each in asked["args"]]))}
        except Exception as error:  # noqa: BLE001 (it is the candidate's to catch)
            return {"raise": type(error).__name__, "message": str(error)}

    def _result(self, answer: dict[str, Any], changed: list[Any] | None) -> Any:
        for before, after in zip(changed or (), answer.get("args", ()), strict=False):
            _overwrite(before, self.decode(after))
        if "raise" not in answer:
            return self.decode(answer["ok"])
        name, message = str(answer["raise"]), str(answer.get("message", ""))
        known = self.errors.get(name) or getattr(builtins, name, None)
        if isinstance(known, type) and issubclass(known, Exception) and not issubclass(known, AssertionError):
            raise Raised(known(message))
        raise Raised(CandidateError(f"{name}: {message}"))

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process is not None and self.process.stdin is not None
        data = memoryview(packed(message))
        fd = self.process.stdin.fileno()
        os.set_blocking(fd, False)
        while data:
            self.clock.wait(self, [], [fd])
            data = data[os.write(fd, data) :]

    def _read(self) -> dict[str, Any]:
        size = struct.unpack("!I", self._exactly(4))[0]
        if size > MOST_BYTES:
            raise ValueError("too large")
        answer = json.loads(self._exactly(size))
        if not isinstance(answer, dict):
            raise ValueError("no object")
        return answer

    def _exactly(self, size: int) -> bytes:
        assert self.process is not None and self.process.stdout is not None
        fd, parts = self.process.stdout.fileno(), []
        while size:
            self.clock.wait(self, [fd], [])
            part = os.read(fd, size)
            if not part:
                raise EOFError("it ended")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class Raised(BaseException):
    """Carries what the candidate raised past the net that catches unusable answers."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Unsendable(BaseException):
    """The test hands over what cannot travel: the test is at fault."""


class Remote:
    """A stand-in for an object that stays with the candidate. It equals no plain value, whatever it says itself."""

    def __init__(self, candidate: Candidate, at: int, generation: int) -> None:
        for name, value in (("_candidate", candidate), ("_at", at), ("_generation", generation)):
            object.__setattr__(self, name, value)

    def __call__(self, *args: Any, **named: Any) -> Any:
        sent = {"args": [_encoded(self, each) for each in args]}
        sent["named"] = [[name, _encoded(self, each)] for name, each in named.items()]
        return _asked(self, "call", sent, [*args, *named.values()])

    def __getattr__(self, name: str) -> Any:
        return _asked(self, "getattr", {"name": name})

    def __setattr__(self, name: str, value: Any) -> None:
        _asked(self, "setattr", {"name": name, "args": [_encoded(self, value)]})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Remote) and _asked(self, "eq", {"args": [_encoded(self, other)]}) is True

    def __hash__(self) -> int:
        return hash(_asked(self, "hash"))

    def __len__(self) -> int:
        return int(_asked(self, "len"))

    def __bool__(self) -> bool:
        return _asked(self, "bool") is True

    def __str__(self) -> str:
        return str(_asked(self, "str"))

    def __repr__(self) -> str:
        return str(_asked(self, "repr"))

    def __getitem__(self, key: Any) -> Any:
        return _asked(self, "getitem", {"args": [_encoded(self, key)]})

    def __setitem__(self, key: Any, value: Any) -> None:
        _asked(self, "setitem", {"args": [_encoded(self, key), _encoded(self, value)]})

    def __contains__(self, key: Any) -> bool:
        return _asked(self, "contains", {"args": [_encoded(self, key)]}) is True

    def __iter__(self) -> Iterator[Any]:
        iterator = _asked(self, "iter")
        for _ in range(MOST_STEPS):
            try:
                yield next(iterator)
            except StopIteration:
                return

    def __next__(self) -> Any:
        return _asked(self, "next")


def _encoded(remote: Remote, value: Any) -> Any:
    candidate: Candidate = object.__getattribute__(remote, "_candidate")
    return candidate.encode(value)


def _asked(remote: Remote, op: str, more: dict[str, Any] | None = None, changed: list[Any] | None = None) -> Any:
    candidate: Candidate = object.__getattribute__(remote, "_candidate")
    if object.__getattribute__(remote, "_generation") != candidate.generation:
        raise CandidateError("the program has ended")
    try:
        return candidate.ask({"op": op, "at": object.__getattribute__(remote, "_at"), **(more or {})}, changed)
    except Raised as raised:
        raise raised.error from None


def _overwrite(before: Any, after: Any) -> None:
    """What the candidate did to an argument in place, done to the test's own."""
    if type(before) is not type(after):
        return
    if isinstance(before, list):
        before[:] = after
    elif isinstance(before, dict | set):
        before.clear()
        before.update(after)


def packed(message: dict[str, Any]) -> bytes:
    data = json.dumps(message).encode()
    return struct.pack("!I", len(data)) + data


def run_tests(job: dict[str, Any]) -> list[str]:
    """For each test "" when it passed, else why not."""
    candidate = Candidate(job["code"])
    outcomes = []
    for test in job["tests"]:
        candidate.clock = Clock(job["test_s"])
        try:
            if candidate.process is None:
                candidate.start()
            candidate.clock = Clock(job["test_s"])
            candidate.clock.used = cpu_of(candidate.pid)
            _run_test(candidate, job["setup"], test)
            outcomes.append("")
        except (Raised, Unsendable) as error:
            outcomes.append(_told(error.error if isinstance(error, Raised) else error))
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 (whatever a test raises, it failed)
            outcomes.append(_told(error))
    candidate.stop()
    return outcomes


def _run_test(candidate: Candidate, setup: str, test: Any) -> None:
    """A test is source, run with the candidate's names in sight, or a call with its expected value."""
    if isinstance(test, str):
        scope = {"__name__": "tests", **candidate.globals()}
        exec(compile(setup + "\n" + test, "tests", "exec"), scope)
        return
    if test["call"] not in candidate.names:
        raise CandidateError(f"there is no {test['call']!r}")
    got = candidate.named(test["call"])(*test.get("args", ()), **test.get("kwargs", {}))
    if not same(got, test["expected"]):
        raise AssertionError(f"{test['call']} gave another value than expected")


def same(got: Any, expected: Any) -> bool:
    """Equal as JSON would write them: tuples are lists, and floats may differ by a rounding."""
    if isinstance(got, Remote) or isinstance(got, bool) != isinstance(expected, bool):
        return False
    if isinstance(got, int | float) and isinstance(expected, int | float):
        if isinstance(got, float) or isinstance(expected, float):
            return math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-12)
        return got == expected
    if isinstance(got, list | tuple) and isinstance(expected, list | tuple):
        return len(got) == len(expected) and all(map(same, got, expected))
    if isinstance(got, dict) and isinstance(expected, dict):
        keys = {key if isinstance(key, str) else json.dumps(key): key for key in got}
        return keys.keys() == expected.keys() and all(same(got[keys[key]], expected[key]) for key in keys)
    if isinstance(got, set | frozenset) and isinstance(expected, list | tuple):
        return len(got) == len(expected) and all(any(same(each, want) for want in expected) for each in got)
    return type(got) is type(expected) and bool(got == expected)


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]


# the candidate's side


class Served:
    """Runs the candidate's code and does with its objects what the tester asks."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self.incoming, self.outgoing = incoming, outgoing
        self.scope: dict[str, Any] = {"__name__": "candidate"}
        self.kept: list[Any] = []

    def serve(self) -> None:
        while (message := self._read()) is not None:
            self._write(self._answer(message))

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        args = [self.decode(each) for each in message.get("args", ())]
        named = {name: self.decode(each) for name, each in message.get("named", ())}
        try:
            value = self._do(message, args, named)
            return {"ok": self.encode(value), "args": [self.encode(each) for each in [*args, *named.values()]]}
        except BaseException as error:  # noqa: BLE001 (told to the tester, whatever it is)
            return {"raise": type(error).__name__, "message": str(error)[:1000]}

    def _do(self, message: dict[str, Any], args: list[Any], named: dict[str, Any]) -> Any:
        op = message["op"]
        if op == "load":
            sys.modules["candidate"] = type(sys)("candidate")  # where dataclasses look up annotations
            self.scope = vars(sys.modules["candidate"])
            self.scope["__name__"] = "candidate"
            exec(compile(message["code"], "candidate.py", "exec"), self.scope)
            return {name: _what(each) for name, each in self.scope.items() if not name.startswith("__")}
        if op == "global":
            return self.scope[message["name"]]
        thing = self.kept[message["at"]]
        if op == "call":
            return thing(*args, **named)
        if op == "getattr":
            return getattr(thing, message["name"])
        if op == "setattr":
            return setattr(thing, message["name"], args[0])
        if op in ("len", "iter", "next", "bool", "str", "repr", "hash"):
            return getattr(builtins, op)(thing)
        if op == "getitem":
            return thing[args[0]]
        if op == "setitem":
            thing[args[0]] = args[1]
            return None
        return args[0] in thing if op == "contains" else bool(thing == args[0])

    def encode(self, value: Any) -> Any:
        return encode(value, self._keep)

    def _keep(self, value: Any) -> Any:
        self.kept.append(value)
        return {"t": "ref", "v": len(self.kept) - 1}

    def decode(self, data: Any) -> Any:
        return decode(data, self._given)

    def _given(self, data: Any) -> Any:
        if data["t"] == "yours":
            return self.kept[data["v"]]

        def callback(*args: Any) -> Any:
            self._write({"callback": data["v"], "args": [self.encode(each) for each in args]})
            answer = self._read() or {}
            if "raise" in answer:
                raise getattr(builtins, answer["raise"], Exception)(answer["message"])
            return self.decode(answer["ok"])

        return callback

    def _read(self) -> dict[str, Any] | None:
        head = self._exactly(4)
        if head is None:
            return None
        data = self._exactly(struct.unpack("!I", head)[0])
        return None if data is None else json.loads(data)

    def _exactly(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            part = os.read(self.incoming, size - len(data))
            if not part:
                return None
            data += part
        return data

    def _write(self, message: dict[str, Any]) -> None:
        data = packed(message)
        while data:
            data = data[os.write(self.outgoing, data) :]


def _what(value: Any) -> str:
    if isinstance(value, type):
        return "exception" if issubclass(value, Exception) else "class"
    return "value"


def candidate() -> None:
    """Takes the pipe for itself; what the code prints, and what it reads, is nothing."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    sys.setrecursionlimit(10_000)
    with contextlib.suppress(OSError):
        Served(incoming, outgoing).serve()


def tester() -> None:
    """The job in, the outcomes out, on one line that only this process can have written."""
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: nobody reads the tests out of this process
    job = json.loads(sys.stdin.buffer.read())
    out = os.dup(1)
    os.dup2(2, 1)  # what tests print
    outcomes = run_tests(job)
    os.write(out, f"\n{job['nonce']}{json.dumps(outcomes)}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    candidate() if sys.argv[1:] == ["candidate"] else tester()
