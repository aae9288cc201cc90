"""Starts servers, watches them and stops them: every one a process, none left behind.

All sockets are bound first; then the children start side by side, each on its own inherited socket. A child that dies while it starts
ends the launch with its own words; one that dies later is started again on the same socket, up to a limit.
"""

import asyncio
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from rollouts import sockets
from rollouts.child import Child
from rollouts.health import is_up
from wire.errors import TriviumError, UsageError

START_S = 60.0  # until a server must be healthy: an environment may load a large world
STOP_S = 2.5  # between asking a child to end and killing it; the whole command has 5 s (case D08)
ASK_EVERY_S = 0.03  # between two looks at a server that answers and is not ready
RESTARTS, RESTARTS_WITHIN_S = 5, 300.0
FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 5.0  # before a dead child is started again; doubles each time
USAGE_EXIT = 2  # a child's exit status for a config that it refuses


@dataclass(frozen=True)
class Server:
    """A server to start."""

    name: str  # what others call it: `agent_server`, `resources_server.workplace`
    room: str  # the package whose app it is
    source: str  # the config's name, for messages
    config: dict[str, Any]  # resolved; handed to the child as it is
    host: str = "127.0.0.1"
    port: int = 0  # 0: any free one
    workers: int = 1  # processes on the one socket
    url: str | None = None  # where others reach it, when that is not host and port


class StartFailed(TriviumError):
    """A server did not come up; the message holds what it said."""


@dataclass
class Running:
    """The servers of one launch.

    Attributes:
        urls: Server name -> URL, those that run elsewhere included.
        lost: Set once a server has died too often to be started again.
        proven_at: When the servers were last seen to be of use, on the monotonic clock: deaths before that are no loop.
    """

    urls: dict[str, str]
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    proven_at: float = 0.0
    children: dict[tuple[str, int], Child] = field(default_factory=dict)

    @property
    def pids(self) -> dict[str, list[int]]:
        """Server name -> its process ids."""
        found: dict[str, list[int]] = {}
        for (name, _), child in self.children.items():
            found.setdefault(name, []).append(child.pid)
        return found

    def prove(self) -> None:
        """They did what they are for."""
        self.proven_at = monotonic()

    def kill(self) -> None:
        """End every child at once: for the second Ctrl-C."""
        for child in self.children.values():
            child.kill()


def _ignore(_name: str, _line: str) -> None:
    """Lines of output that nobody asked for."""


@asynccontextmanager
async def launched(
    servers: list[Server],
    *,
    token: str | None,
    elsewhere: dict[str, str] | None = None,
    on_line: Callable[[str, str], None] = _ignore,
    report: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Running]:
    """Run `servers` until the block ends; inside it all of them are healthy.

    Args:
        servers: What to start.
        token: The bearer token of the control routes; None leaves them open, which only loopback addresses may.
        elsewhere: URLs of servers that run already.
        on_line: Called with each line of output of each child.
        report: Called with a sentence when a child dies.

    Raises:
        UsageError: an address cannot be bound, or a server refuses its config.
        StartFailed: a server died or did not become healthy.
    """
    _refuse_open_doors(servers, token)
    bound = _bind(servers)
    running = Running(
        {**(elsewhere or {}), **{each.name: each.url or sockets.address(bound[each.name]) for each in servers}}
    )
    launch = _Launch(servers, bound, token, running, on_line, report)
    try:
        await launch.start()
        yield running
    finally:
        await asyncio.shield(launch.stop())


def _refuse_open_doors(servers: list[Server], token: str | None) -> None:
    for server in servers:
        if token is None and not sockets.is_loopback(server.host):
            raise UsageError(
                f"{server.name}.host={server.host} is reachable from other machines and auth is none: "
                "set auth=token (and TRIVIUM_TOKEN), or bind to 127.0.0.1"
            )


def _bind(servers: list[Server]) -> dict[str, socket.socket]:
    """Fixed ports first, so that no free one that is picked is wanted by another."""
    bound: dict[str, socket.socket] = {}
    wanted: dict[tuple[str, int], str] = {}
    try:
        for server in sorted(servers, key=lambda each: each.port == 0):
            other = wanted.setdefault((server.host, server.port), server.name)
            if server.port and other != server.name:
                place = sockets.authority(server.host, server.port)
                raise UsageError(f"{other} and {server.name} both want {place}: give one another port, or port=auto")
            bound[server.name] = sockets.listen(server.name, server.host, server.port)
    except UsageError:
        for sock in bound.values():
            sock.close()
        raise
    return bound


