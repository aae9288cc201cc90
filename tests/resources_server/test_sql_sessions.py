"""Sessions in a database: a killed server loses none, and replicas share them."""

import asyncio
import contextlib
import json
import os
import random
import secrets
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import aiohttp
import pytest

from resources_server import Environment, Response, Task, tool
from resources_server.app import app_for
from resources_server.environments.counter import Counter
from resources_server.environments.warehouse import Warehouse
from resources_server.settings import ResourcesServerSettings, SessionsSettings
from resources_server.sql_sessions import SqlSessions
from tests.resources_server.conftest import Serve, World
from wire.errors import UsageError
from wire.testing import free_port

ROW = {"initial_count": 0, "expected_count": 5}
ORDER = {"stock": {"bolt": 2}, "order": {"bolt": 2}}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'sessions.db'}"
    return str(request.getfixturevalue("postgres"))


async def count(world: World, session: str) -> int:
    return int((await world.post("/get_counter_value", session=session)).json["count"])


def new_id() -> str:
    return secrets.token_urlsafe(16)


async def test_another_server_goes_on_with_a_session(serve: Serve, url: str) -> None:
    """Seeded here, called there, verified here: state, record and remembered replies are common."""
    session = new_id()
    async with serve(Warehouse, sessions={"url": url}) as one, serve(Warehouse, sessions={"url": url}) as two:
        seeded = await one.post("/seed_session", ORDER, session)
        assert (await two.post("/seed_session", ORDER, session)).body == seeded.body
        assert (await two.post("/seed_session", {**ORDER, "stock": {}}, session)).status == 409
        first = await two.post("/reserve", {"product": "bolt", "units": 2}, session, Call_Id="0.0")
        again = await one.post("/reserve", {"product": "bolt", "units": 2}, session, Call_Id="0.0")
        assert (first.status, again.body) == (200, first.body)
        assert (await two.post("/reserve", {"product": "bolt", "units": "x"}, session, Call_Id="1.0")).status == 422
        done = await one.post("/verify", {**ORDER, "response": {"output": []}}, session)
        assert done.json["reward"] == 1.0
        assert (await two.post("/verify", {**ORDER, "response": {"output": []}}, session)).body == done.body
        assert (await two.post("/list_stock", {}, session)).status == 410
        await one.post("/close_session", session=session)
        for world in (one, two):
            for path in ("/list_stock", "/seed_session"):
                reply = await world.post(path, ORDER if "seed" in path else {}, session)
                assert reply.status == 410 and "closed" in reply.text


async def test_replicas_read_each_others_cookies(serve: Serve, url: str) -> None:
    """Nothing has to be configured: what signs them is in the database."""
    async with serve(Counter, sessions={"url": url}) as one, serve(Counter, sessions={"url": url}) as two:
        cookie = (await one.post("/seed_session", ROW, session=None)).cookie
        moved = await two.post("/increment_counter", {"count": 2}, session=None, cookie=cookie)
        assert (moved.status, moved.cookie) == (200, cookie)


async def test_unknown_and_early_closed_sessions(serve: Serve, url: str) -> None:
    """As in memory: never seeded is 401; closed before its seed, it stays closed."""
    async with serve(Counter, sessions={"url": url}) as world:
        assert (await world.post("/get_counter_value", session=new_id())).status == 401
        session = new_id()
        for _ in range(2):
            assert (await world.post("/close_session", session=session)).status == 200
        assert (await world.post("/seed_session", ROW, session)).status == 410


async def test_calls_at_once_lose_no_update(serve: Serve, url: str) -> None:
    """Twenty calls of one session over two servers end at twenty."""
    session = new_id()
    async with serve(Counter, sessions={"url": url}) as one, serve(Counter, sessions={"url": url}) as two:
        await one.post("/seed_session", ROW, session)
        calls = [world.post("/increment_counter", {"count": 1}, session) for world in (one, two) for _ in range(10)]
        assert {reply.status for reply in await asyncio.gather(*calls)} == {200}
        assert await count(one, session) == 20


