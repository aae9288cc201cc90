"""One attempt at one rollout: a session of its own, one POST to the agent server, and whatever came of it as a line."""

import asyncio
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime

from rollouts import lines
from rollouts.gate import Gate
from rollouts.lines import Line
from rollouts.plan import Source
from wire import strict_json
from wire.client import CallError, Client, ConnectionLost, Reply, Retry, TimedOut, Unreachable
from wire.deadline import HEADER, Deadline
from wire.errors import Failed

BUSY = 503  # the agent server has as much as it can take
BUSY_WAIT_S, BUSY_LONGEST_S = 0.2, 5.0  # before a busy server is asked again; doubles each time
GIVEN_UP = ("timeout", "agent_lost")  # kinds of which nobody knows whether the agent has closed the session
CLOSE_S = 3.0  # for the session of a rollout that was given up to be closed
REFUSALS = 5  # connections refused by a server that is there all the same


class Player:
    """Plays rollouts of one source.

    Args:
        client: Has the source's servers.
        source: Where its rollouts go.
        gate: Of its agent server.
        timeout_s: Seconds that a rollout has, as the servers are told.
        grace_s: Seconds past that in which the agent server may still answer; then nobody waits any longer.
    """

    def __init__(self, client: Client, source: Source, gate: Gate, timeout_s: float, grace_s: float) -> None:
        self._client, self._source, self._gate = client, source, gate
        self._timeout_s, self._grace_s = timeout_s, grace_s

    async def play(self, row: bytes, timing: "Timing") -> Line:
        """The line of one attempt, not yet stamped: a verdict, or the failure that left it without one.

        Cancelled, it closes the rollout's session and says nothing more.
        """
        session = secrets.token_hex(16)
        try:
            reply = await self._reply(self._named(row), session, timing)
            return lines.from_reply(reply, row)
        except Failed as error:
            if error.kind in GIVEN_UP and timing.sent:
                await self._close(session)
            return lines.without_verdict(strict_json.loads(row), error)
        except asyncio.CancelledError:
            await self._close(session)
            raise

    async def _reply(self, row: bytes, session: str, timing: "Timing") -> Reply:
        """Raises `Failed` where there is none."""
        for _ in range(REFUSALS):
            if not await self._gate.passed():
                raise Failed("agent_lost", str(self._gate.dead))
            timing.start()
            try:
                async with asyncio.timeout(self._timeout_s + self._grace_s):
                    return await self._admitted(row, session)
            except Unreachable as error:
                self._gate.refused(str(error))
                cause = str(error)
            except ConnectionLost as error:
                raise Failed("agent_lost", str(error)) from error
            except (TimedOut, TimeoutError) as error:
                raise Failed("timeout", f"{self._source.agent_server} had not answered {self._limit()}") from error
        raise Failed("agent_lost", f"{cause}, {REFUSALS} times, although it says it is well")

    async def _admitted(self, row: bytes, session: str) -> Reply:
        """The answer of an agent server that takes the rollout; one that has too many is asked again within the deadline."""
        deadline, budget = Deadline(self._timeout_s + self._grace_s), Deadline(self._timeout_s)
        wait_s = BUSY_WAIT_S
        while True:
            headers = {"X-Session-Id": session, HEADER: budget.header()}
            reply = await self._client.post(
                self._source.agent_server, "/run", row, headers, deadline=deadline, retry=Retry.NEVER
            )
            self._gate.answered()
            if reply.status != BUSY:
                return reply
            await asyncio.sleep(min(wait_s, deadline.left()))
            wait_s = min(BUSY_LONGEST_S, wait_s * 2)

    async def _close(self, session: str) -> None:
        """Free the session of a rollout whose agent may not do it any more."""
        server = self._source.resources_server
        if server is None:
            return
        headers = {"X-Session-Id": session}
        try:
            await self._client.post(
                server, "/close_session", b"{}", headers, deadline=Deadline(CLOSE_S), retry=Retry.NEVER
            )
        except CallError:
            return  # the server forgets sessions by itself, later

    def _named(self, row: bytes) -> bytes:
        """The row with its environment's name, where the agent server needs it and the row has none."""
        if not self._source.names_itself:
            return row
        parsed = strict_json.loads(row)
        if parsed.get("environment") == self._source.name:
            return row
        return strict_json.dumps({**parsed, "environment": self._source.name})

    def _limit(self) -> str:
        return f"within {self._timeout_s:g} s (rollouts.timeout_s) and {self._grace_s:g} s of grace"


class Timing:
    """When an attempt was sent, and how long ago that is."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.start()
        self.sent = False

    def start(self) -> None:
        """It is sent now."""
        self.sent = True
        self._at = self._clock()
        self.started_at = datetime.now(UTC).isoformat(timespec="milliseconds")

    @property
    def seconds(self) -> float:
        """Since it was sent."""
        return self._clock() - self._at
