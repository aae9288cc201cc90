"""Sessions in a database: they outlive the process, and any replica may go on with them.

A session is held by one process at a time, for the length of a call. What the call changed (state, record, remembered reply) is written
in one transaction before the caller hears of it: a server killed at any moment loses nothing that was answered. A hold whose process is
dead ends by itself after `HOLD_S`, and at once where it was on this machine.
"""

import asyncio
import contextlib
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Row, and_, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from resources_server.database import CALLS, METADATA, SECRETS, SESSIONS, engine_for, with_driver
from resources_server.environment import Environment
from resources_server.sessions import CloseWorld, Ran, Record, Reply, Seeded, Session, never_seeded
from resources_server.turns import Turns
from wire import strict_json
from wire.errors import Failed, Gone, Overloaded, UsageError

COOKIE_SECRET = "session cookies"  # its name in the table
HOLD_S = 10.0  # renewed at a third of it; past it the process is taken for dead
WAIT_S = 30.0  # for a session that another process holds
FIRST_LOOK_S = 0.01  # between two looks at a held session; doubles
LONGEST_LOOK_S = 0.2
TIDY_S = 5.0  # between two looks for what has expired, and for how much there is
TOMBSTONE_S = 7 * 24 * 3600.0  # an ended session's id stays used up for so long
EXPIRE_AT_ONCE = 500  # sessions per look


