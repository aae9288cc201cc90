"""The tables in which sessions are kept, and how a database is opened for several processes."""

from typing import Any

from sqlalchemy import Column, Float, Index, Integer, LargeBinary, MetaData, String, Table, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from wire.errors import UsageError

SQLITE_BUSY_MS = 30_000  # wait for another process's write rather than fail with "database is locked"
DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg", "postgres": "postgresql+asyncpg"}

METADATA = MetaData()

SESSIONS = Table(
    "trivium_sessions",
    METADATA,
    Column("environment", String(200), primary_key=True),
    Column("id", String(256), primary_key=True),
    Column("row_digest", LargeBinary, nullable=False),
    Column("row", LargeBinary, nullable=False),
    Column("state", LargeBinary, nullable=False),
    Column("offered", LargeBinary, nullable=False),
    Column("seed_reply", LargeBinary, nullable=False),
    Column("verdict", LargeBinary),
    Column("broken", String(500)),
    Column("ended", String(200)),  # how; NULL while it is open
    Column("last_used", Float, nullable=False),  # seconds since the epoch
    Column("size", Integer, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("holder", String(200)),  # machine/process/start of who is using it
    Column("held_until", Float),
    Index("trivium_sessions_open", "environment", "ended", "last_used"),
    Index("trivium_sessions_held", "holder"),
)
CALLS = Table(
    "trivium_calls",
    METADATA,
    Column("environment", String(200), primary_key=True),
    Column("session_id", String(256), primary_key=True),
    Column("number", Integer, primary_key=True),  # 0, 1, 2, …
    Column("call_id", String(256)),
    Column("tool", String(64), nullable=False),
    Column("arguments", LargeBinary, nullable=False),
    Column("status", String(20), nullable=False),
    Column("reply_status", Integer),
    Column("reply_type", String(100)),
    Column("reply", LargeBinary),
    Index("trivium_calls_by_id", "environment", "session_id", "call_id"),
)
SECRETS = Table(
    "trivium_secrets",
    METADATA,
    Column("name", String(64), primary_key=True),
    Column("value", LargeBinary, nullable=False),  # random, made by whoever came first
)


def with_driver(url: str) -> URL:
    """The URL with the async driver for its database.

    Raises:
        UsageError: There is none.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise UsageError(
            "resources_server.sessions.url is no database URL: write memory, sqlite:///sessions.db or "
            "postgresql://user:password@host/name",
            param="resources_server.sessions.url",
        ) from None
    backend = parsed.get_backend_name()
    if backend not in DRIVERS:
        raise UsageError(
            f"resources_server.sessions.url: no driver for {backend!r} (have: memory, sqlite, postgresql)",
            param="resources_server.sessions.url",
        )
    return parsed.set(drivername=DRIVERS[backend])


def engine_for(url: URL) -> AsyncEngine:
    """Connections to it; none is opened yet.

    Raises:
        UsageError: Its driver is not installed.
    """
    try:
        if url.get_backend_name() != "sqlite":
            return create_async_engine(url, pool_size=10, max_overflow=10, pool_pre_ping=True)
        engine = create_async_engine(url, pool_size=1, max_overflow=0)  # SQLite has one writer: queue for it here
    except ModuleNotFoundError as error:
        raise UsageError(
            f"resources_server.sessions.url needs the package {error.name!r}: pip install trivium[postgres]",
            param="resources_server.sessions.url",
        ) from error
    event.listen(engine.sync_engine, "connect", _for_sharing)
    return engine


def _for_sharing(connection: Any, record: Any) -> None:
    """Readers beside a writer, and writers that wait for each other."""
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", f"busy_timeout={SQLITE_BUSY_MS}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
