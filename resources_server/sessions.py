"""Sessions: one rollout's life in the resources server, from seed to close; and where they are kept.

A store hands a session out for the length of a call, alone unless the call only reads, and takes back what changed. It knows which ids
were used up, so that a closed session never comes back to life.
"""

import asyncio
import contextlib
import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import orjson

from resources_server.environment import Environment
from resources_server.turns import Turns
from wire.errors import Gone, Overloaded, Unauthorized

MAX_REPLIES = 256  # remembered per session, for callers that ask again; a lost one is asked for within seconds
MAX_REPLY_BYTES = 4 << 20  # of them together; the newest 32 are kept whatever their size
MIN_REPLIES = 32
MAX_TOMBSTONES = 200_000  # ids of ended sessions, so that they stay ended; some 30 MB
OVERHEAD_BYTES = 4096  # of a session, beside what it was sent

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
        record = Record(ran, call_id, reply if call_id else None)
        if ran.status != "refused":
            self.ran.append(ran)
            self.held += len(ran.arguments)
        if self.journal is not None:
            self.journal.append(record)
        elif call_id:
            self._remember(call_id, record)

    def _remember(self, call_id: str, record: Record) -> None:
        self.replies[call_id] = record
        self._count(record, 1)
        if len(self.replies) > MIN_REPLIES:
            while len(self.replies) > MAX_REPLIES or self.reply_bytes > MAX_REPLY_BYTES:
                self._count(self.replies.pop(next(iter(self.replies))), -1)

    def _count(self, record: Record, sign: int) -> None:
        length = sign * (len(record.reply.body) if record.reply else 0)
        self.reply_bytes += length
        self.held += length


@dataclass(frozen=True, slots=True)
class Seeded:
    """What a seed left behind, for the same seed asked again."""

    row_digest: bytes
    reply: bytes


class SessionStore(Protocol):
    """Where sessions are kept."""

    shared: bool
    """Whether several processes may serve the same sessions."""

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


