"""The interface of everything that can make a sandbox."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from resources_server.sandbox.limits import Limits, Result
from resources_server.sandbox.session import Session
from wire.errors import Failed, TriviumError

SESSIONS = 1024  # open at once, by default; each takes about 2 MB and what its files take


class SandboxUnavailable(TriviumError):
    """This machine has no walls to offer; code is refused rather than run without them."""

    status, code = 503, "sandbox_unavailable"


class Sandbox(ABC):
    """Makes sessions. Bounded twice: sessions open at once, and commands that run at once (the rest wait)."""

    kind: str

    def __init__(self, *, limits: Limits | None = None, sessions: int = SESSIONS, running: int | None = None) -> None:
        self.limits = limits or Limits()
        self._places = asyncio.Semaphore(sessions)
        self._turns = asyncio.Semaphore(running or max(2, os.cpu_count() or 2))

    @abstractmethod
    async def _open(self, limits: Limits) -> Session:
        """A new session; `SandboxUnavailable` when it cannot be made. Its end gives the place back."""

    async def start(self) -> None:
        """Makes ready and proves, by running something, that the walls stand; `SandboxUnavailable` otherwise."""
        try:
            result = await self.run("print('ready')")
        except (OSError, Failed) as error:
            raise SandboxUnavailable(f"sandbox {self.kind}: {error}") from error
        if result.stdout != b"ready\n":
            raise SandboxUnavailable(f"sandbox {self.kind} does not run Python: {result.text(300)}")

    async def session(self, limits: Limits | None = None) -> Session:
        """A private machine, to be closed by the caller; waits while too many are open."""
        await self._places.acquire()
        try:
            return await self._open(limits or self.limits)
        except BaseException:
            self._places.release()
            raise

    async def run(
        self,
        program: str | Sequence[str],
        *,
        stdin: bytes | str = b"",
        files: Mapping[str, bytes | str] | None = None,
        read: Iterable[str] = (),
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Result:
        """One program in a machine of its own that is thrown away afterwards; parameters as in `Session.run`."""
        async with await self.session(limits) as session:
            return await session.run(program, stdin=stdin, files=files, read=read, env=env)

    @abstractmethod
    async def close(self) -> None:
        """Ends every session and frees everything."""

    async def __aenter__(self) -> Sandbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
