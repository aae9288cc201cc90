"""Sandboxes out of containers, for machines that allow those and no namespaces of our own."""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from resources_server.sandbox.limits import Limits
from resources_server.sandbox.provider import Sandbox, SandboxUnavailable
from resources_server.sandbox.session import Session, receive

IMAGE = "python:3.11-slim"  # any image that has python3
ENGINES = ("docker", "podman")
OPEN_S = 30.0
NOBODY = 65534
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/work", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}
INSIDE = Path(__file__).with_name("inside.py")


class Containers(Sandbox):
    """One container per session, without network or capabilities but those that init needs to step down."""

    kind = "container"

    def __init__(self, *, image: str = IMAGE, engine: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.image = image
        self.engine = engine or next(filter(shutil.which, ENGINES), None)
        self._source = INSIDE.read_text()
        self._open_sessions: set[Session] = set()

    async def _open(self, limits: Limits) -> Session:
        if self.engine is None or shutil.which(self.engine) is None:
            raise SandboxUnavailable(f"sandbox container: no {' or '.join(ENGINES)} here")
        process = await asyncio.create_subprocess_exec(
            *self.command(limits),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdin and process.stdout and process.stderr
        try:
            async with asyncio.timeout(OPEN_S):
                await receive(process.stdout)
        except (EOFError, TimeoutError) as error:
            with suppress(ProcessLookupError):
                process.kill()
            said = (await process.stderr.read(2000)).decode(errors="replace").strip()
            raise SandboxUnavailable(f"sandbox container: {said or 'it did not start in time'}") from error

        async def end() -> None:
            self._open_sessions.discard(session)
            self._places.release()
            with suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await process.wait()  # its input is closed, so init ends and the engine removes the container
                return
            process.kill()
            await process.wait()

        session = Session((process.stdout, process.stdin), limits, "python3", self._turns, end)
        self._open_sessions.add(session)
        return session

    def command(self, limits: Limits) -> list[str]:
        """The engine's command line for one session."""
        disk = f"rw,nosuid,nodev,size={limits.disk_bytes},mode=1777"
        memory = limits.memory_bytes + 2 * limits.disk_bytes + 64 * 2**20  # files are memory too; init needs some
        return [
            str(self.engine), "run", "--rm", "--interactive", "--network", "none", "--read-only", "--hostname", "sandbox",
            "--tmpfs", f"/work:{disk}", "--tmpfs", f"/tmp:{disk}", "--cap-drop", "ALL",
            "--cap-add", "SETUID", "--cap-add", "SETGID", "--cap-add", "KILL", "--security-opt", "no-new-privileges",
            "--pids-limit", str(limits.processes + 8), "--memory", str(memory), "--memory-swap", str(memory),
            "--cpus", "1", "--entrypoint", "python3", self.image,
            "-I", "-S", "-c", self._source, "bare", str(NOBODY), json.dumps(ENVIRONMENT),
        ]  # fmt: skip

    async def close(self) -> None:
        for session in list(self._open_sessions):
            await session.close()
