"""Sandboxes out of Linux namespaces, made by a small helper process that forks one in a few milliseconds."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import socket
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path
from typing import Any

from resources_server.sandbox.limits import Limits
from resources_server.sandbox.provider import Sandbox, SandboxUnavailable
from resources_server.sandbox.session import Session, receive
from wire.errors import Failed

INSIDE = Path(__file__).with_name("inside.py")
OPEN_S = 10.0  # a start takes milliseconds; this is for a machine on its knees
FIRST_UID, UIDS = 50_000, 10_000  # nobody's own ids, one for each sandbox, so that they cannot count each other
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache")
PROJECT = Path(__file__).resolve().parents[2]


class Namespaces(Sandbox):
    """New user (unless root), mount, network, process, IPC and host name namespaces; see `inside`."""

    kind = "namespaces"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._numbers = itertools.count()
        self._starting = asyncio.Lock()
        self._zygote: asyncio.subprocess.Process | None = None
        self._link: socket.socket | None = None
        self._open_sessions: set[Session] = set()
        self._python = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
        self._spec = {"show": _shown(self._python), "hide": _hidden(), "env": _environment(self._python)}

    async def _open(self, limits: Limits) -> Session:
        if sys.platform != "linux":
            raise SandboxUnavailable(f"sandbox namespaces: {sys.platform} has none")
        ours, theirs = socket.socketpair()
        try:
            link = await self._linked()
            uid = FIRST_UID + next(self._numbers) % UIDS
            spec = json.dumps({**self._spec, "uid": uid, "disk_bytes": limits.disk_bytes}).encode()
            socket.send_fds(link, [spec], [theirs.fileno()])
        except OSError as error:
            ours.close()
            raise Failed("sandbox_lost", f"the sandbox helper is gone: {error}") from error
        finally:
            theirs.close()
        streams = await asyncio.open_connection(sock=ours)
        pid, handle = await self._ready(streams)
        session: Session

        async def end() -> None:
            self._open_sessions.discard(session)
            self._places.release()
            with suppress(ProcessLookupError, OSError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)  # it ends by itself, unless it is stuck
            os.close(handle)

        session = Session(streams, limits, str(self._python), self._turns, end, pid)
        self._open_sessions.add(session)
        return session

    async def _ready(self, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> tuple[int, int]:
        """Process id and pidfd of the new sandbox's init, once it says that the walls stand."""
        told: dict[str, Any] = {}
        try:
            async with asyncio.timeout(OPEN_S):
                while not {"pid", "ready"} <= told.keys():
                    told |= (await receive(streams[0]))[0]
                    if "error" in told:
                        raise SandboxUnavailable(f"sandbox namespaces: {told['error']}")
            return told["pid"], os.pidfd_open(told["pid"])
        except (OSError, EOFError, TimeoutError) as error:
            streams[1].close()
            raise Failed("sandbox_lost", f"the sandbox did not start: {error or type(error).__name__}") from error
        except BaseException:
            streams[1].close()
            raise

    async def _linked(self) -> socket.socket:
        """The socket to a living helper."""
        async with self._starting:
            if self._link is None or self._zygote is None or self._zygote.returncode is not None:
                self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs:
                    words = [str(self._python), "-I", "-S", "-B", str(INSIDE), "zygote", str(theirs.fileno())]
                    self._zygote = await asyncio.create_subprocess_exec(
                        *words,
                        stdin=asyncio.subprocess.DEVNULL,
                        stdout=asyncio.subprocess.DEVNULL,
                        stderr=asyncio.subprocess.DEVNULL,
                        pass_fds=[theirs.fileno()],
                        env={},
                        cwd="/",
                        start_new_session=True,
                    )
            return self._link

    async def close(self) -> None:
        for session in list(self._open_sessions):
            await session.close()
        if self._link is not None:
            self._link.close()
            self._link = None
        if self._zygote is not None:
            with suppress(ProcessLookupError):
                self._zygote.kill()
            await self._zygote.wait()
            self._zygote = None


def _shown(python: Path) -> list[str]:
    """What commands see of this machine: system programs and libraries, and Python's own runtime."""
    base = Path(sys.base_prefix).resolve()
    library = sysconfig.get_path("stdlib", vars={"base": str(base), "installed_base": str(base)})
    shared = Path(str(sysconfig.get_config_var("LIBDIR") or "")) / str(sysconfig.get_config_var("LDLIBRARY") or "")
    own = [python, Path(library), shared, shared.resolve(), *shared.parent.glob(f"{shared.name}.*")]
    outside = [str(path) for path in own if not str(path).startswith("/usr/") and path.is_absolute() and path.exists()]
    return [*SYSTEM, *dict.fromkeys(outside)]


def _hidden() -> list[str]:
    """What is not to be seen inside what is shown: installed packages, this project among them."""
    base = Path(sys.base_prefix).resolve()
    roots = [base / "lib", base / "lib64", Path("/usr/lib"), Path("/usr/local/lib"), Path("/usr/lib64")]
    packages = [
        str(found)
        for root in dict.fromkeys(roots)
        for pattern in ("python3*/site-packages", "python3*/dist-packages")
        for found in root.glob(pattern)
    ]
    places = [*packages, str(PROJECT), str(Path.cwd())]
    return [each for each in dict.fromkeys(places) if each.startswith(("/usr/", str(base)))]


def _environment(python: Path) -> dict[str, str]:
    return {
        "PATH": f"{python.parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/work",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }
