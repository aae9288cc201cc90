"""Sessions: one rollout's life in the resources server, from seed to close; and where they are kept.

A store hands a session out for the length of a call, alone unless the call only reads, and takes back what changed. It knows which ids
were used up, so that a closed session never comes back to life.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import orjson

from resources_server.environment import Environment
from resources_server.turns import Turns
from wire.errors import Unauthorized

MAX_REPLIES = 256  # remembered per session, for callers that ask again; a lost one is asked for within seconds
MAX_REPLY_BYTES = 4 << 20  # of them together; the newest 32 are kept whatever their size
MIN_REPLIES = 32

CloseWorld = Callable[[Environment[Any]], Coroutine[Any, Any, None]]


class Reply(NamedTuple):
    """An answer as it went, or goes, out."""

    body: bytes
    status: int = 200
    content_type: bytes = b"application/json"


class Ran(NamedTuple):
    """One call that came in, and what became of it."""

    tool: str
    arguments: bytes  # the model's own text
    status: str  # `ok`, `tool_error`, `failed`; `refused`: never ran, so it is no accepted call


class Record(NamedTuple):
    """A call as it is kept."""

    ran: Ran
    call_id: str | None  # X-Call-Id
    reply: Reply | None  # only where it can be asked for again


@dataclass(slots=True)
class Session:
    """One rollout's world and what is remembered about it."""

    id: str
    row_digest: bytes
    row: bytes  # as it was sent; empty in a store that keeps worlds themselves
    world: Environment[Any]
    offered: frozenset[str]  # tools that may be called; one object for all sessions that have the same
    seed_reply: tuple[bytes, bytes]  # its own part, and the part that is one object likewise: 27 schemas are 16 KB
    ran: list[Ran] = field(default_factory=list)  # accepted calls, in order
    replies: dict[str, Record] = field(default_factory=dict)  # by X-Call-Id
    verdict: bytes | None = None  # members of the verify reply, once there is one
    broken: str | None = None  # why the world cannot be used any more, though it is still open
    journal: list[Record] | None = None  # what happened in this use, for a store that writes it down
    turns: Turns = field(default_factory=Turns)
    users: int = 0
    last_used: float = 0.0  # monotonic
    reply_bytes: int = 0
    held: int = 0  # bytes of calls and remembered replies
    size: int = 0  # bytes counted for it in all

    def record(self, ran: Ran, call_id: str | None, reply: Reply) -> None:
        """Keep a call: for the verdict where it ran, for a repeat where it can be asked for again."""
        if ran.status != "refused":
            self.ran.append(ran)
            self.held += len(ran.arguments)
        if self.journal is not None:
            self.journal.append(Record(ran, call_id, reply if call_id else None))
        elif call_id:
            self.replies[call_id] = Record(ran, call_id, reply)
            self.reply_bytes += len(reply.body)
            self.held += len(reply.body)
            if len(self.replies) > MIN_REPLIES:
                self._forget_oldest()

    def _forget_oldest(self) -> None:
        """Replies beyond the bounds; by then nobody asks for them again."""
        while len(self.replies) > MAX_REPLIES or (
            self.reply_bytes > MAX_REPLY_BYTES and len(self.replies) > MIN_REPLIES
        ):
            oldest = self.replies.pop(next(iter(self.replies)))
            length = len(oldest.reply.body) if oldest.reply else 0
            self.reply_bytes -= length
            self.held -= length


@dataclass(frozen=True, slots=True)
class Seeded:
    """What a seed left behind, for the same seed asked again."""

    row_digest: bytes
    reply: bytes


class SessionStore(Protocol):
    """Where sessions are kept."""

    shared: bool
    """Whether several processes may serve the same sessions."""
    secret: bytes | None
    """What signs cookies in all of them, once the store is open; None where there is one process."""

    async def start(self, close_world: CloseWorld) -> None:
        """Open what is needed. `close_world` is called for each world that ends without being asked to."""

    async def stop(self) -> None:
        """Let go of everything; sessions that outlive the process stay open."""

    async def seeded(self, session_id: str) -> Seeded | None:
        """What the session was seeded with, or None if it never was.

        Raises:
            Gone: It was closed or has expired.
        """

    def admit(self, size: int) -> None:
        """Make sure that there is room for one more.

        Raises:
            Overloaded: There is none.
        """

    async def add(self, session: Session) -> bool:
        """Keep a new session. False if another caller seeded the same id meanwhile."""

    def use(
        self, session_id: str | None, *, reading: bool = False, call_id: str | None = None, history: bool = False
    ) -> contextlib.AbstractAsyncContextManager[Session]:
        """The session, for the length of the block; what was changed is kept when the block ends.

        Args:
            session_id: The caller's.
            reading: The block changes nothing, so others that only read may run beside it.
            call_id: The reply remembered under it is wanted in `replies`.
            history: `ran` is wanted whole.

        Raises:
            Unauthorized: No id, or one that was never seeded.
            Gone: It was closed or has expired.
        """

    async def close(self, session_id: str) -> None:
        """End the session, whether it is there or not; it is never seeded again."""

    def gauges(self) -> dict[str, Callable[[], float]]:
        """Numbers for `/metrics`, by name."""


def digest(row: dict[str, Any]) -> bytes:
    """What tells one row from another, whatever the order of its keys."""
    try:
        text = orjson.dumps(row, option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONEncodeError, RecursionError):  # an integer past 64 bits, a lone surrogate
        text = json.dumps(row, sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=16).digest()


def never_seeded(session_id: str | None) -> Unauthorized:
    """The error for a session that does not exist."""
    if session_id is None:
        return Unauthorized("no session; call seed_session first and send its X-Session-Id header or cookie")
    return Unauthorized("no session has this id; call seed_session first")
