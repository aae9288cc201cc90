"""Sessions in this process: the worlds themselves, nothing written down. They end with the process."""

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable

from resources_server.environment import Environment
from resources_server.sessions import CloseWorld, Seeded, Session, never_seeded
from wire.errors import Gone, Overloaded

MAX_TOMBSTONES = 200_000  # ids of ended sessions, so that they stay ended; some 30 MB
OVERHEAD_BYTES = 4096  # of a session, beside what it was sent


class MemorySessions:
    """Worlds themselves, in this process.

    Args:
        ttl_s: A session that nobody used for so long expires.
        max_sessions: Open at once.
        max_bytes: Counted for all of them.
    """

    shared = False
    secret: bytes | None = None

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
