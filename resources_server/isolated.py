"""Verdicts in processes of their own, which can be killed: for code that may never end.

The parent keeps a few of them warm. Each loads the environment by name, gets the world as a line would keep it (row, state, accepted
calls), and answers with the verdict. Messages are JSON, preceded by their length.
"""

import asyncio
import contextlib
import importlib
import os
import signal
import struct
import sys
from collections.abc import AsyncIterator
from typing import Any, BinaryIO

from resources_server import verdicts
from resources_server.environment import Environment
from resources_server.threads import TookTooLong
from wire import strict_json
from wire.errors import Failed, UsageError
from wire.responses import Response
from wire.rollout import Verdict

LENGTH = struct.Struct(">Q")


class Judges:
    """A few processes that verify one environment's worlds.

    Args:
        environment: Bound to its options; its module must be importable.
        size: Processes at most.

    Raises:
        UsageError: The class cannot be found by name in another process.
    """

    def __init__(self, environment: type[Environment[Any]], size: int) -> None:
        self._start = _start_message(environment)
        self._free = asyncio.Semaphore(size)
        self._idle: list[asyncio.subprocess.Process] = []

    async def verify(self, world: Environment[Any], response: Response, timeout_s: float) -> tuple[Verdict, bool]:
        """The verdict, and whether it looked at the accepted calls.

        Raises:
            TookTooLong: It took longer; the process is gone.
            Failed: What the verifier raised, as the failure that it is.
        """
        job = {
            "row": world.task.model_dump(mode="json"),
            "state": world.state(),
            "calls": [call.model_dump() for call in world.accepted_calls()],
            "response": response.model_dump(mode="json"),
        }
        try:
            async with asyncio.timeout(timeout_s), self._process() as process:
                answer = await _asked(process, job)
        except TimeoutError:
            raise TookTooLong from None
        if "failed" in answer:
            raise Failed(answer["failed"]["code"], answer["failed"]["message"])
        return Verdict.model_validate(answer["verdict"]), answer["calls_were_read"]

    async def stop(self) -> None:
        """End all of them."""
        for process in self._idle:
            _kill(process)
            await process.wait()

    @contextlib.asynccontextmanager
    async def _process(self) -> AsyncIterator[asyncio.subprocess.Process]:
        """One of them; it is killed unless its answer came."""
        async with self._free:
            process = self._idle.pop() if self._idle else await self._started()
            try:
                yield process
            except asyncio.IncompleteReadError:
                _kill(process)
                code = await process.wait()
                raise Failed("verifier_error", f"the verifier's process ended by itself (exit code {code})") from None
            except BaseException:
                _kill(process)
                await process.wait()
                raise
            self._idle.append(process)

    async def _started(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "resources_server.isolated",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # so that what it starts can be killed with it
        )
        assert process.stdin is not None
        process.stdin.write(_message(self._start))
        return process


def main() -> None:
    """The process: verify until the parent closes the pipe."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what an author prints goes to the log, not among the answers
    start = _read(sys.stdin.buffer)
    if start is None:
        return
    module = importlib.import_module(start["module"])
    environment: type[Environment[Any]] = getattr(module, start["class"]).bound(start["options"])
    while (job := _read(sys.stdin.buffer)) is not None:
        answers.write(_message(_verified(environment, job)))
        answers.flush()


def _verified(environment: type[Environment[Any]], job: dict[str, Any]) -> dict[str, Any]:
    world = environment.restored(job["row"], job["state"], job["calls"])
    try:
        found: Any = world.verify(Response.model_validate(job["response"]))
        if asyncio.iscoroutine(found):
            found = asyncio.run(found)
        verdict = verdicts.checked(found)
    except Exception as error:  # noqa: BLE001  an author's code may raise anything
        failed = verdicts.raised(error, f"{environment.__name__}.verify", "verifier_error")
        return {"failed": {"code": failed.kind, "message": str(failed)}}
    return {"verdict": verdict.model_dump(), "calls_were_read": world.calls_were_read}


def _start_message(environment: type[Environment[Any]]) -> dict[str, Any]:
    module, name = environment.__module__, environment.__qualname__
    if module == "__main__" or not hasattr(sys.modules[module], name):
        raise UsageError(f"environment {name}: verify in a process needs a class at the top of an importable module")
    return {"module": module, "class": name, "options": environment.options.model_dump(mode="json")}


async def _asked(process: asyncio.subprocess.Process, job: dict[str, Any]) -> Any:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(_message(job))
    await process.stdin.drain()
    (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
    return strict_json.loads(await process.stdout.readexactly(length))


def _message(value: Any) -> bytes:
    text = strict_json.dumps(value)
    return LENGTH.pack(len(text)) + text


def _read(source: BinaryIO) -> Any:
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    return strict_json.loads(source.read(length))


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