class SqlSessions:
    """Sessions of one environment in one database.

    Args:
        url: SQLAlchemy's, of a SQLite file or a PostgreSQL database.
        name: The environment's; several may share a database.
        environment: Its class, which makes worlds of stored state.
        ttl_s: A session that nobody used for so long expires.
        max_sessions: Open at once, over all replicas.
        max_bytes: Of rows, state, calls and replies of open sessions.

    Raises:
        UsageError: The URL is none that we have a driver for.
    """

    shared = True

    def __init__(
        self,
        url: str,
        name: str,
        environment: type[Environment[Any]],
        ttl_s: float = 3600.0,
        max_sessions: int = 20_000,
        max_bytes: int = 4 << 30,
    ) -> None:
        self._url = with_driver(url)
        self._name = name
        self._environment = environment
        self._ttl_s = ttl_s
        self._max = max_sessions
        self._max_bytes = max_bytes
        self._me = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"
        self._engine: AsyncEngine = engine_for(self._url)
        self._mine = and_(SESSIONS.c.environment == name, SESSIONS.c.ended.is_(None))
        self._turns: dict[str, tuple[Turns, list[None]]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._close_world: CloseWorld | None = None
        self.secret: bytes | None = None
        self._open = self._bytes = self._busy = self._expired = 0

    async def start(self, close_world: CloseWorld) -> None:
        self._close_world = close_world
        try:
            async with self._engine.begin() as connection:
                await connection.run_sync(METADATA.create_all)
        except IntegrityError:  # another replica made the tables at the same moment
            pass
        except (SQLAlchemyError, OSError) as error:
            where = self._url.render_as_string(hide_password=True)
            raise UsageError(f"resources_server.sessions.url: cannot open {where}: {error}") from error
        self.secret = await self._common_secret()
        await self._measure()
        self._tasks = [asyncio.create_task(self._renew()), asyncio.create_task(self._tidy())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._engine.dispose()

    async def seeded(self, session_id: str) -> Seeded | None:
        with _telling():
            async with self._engine.connect() as connection:
                found = await self._look(connection, session_id)
            if found is None:
                return None
            await self._refuse_ended(found)
        return Seeded(found.row_digest, found.seed_reply)

    def admit(self, size: int) -> None:
        if self._open >= self._max:
            raise Overloaded(f"{self._open} sessions are open, the most that sessions.max allows; try again later")
        if self._bytes + size > self._max_bytes:
            raise Overloaded(f"open sessions hold {self._bytes} bytes, near sessions.max_bytes; try again later")

    async def add(self, session: Session) -> bool:
        state = _state(session.world)
        size = len(session.row) + len(state) + sum(map(len, session.seed_reply))
        values = {
            "environment": self._name,
            "id": session.id,
            "row_digest": session.row_digest,
            "row": session.row,
            "state": state,
            "offered": strict_json.dumps(sorted(session.offered)),
            "seed_reply": b"".join(session.seed_reply),
            "last_used": time.time(),
            "size": size,
            "calls": 0,
        }
        try:
            with _telling():
                async with self._engine.begin() as connection:
                    await connection.execute(insert(SESSIONS).values(values))
        except _TakenError:
            return False
        self._open += 1
        self._bytes += size
        return True

    def use(
        self, session_id: str | None, *, reading: bool = False, call_id: str | None = None, history: bool = False
    ) -> contextlib.AbstractAsyncContextManager[Session]:
        return self._use(session_id, reading, call_id, history)

    async def close(self, session_id: str) -> None:
        try:
            await self._close(session_id)
        except _TakenError:  # it was seeded, or closed, between the look and the tombstone
            await self._close(session_id)

    async def _close(self, session_id: str) -> None:
        with _telling():
            async with self._engine.begin() as connection:
                found = await self._look(connection, session_id)
                if found is None:
                    await connection.execute(insert(SESSIONS).values(self._tombstone(session_id)))
                    return
                if found.ended is None:
                    await self._end(connection, found, "closed")
        if found.ended is None:
            await self._dismiss(found)

    def gauges(self) -> dict[str, Callable[[], float]]:
        return {
            "sessions_open": lambda: self._open,
            "sessions_busy": lambda: self._busy,
            "sessions_bytes": lambda: self._bytes,
            "sessions_expired": lambda: self._expired,
        }

    @contextlib.asynccontextmanager
    async def _use(self, session_id: str | None, reading: bool, call_id: str | None, history: bool) -> Any:
        if session_id is None:
            raise never_seeded(None)
        async with self._turn(session_id):
            with _telling():
                held, records = await self._hold(session_id, call_id, history)
            self._busy += 1
            try:
                session = self._restored(held, records)
                before = session.verdict
                yield session
                with _telling():
                    await self._save(session, held, state=not reading and before is None)
            except BaseException:
                with contextlib.suppress(SQLAlchemyError, OSError):  # the hold ends by itself
                    await self._let_go(session_id)
                raise
            finally:
                self._busy -= 1

    @contextlib.asynccontextmanager
    async def _turn(self, session_id: str) -> Any:
        """First come first served within this process, so that only one of its calls asks the database for the session."""
        turns, waiting = self._turns.setdefault(session_id, (Turns(), []))
        waiting.append(None)
        try:
            await turns.take(shared=False)
            try:
                yield
            finally:
                turns.release(shared=False)
        finally:
            waiting.pop()
            if not waiting:
                self._turns.pop(session_id, None)

    async def _hold(
        self, session_id: str, call_id: str | None = None, history: bool = False
    ) -> tuple[Row[Any], list[Record]]:
        """Take the session from whoever has it, when they are done or dead; with the calls that are wanted of it."""
        waited, look_s = 0.0, FIRST_LOOK_S
        while True:
            now = time.time()
            free = or_(SESSIONS.c.holder.is_(None), SESSIONS.c.held_until < now)
            take = (
                update(SESSIONS)
                .where(self._mine, SESSIONS.c.id == session_id, SESSIONS.c.last_used >= now - self._ttl_s, free)
                .values(holder=self._me, held_until=now + HOLD_S)
                .returning(*SESSIONS.c)
            )
            async with self._engine.begin() as connection:
                if (held := (await connection.execute(take)).first()) is not None:
                    return held, await self._records(connection, session_id, call_id, history)
                found = await self._look(connection, session_id)
            if found is None:
                raise never_seeded(session_id)
            await self._refuse_ended(found)
            if found.holder is not None and _is_dead(found.holder):
                await self._free(found.holder)
                continue
            if waited >= WAIT_S:
                raise Overloaded(f"another server has been using the session for {waited:.0f} s; try again later")
            await asyncio.sleep(look_s)
            waited, look_s = waited + look_s, min(look_s * 2, LONGEST_LOOK_S)

    async def _records(
        self, connection: AsyncConnection, session_id: str, call_id: str | None, history: bool
    ) -> list[Record]:
        wanted = [CALLS.c.status != "refused"] if history else [CALLS.c.call_id == call_id] if call_id else []
        if not wanted:
            return []
        of_session = (CALLS.c.environment == self._name, CALLS.c.session_id == session_id)
        rows = await connection.execute(select(CALLS).where(*of_session, *wanted).order_by(CALLS.c.number))
        return [_record(each) for each in rows]

    def _restored(self, held: Row[Any], records: list[Record]) -> Session:
        world = self._environment.restored(strict_json.loads(held.row), strict_json.loads(held.state))
        offered = frozenset(strict_json.loads(held.offered))
        session = Session(held.id, held.row_digest, b"", world, offered, (held.seed_reply, b""))
        session.verdict, session.broken, session.journal = held.verdict, held.broken, []
        session.ran = [each.ran for each in records]
        session.replies = {each.call_id: each for each in records if each.call_id is not None}
        return session

    async def _save(self, session: Session, held: Row[Any], state: bool) -> None:
        """All that happened in this use, in one transaction; the hold ends with it."""
        journal = session.journal or []
        values: dict[str, Any] = {"holder": None, "held_until": None, "last_used": time.time()}
        grown = sum(len(each.ran.arguments) + (len(each.reply.body) if each.reply else 0) for each in journal)
        if state and (journal or session.verdict is not None):
            values["state"] = _state(session.world)
            grown += len(values["state"]) - len(held.state)
        values |= {"verdict": session.verdict, "broken": session.broken}
        values |= {"calls": held.calls + len(journal), "size": held.size + grown}
        rows = [self._row(session.id, held.calls + place, each) for place, each in enumerate(journal)]
        async with self._engine.begin() as connection:
            kept = await connection.execute(
                update(SESSIONS)
                .where(self._mine, SESSIONS.c.id == session.id, SESSIONS.c.holder == self._me)
                .values(values)
            )
            if kept.rowcount and rows:
                await connection.execute(insert(CALLS), rows)
        self._bytes += grown
        if not kept.rowcount:
            await self._tell_why_lost(session.id)

    async def _tell_why_lost(self, session_id: str) -> None:
        """Closed while the call ran: nobody needs what it did. Taken over: the caller must not believe what it did."""
        async with self._engine.connect() as connection:
            found = await self._look(connection, session_id)
        if found is not None and found.ended is None:
            raise Failed("session_lost", "another server took the session over while the call ran; its effect is lost")

    def _row(self, session_id: str, number: int, record: Record) -> dict[str, Any]:
        reply = record.reply
        return {
            "environment": self._name,
            "session_id": session_id,
            "number": number,
            "call_id": record.call_id,
            "tool": record.ran.tool,
            "arguments": record.ran.arguments,
            "status": record.ran.status,
            "reply_status": reply.status if reply else None,
            "reply_type": reply.content_type.decode() if reply else None,
            "reply": reply.body if reply else None,
        }

    async def _let_go(self, session_id: str) -> None:
        mine = and_(self._mine, SESSIONS.c.id == session_id, SESSIONS.c.holder == self._me)
        async with self._engine.begin() as connection:
            await connection.execute(update(SESSIONS).where(mine).values(holder=None, held_until=None))

    async def _free(self, holder: str) -> None:
        """Whatever a dead process held."""
        async with self._engine.begin() as connection:
            await connection.execute(
                update(SESSIONS).where(SESSIONS.c.holder == holder).values(holder=None, held_until=None)
            )

    async def _look(self, connection: AsyncConnection, session_id: str) -> Row[Any] | None:
        this = and_(SESSIONS.c.environment == self._name, SESSIONS.c.id == session_id)
        return (await connection.execute(select(SESSIONS).where(this))).first()

    async def _refuse_ended(self, found: Row[Any]) -> None:
        if found.ended is None and self._is_old(found):
            await self._expire(found)
            raise Gone(f"the session has expired: nobody used it for {self._ttl_s:g} s")
        if found.ended is not None:
            raise Gone(f"the session {'was' if found.ended == 'closed' else 'has'} {found.ended}")

    def _is_old(self, found: Row[Any]) -> bool:
        now = time.time()
        return bool(found.last_used < now - self._ttl_s and (found.holder is None or found.held_until < now))

    async def _expire(self, found: Row[Any]) -> None:
        async with self._engine.begin() as connection:
            await self._end(connection, found, f"expired: nobody used it for {self._ttl_s:g} s")
        self._expired += 1
        await self._dismiss(found)

    async def _end(self, connection: AsyncConnection, found: Row[Any], how: str) -> None:
        """A tombstone in its place."""
        this = and_(SESSIONS.c.environment == self._name, SESSIONS.c.id == found.id)
        gone = {"row": b"", "state": b"", "offered": b"", "seed_reply": b"", "verdict": None, "holder": None}
        await connection.execute(update(SESSIONS).where(this).values(ended=how, size=0, last_used=time.time(), **gone))
        await connection.execute(delete(CALLS).where(CALLS.c.environment == self._name, CALLS.c.session_id == found.id))
        self._open -= 1
        self._bytes -= found.size

    async def _dismiss(self, found: Row[Any]) -> None:
        if self._close_world is not None and self._environment.close is not Environment.close:
            row, state = strict_json.loads(found.row), strict_json.loads(found.state)
            await self._close_world(self._environment.restored(row, state))

    def _tombstone(self, session_id: str) -> dict[str, Any]:
        empty = dict.fromkeys(("row_digest", "row", "state", "offered", "seed_reply"), b"")
        used = {"environment": self._name, "id": session_id, "ended": "closed", "last_used": time.time()}
        return {**empty, **used, "size": 0, "calls": 0}

    async def _renew(self) -> None:
        """Say that this process lives, for all that it holds."""
        while True:
            await asyncio.sleep(HOLD_S / 3)
            with contextlib.suppress(SQLAlchemyError, OSError):  # the next turn may do better; a hold lasts three
                async with self._engine.begin() as connection:
                    held = update(SESSIONS).where(SESSIONS.c.holder == self._me)
                    await connection.execute(held.values(held_until=time.time() + HOLD_S))

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(min(TIDY_S, self._ttl_s / 4))
            with contextlib.suppress(SQLAlchemyError, OSError):  # the database is away: sessions say so, tidying waits
                await self._expire_old()
                await self._measure()

    async def _expire_old(self) -> None:
        now = time.time()
        free = or_(SESSIONS.c.holder.is_(None), SESSIONS.c.held_until < now)
        old = select(SESSIONS).where(self._mine, SESSIONS.c.last_used < now - self._ttl_s, free).limit(EXPIRE_AT_ONCE)
        async with self._engine.begin() as connection:
            found = (await connection.execute(old)).all()
            forgotten = and_(SESSIONS.c.ended.is_not(None), SESSIONS.c.last_used < now - TOMBSTONE_S)
            await connection.execute(delete(SESSIONS).where(SESSIONS.c.environment == self._name, forgotten))
        for each in found:
            await self._expire(each)

    async def _common_secret(self) -> bytes:
        """What signs the cookies of all replicas: the first one's, kept in the database."""
        with contextlib.suppress(IntegrityError):
            async with self._engine.begin() as connection:
                await connection.execute(insert(SECRETS).values(name=COOKIE_SECRET, value=secrets.token_bytes(32)))
        async with self._engine.connect() as connection:
            found = await connection.execute(select(SECRETS.c.value).where(SECRETS.c.name == COOKIE_SECRET))
            return bytes(found.scalar_one())

    async def _measure(self) -> None:
        count = select(func.count(), func.coalesce(func.sum(SESSIONS.c.size), 0)).where(self._mine)
        async with self._engine.connect() as connection:
            self._open, self._bytes = map(int, (await connection.execute(count)).one())


class _TakenError(Exception):
    """The id is in use."""


@contextlib.contextmanager
def _telling() -> Iterator[None]:
    """A database that fails is a session that cannot be had: another attempt may go better."""
    try:
        yield
    except IntegrityError as error:
        raise _TakenError from error
    except (SQLAlchemyError, OSError) as error:
        raise Failed(
            "session_lost", f"the database that keeps sessions failed: {type(error).__name__}", status=503
        ) from error


def _is_dead(holder: str) -> bool:
    """A process of this machine that is no more; of others only time can tell."""
    host, pid, _ = holder.rsplit("/", 2)
    if host != socket.gethostname() or int(pid) == os.getpid():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _record(found: Row[Any]) -> Record:
    ran = Ran(found.tool, found.arguments, found.status)
    if found.reply is None:
        return Record(ran, found.call_id, None)
    return Record(ran, found.call_id, Reply(found.reply, found.reply_status, found.reply_type.encode()))


def _state(world: Environment[Any]) -> bytes:
    try:
        return strict_json.dumps(world.state())
    except (strict_json.JSONError, ValueError) as error:
        name = type(world).__name__
        raise Failed("unserialisable", f"the state of {name} cannot be written as JSON: {error}") from None