class MemorySessions:
    """Worlds themselves, in this process.

    Args:
        ttl_s: A session that nobody used for so long expires.
        max_sessions: Open at once.
        max_bytes: Counted for all of them.
    """

    shared = False

    def __init__(self, ttl_s: float = 3600.0, max_sessions: int = 20_000, max_bytes: int = 4 << 30) -> None:
        self._ttl_s = ttl_s
        self._max = max_sessions
        self._max_bytes = max_bytes
        self._open: OrderedDict[str, Session] = OrderedDict()  # the longest unused first
        self._ended: OrderedDict[str, str] = OrderedDict()  # id -> how it ended
        self._reaper: asyncio.Task[None] | None = None
        self._close_world: CloseWorld | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._bytes = 0
        self._expired = 0

    async def start(self, close_world: CloseWorld) -> None:
        self._close_world = close_world
        self._reaper = asyncio.create_task(self._reap())

    async def stop(self) -> None:
        if self._reaper is not None:
            self._reaper.cancel()
        for session_id in list(self._open):
            self._end(session_id, "closed: the server stopped")
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def seeded(self, session_id: str) -> Seeded | None:
        self._refuse_ended(session_id)
        session = self._open.get(session_id)
        if session is None or self._has_expired(session):
            self._refuse_ended(session_id)
            return None
        return Seeded(session.row_digest, b"".join(session.seed_reply))

    def admit(self, size: int) -> None:
        if len(self._open) >= self._max:
            raise Overloaded(f"{len(self._open)} sessions are open, the most that sessions.max allows; try again later")
        if self._bytes + size > self._max_bytes:
            raise Overloaded(f"open sessions hold {self._bytes} bytes, near sessions.max_bytes; try again later")

    async def add(self, session: Session) -> bool:
        self._refuse_ended(session.id)
        if session.id in self._open:
            return False
        session.size = len(session.row) + len(session.seed_reply[0]) + OVERHEAD_BYTES
        session.row = b""  # the world has what it needs of it
        session.last_used = time.monotonic()
        self._open[session.id] = session
        self._bytes += session.size
        return True

    def use(
        self, session_id: str | None, *, reading: bool = False, call_id: str | None = None, history: bool = False
    ) -> contextlib.AbstractAsyncContextManager[Session]:
        return _Use(self, session_id, reading)

    async def close(self, session_id: str) -> None:
        if session_id in self._open:
            self._end(session_id, "closed")
        else:
            self._bury(session_id, "closed")

    def gauges(self) -> dict[str, Callable[[], float]]:
        return {
            "sessions_open": lambda: len(self._open),
            "sessions_busy": lambda: sum(session.users > 0 for session in self._open.values()),
            "sessions_bytes": lambda: self._bytes,
            "sessions_expired": lambda: self._expired,
        }

    def idle(self, session_id: str | None) -> Session | None:
        """The open session if no call is using it, for a call that is over before anyone else can ask; see `use` for what is
        raised. Tell `touched` afterwards."""
        session = self._open.get(session_id or "")
        if session is None or time.monotonic() - session.last_used >= self._ttl_s:
            session = self.find(session_id)
        return None if session.users else session

    def touched(self, session: Session, held: int) -> None:
        """A call of an idle session is over. `held` is what `session.held` was before."""
        session.last_used = time.monotonic()
        self._open.move_to_end(session.id)
        grown = session.held - held
        session.size += grown
        self._bytes += grown

    def find(self, session_id: str | None) -> Session:
        """The open session; see `use` for what is raised."""
        session = self._open.get(session_id or "")
        if session is None or self._has_expired(session):
            self._refuse_ended(session_id or "")
            raise never_seeded(session_id)
        return session

    def let_go(self, session: Session, grown: int) -> None:
        """A call has ended: the session is young again, and is counted with what it holds now."""
        session.users -= 1
        session.last_used = time.monotonic()
        if session.id in self._open:
            self._open.move_to_end(session.id)
            session.size += grown
            self._bytes += grown
        elif not session.users:  # it was closed meanwhile
            self._dismiss(session)

    def _has_expired(self, session: Session) -> bool:
        if session.users or time.monotonic() - session.last_used < self._ttl_s:
            return False
        self._end(session.id, f"expired: nobody used it for {self._ttl_s:g} s")
        self._expired += 1
        return True

    def _end(self, session_id: str, how: str) -> None:
        session = self._open.pop(session_id)
        self._bytes -= session.size
        self._bury(session_id, how)
        if not session.users:
            self._dismiss(session)

    def _dismiss(self, session: Session) -> None:
        if self._close_world is not None and type(session.world).close is not Environment.close:
            task = asyncio.create_task(self._close_world(session.world))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _bury(self, session_id: str, how: str) -> None:
        self._ended[session_id] = how
        if len(self._ended) > MAX_TOMBSTONES:
            self._ended.popitem(last=False)

    def _refuse_ended(self, session_id: str) -> None:
        how = self._ended.get(session_id)
        if how is not None:
            raise Gone(f"the session was {how}" if how.startswith("closed") else f"the session has {how}")

    async def _reap(self) -> None:
        """End what nobody used for too long. Busy sessions are skipped: they are young again when their call ends."""
        while True:
            await asyncio.sleep(min(self._ttl_s / 4, 15.0))
            now = time.monotonic()
            for session in list(self._old(now)):
                self._has_expired(session)

    def _old(self, now: float) -> list[Session]:
        old = []
        for session in self._open.values():
            if now - session.last_used < self._ttl_s:
                break  # the rest is younger
            old.append(session)
        return old


class _Use:
    """One call's hold on a session in memory; a class, since a generator would cost as much as the call."""

    __slots__ = ("_held", "_id", "_reading", "_session", "_store")

    def __init__(self, store: MemorySessions, session_id: str | None, reading: bool) -> None:
        self._store = store
        self._id = session_id
        self._reading = reading

    async def __aenter__(self) -> Session:
        session = self._store.find(self._id)
        session.users += 1
        self._session = session
        self._held = session.held
        if not session.turns.take_now(self._reading):
            try:
                await session.turns.take(self._reading)
                if session.id not in self._store._open:
                    session.turns.release(self._reading)
                    self._store.find(self._id)
            except BaseException:
                self._store.let_go(session, 0)
                raise
        return session

    async def __aexit__(self, *error: object) -> None:
        session = self._session
        session.turns.release(self._reading)
        self._store.let_go(session, session.held - self._held)