async def test_many_sessions_write_at_once(serve: Serve, url: str) -> None:
    """Fifty sessions of twenty calls each; no "database is locked". Case C07."""

    async def rollout(world: World) -> int:
        session = new_id()
        assert (await world.post("/seed_session", ROW, session)).status == 200
        for number in range(20):
            assert (await world.post("/increment_counter", {"count": 1}, session, Call_Id=f"{number}.0")).status == 200
        return await count(world, session)

    async with serve(Counter, sessions={"url": url}) as world:
        assert await asyncio.gather(*(rollout(world) for _ in range(50))) == [20] * 50


async def test_expiry_and_limits(serve: Serve, url: str) -> None:
    """What nobody uses expires, also behind the back of the process that seeded it."""
    async with serve(Counter, sessions={"url": url, "ttl_s": 0.5, "max": 1000}) as world:
        session = new_id()
        await world.post("/seed_session", ROW, session)
        await asyncio.sleep(0.7)
        gone = await world.post("/get_counter_value", session=session)
        assert gone.status == 410 and "expired" in gone.text
    async with serve(Warehouse, sessions={"url": url, "max": 1}) as world:
        assert (await world.post("/seed_session", ORDER, new_id())).status == 200
        assert (await world.post("/seed_session", ORDER, new_id())).status == 503


class Careless(Environment[Task]):
    """Puts into its state what is no JSON."""

    blocking: ClassVar[bool] = False
    level: float = 0.0

    @tool
    def spoil(self) -> str:
        """Spoil it."""
        self.level = float("nan")
        return "spoilt"

    def verify(self, response: Response) -> float:
        return float(len(self.calls))


async def test_state_that_is_no_json_is_told(serve: Serve, url: str) -> None:
    """The call fails as `unserialisable`; the session is as it was before."""
    session = new_id()
    async with serve(Careless, sessions={"url": url}) as world:
        await world.post("/seed_session", {}, session)
        reply = await world.post("/spoil", {}, session)
        assert reply.json["error"]["code"] == "unserialisable"
        assert (await world.post("/verify", {"response": {"output": []}}, session)).json["reward"] == 0.0


async def test_a_database_that_fails_is_a_lost_session(serve: Serve, tmp_path: Path) -> None:
    """503 `session_lost`, whatever is asked; the server lives, and so do its other answers."""
    path = tmp_path / "sessions.db"
    async with serve(Counter, sessions={"url": f"sqlite:///{path}"}) as world:
        await world.post("/seed_session", ROW)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("DROP TABLE trivium_sessions")
        for route, body in (("seed_session", ROW), ("get_counter_value", {}), ("verify", {"response": {"output": []}})):
            reply = await world.post(f"/{route}", body)
            assert (reply.status, reply.json["error"]["code"]) == (503, "session_lost"), route
        assert (await world.post("/close_session")).status == 503
        assert (await world.get("/health")).status == 200


async def test_closes_at_once_are_all_answered(serve: Serve, url: str) -> None:
    """Also of an id that was never seeded."""
    session = new_id()
    async with serve(Counter, sessions={"url": url}) as one, serve(Counter, sessions={"url": url}) as two:
        closes = [world.post("/close_session", session=session) for world in (one, two) for _ in range(5)]
        assert {reply.status for reply in await asyncio.gather(*closes)} == {200}


