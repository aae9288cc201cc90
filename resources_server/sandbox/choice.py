"""The choice of the sandbox that this machine allows."""

from __future__ import annotations

import asyncio
from typing import Any

from resources_server.sandbox.container import Containers
from resources_server.sandbox.limits import Limits
from resources_server.sandbox.namespaces import Namespaces
from resources_server.sandbox.provider import Sandbox, SandboxUnavailable
from resources_server.sandbox.session import Session
from wire.errors import UsageError

MAKERS: dict[str, type[Sandbox]] = {"namespaces": Namespaces, "container": Containers}


async def open_sandbox(kind: str = "auto", **options: Any) -> Sandbox:
    """A started sandbox of this kind; `auto` is namespaces where they work, else a container.

    `options` are `Sandbox`'s parameters and, for a container, `image` and `engine`. Raises `SandboxUnavailable`,
    naming what each kind lacks.
    """
    if kind not in ("auto", *MAKERS):
        raise UsageError(f"sandbox kind {kind!r} is none of auto, {', '.join(MAKERS)}")
    lacking = []
    for name in MAKERS if kind == "auto" else [kind]:
        mine = options if name == "container" else {k: v for k, v in options.items() if k not in ("image", "engine")}
        sandbox = MAKERS[name](**mine)
        try:
            await sandbox.start()
        except SandboxUnavailable as error:
            lacking.append(str(error))
            await sandbox.close()
        except BaseException:
            await sandbox.close()
            raise
        else:
            return sandbox
    raise SandboxUnavailable(f"no sandbox on this machine, so no untrusted code is run: {'; '.join(lacking)}")


class Deferred(Sandbox):
    """Opened when first used: for worlds whose shared things are made before there is an event loop."""

    kind = "deferred"

    def __init__(self, kind: str = "auto", **options: Any) -> None:
        super().__init__()
        self.limits = options.get("limits") or Limits()
        self._how = (kind, options)
        self._opening = asyncio.Lock()
        self._opened: Sandbox | None = None

    async def session(self, limits: Limits | None = None) -> Session:
        async with self._opening:
            if self._opened is None:
                self._opened = await open_sandbox(self._how[0], **self._how[1])
        return await self._opened.session(limits)

    async def _open(self, limits: Limits) -> Session:
        raise AssertionError("sessions are the opened sandbox's")

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()
            self._opened = None