class _Launch:
    def __init__(
        self,
        servers: list[Server],
        bound: dict[str, socket.socket],
        token: str | None,
        running: Running,
        on_line: Callable[[str, str], None],
        report: Callable[[str], None],
    ) -> None:
        self._servers, self._bound, self._token = servers, bound, token
        self._running, self._on_line, self._report = running, on_line, report
        self._keepers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        slots = [(server, index) for server in self._servers for index in range(server.workers)]
        await asyncio.gather(*(self._spawn(server, index) for server, index in slots))
        await self._all_up()
        self._keepers = [asyncio.create_task(self._keep(server, index)) for server, index in slots]

    async def stop(self) -> None:
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        await asyncio.gather(*(child.stop(STOP_S) for child in self._running.children.values()))
        for sock in self._bound.values():
            sock.close()

    async def _spawn(self, server: Server, index: int) -> Child:
        message = {
            "room": server.room,
            "source": server.source,
            "config": server.config,
            "urls": self._running.urls,
            "fd": self._bound[server.name].fileno(),
            "token": self._token,
            "name": server.name,
        }
        child = await Child.start(message, self._on_line)
        self._running.children[server.name, index] = child
        return child

    async def _all_up(self) -> None:
        waiting = [asyncio.create_task(self._until_up(server)) for server in self._servers]
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for each in waiting:
                each.cancel()
        # A refused config explains more than a crash beside it.
        for failure in sorted((each.exception() for each in done), key=lambda error: not isinstance(error, UsageError)):
            if failure is not None:
                raise failure

    async def _until_up(self, server: Server) -> None:
        """Return when it is healthy; the question waits in the socket's backlog, so a dead child is noticed beside it."""
        children = [self._running.children[server.name, index] for index in range(server.workers)]
        healthy = asyncio.create_task(self._healthy(server))
        deaths = {asyncio.create_task(child.wait()): child for child in children}
        try:
            await asyncio.wait([healthy, *deaths], timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
            for death, child in deaths.items():
                if death.done():
                    raise _death(child, death.result())
            if not healthy.done():
                raise StartFailed(f"{server.name} is not healthy after {START_S:.0f} s{_last_words(children[0])}")
        finally:
            for task in (healthy, *deaths):
                task.cancel()

    async def _healthy(self, server: Server) -> None:
        host, port = self._bound[server.name].getsockname()[:2]
        while not await is_up(sockets.ANYWHERE.get(host, host), port, server.name, START_S):  # noqa: ASYNC110
            await asyncio.sleep(ASK_EVERY_S)

    async def _keep(self, server: Server, index: int) -> None:
        """Start the child of this slot again whenever it dies, until it dies too often."""
        deaths: deque[float] = deque(maxlen=RESTARTS)
        while True:
            child = self._running.children[server.name, index]
            status = await child.wait()
            child.kill()  # what it had started
            now = monotonic()
            if deaths and self._running.proven_at > deaths[-1]:
                deaths.clear()
            if len(deaths) == RESTARTS and now - deaths[0] < RESTARTS_WITHIN_S:
                self._give_up(server, child, status)
                return
            deaths.append(now)
            recent = sum(now - each < RESTARTS_WITHIN_S for each in deaths)
            self._report(
                f"{server.name} died ({_how(status)}); it is started again ({recent} of {RESTARTS} in 5 minutes)"
            )
            await asyncio.sleep(min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (recent - 1)))
            await self._spawn(server, index)

    def _give_up(self, server: Server, child: Child, status: int) -> None:
        """Close the port, so that callers are refused at once instead of waiting for nobody."""
        self._report(
            f"{server.name} died ({_how(status)}) and was started again {RESTARTS} times: given up{_last_words(child)}"
        )
        self._bound[server.name].close()
        self._running.lost.set()


def _death(child: Child, status: int) -> TriviumError:
    if status == USAGE_EXIT and child.tail:
        said = list(child.tail)  # its refusal is the last thing it said, from its name on; warnings may stand before it
        start = max((at for at, line in enumerate(said) if line.startswith(f"{child.name}: ")), default=len(said) - 1)
        return UsageError("\n".join(said[start:]))
    return StartFailed(f"{child.name} stopped while it started ({_how(status)}){_last_words(child)}")


def _last_words(child: Child) -> str:
    return "; it said:\n" + "\n".join(f"  {line}" for line in child.tail) if child.tail else ""


def _how(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"