SERVER = """
import asyncio, sys
from resources_server.app import app_for
from resources_server.environments.warehouse import Warehouse
from resources_server.settings import ResourcesServerSettings, SessionsSettings
from wire.testing import one_server

async def main():
    app = app_for(Warehouse, ResourcesServerSettings(sessions=SessionsSettings(url=sys.argv[1])))
    async with one_server(app, port=int(sys.argv[2])) as url:
        print(url, flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@contextlib.asynccontextmanager
async def process(url: str, port: int = 0) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, url, str(port), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert started.stdout is not None
    try:
        yield (await started.stdout.readline()).decode().strip(), started
    finally:
        with contextlib.suppress(ProcessLookupError):
            started.kill()
        await started.wait()


async def test_a_killed_server_loses_no_session(url: str) -> None:
    """kill -9 in the middle of an episode; a new process goes on with it, repeats included, and the reward is right."""
    session = {"X-Session-Id": new_id()}
    bolt = {"product": "bolt", "units": 1}

    async def post(http: aiohttp.ClientSession, url: str, body: Any, **headers: str) -> Any:
        async with http.post(url, data=json.dumps(body), headers={**session, **headers}) as reply:
            assert reply.status == 200, await reply.text()
            return await reply.json()

    async with aiohttp.ClientSession() as http:
        async with process(url) as (first, server):
            await post(http, f"{first}/seed_session", ORDER)
            made = await post(http, f"{first}/reserve", bolt, **{"X-Call-Id": "0.0"})
            server.send_signal(signal.SIGKILL)
            await server.wait()
        async with process(url) as (second, _):
            assert await post(http, f"{second}/reserve", bolt, **{"X-Call-Id": "0.0"}) == made
            await post(http, f"{second}/reserve", bolt, **{"X-Call-Id": "1.0"})
            done = await post(http, f"{second}/verify", {**ORDER, "response": {"output": []}})
    assert (done["reward"], done["metrics"]) == (1.0, {"reservations": 2.0})


async def test_a_hold_of_a_dead_process_ends(url: str, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once where it was on this machine; after its time where it was elsewhere."""
    monkeypatch.setattr("resources_server.sql_sessions.HOLD_S", 0.5)
    async with serve(Counter, sessions={"url": url}) as world:
        for host in (os.uname().nodename, "elsewhere"):
            session = new_id()
            await world.post("/seed_session", ROW, session)
            dead = SqlSessions(url, "Counter", Counter)
            dead._me = f"{host}/4194305/x"  # above the kernel's highest process id
            await dead._hold(session)
            await dead.stop()
            assert await count(world, session) == 0


@pytest.mark.parametrize("url", ["mysql://localhost/x", "nonsense", "redis://x"])
def test_a_url_without_a_driver_is_refused(url: str) -> None:
    """At start, naming the key."""
    with pytest.raises(UsageError, match=r"sessions\.url"):
        app_for(Counter, ResourcesServerSettings(sessions=SessionsSettings(url=url)))


async def test_a_database_that_is_not_there_is_told_without_its_password() -> None:
    """At start, in one line."""
    store = SqlSessions("postgresql://user:secret@127.0.0.1:9/none", "Counter", Counter)

    async def nothing(world: Any) -> None: ...

    with pytest.raises(UsageError, match="cannot open") as caught:
        await store.start(nothing)
    assert "secret" not in str(caught.value)
    await store.stop()


def test_workers_may_share_a_database(tmp_path: Path) -> None:
    """Several processes are allowed where all see the sessions."""
    app_for(Counter, ResourcesServerSettings(workers=2, sessions=SessionsSettings(url=f"sqlite:///{tmp_path}/s.db")))


@pytest.mark.chaos
async def test_a_server_killed_again_and_again_runs_each_call_once(tmp_path: Path) -> None:
    """Sixty episodes of ten calls, their caller asking again by call id; every stock ends where it should."""
    url, port = f"sqlite:///{tmp_path / 'sessions.db'}", free_port()
    base, order = f"http://127.0.0.1:{port}", {"stock": {"bolt": 10}, "order": {"bolt": 10}}

    async def ask(http: aiohttp.ClientSession, path: str, session: str, body: Any, **headers: str) -> Any:
        while True:
            try:
                sent = {"X-Session-Id": session, **headers}
                async with http.post(base + path, data=json.dumps(body), headers=sent) as reply:
                    assert reply.status == 200, await reply.text()
                    return await reply.json()
            except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
                await asyncio.sleep(0.05)

    async def episode(http: aiohttp.ClientSession) -> float:
        session = new_id()
        await ask(http, "/seed_session", session, order)
        for number in range(10):
            made = await ask(http, "/reserve", session, {"product": "bolt", "units": 1}, **{"X-Call-Id": f"{number}.0"})
            assert made["number"] == number + 1
        return float((await ask(http, "/verify", session, {**order, "response": {"output": []}}))["reward"])

    async def keep_killing(ended: asyncio.Event) -> int:
        kills = 0
        while not ended.is_set():
            async with process(url, port) as (_, server):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.2 + random.random() / 2):
                        await ended.wait()
                server.send_signal(signal.SIGKILL)
                kills += 1
        return kills

    ended = asyncio.Event()
    killer = asyncio.create_task(keep_killing(ended))
    async with aiohttp.ClientSession() as http:
        rewards = await asyncio.gather(*(episode(http) for _ in range(60)))
    ended.set()
    assert await killer > 2
    assert rewards == [1.0] * 60
