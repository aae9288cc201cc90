"""A session's life: one seed, one end, nothing lost, nothing shared. Cases C02, C03, C05, H04."""

import asyncio
import random
from typing import ClassVar

import pytest
from itsdangerous import Signer

from resources_server import AcceptedCall, Environment, Response, Task, ToolError, tool
from resources_server.environments.counter import Counter
from resources_server.memory_sessions import MemorySessions
from resources_server.sessions import MAX_REPLIES, Ran, Reply, Session
from tests.resources_server.conftest import Answer, Serve, World

ROW = {"initial_count": 0, "expected_count": 5}
OTHER = {"initial_count": 1, "expected_count": 5}


async def count(world: World, session: str | None = "s", **headers: str) -> int:
    return int((await world.post("/get_counter_value", {}, session, **headers)).json["count"])


def cookie_of(answer: Answer) -> str:
    return answer.cookie


async def test_a_tool_before_its_seed_is_refused(serve: Serve) -> None:
    """No id, an unknown one, an absurd one: 4xx and no session made by the way."""
    async with serve(Counter) as world:
        for session in (None, "unknown"):
            reply = await world.post("/increment_counter", {"count": 1}, session)
            assert reply.status == 401 and "call seed_session first" in reply.text
        assert (await world.post("/increment_counter", {"count": 1}, "a b")).status == 401
        assert (await world.post("/seed_session", ROW, "a b")).status == 400
        assert world.app.metrics.value("sessions_open") == 0


async def test_the_same_seed_again_is_the_same_session(serve: Serve) -> None:
    """The same reply, whatever the order of the row's keys; the state is not reset. Another row is 409."""
    async with serve(Counter) as world:
        first = await world.post("/seed_session", ROW)
        await world.post("/increment_counter", {"count": 1})
        again = await world.post("/seed_session", dict(reversed(ROW.items())))
        assert (again.status, again.body) == (200, first.body)
        assert await count(world) == 1
        assert (await world.post("/seed_session", OTHER)).status == 409


class LongSeed(Environment[Task]):
    """Takes a while to seed."""

    seeds: ClassVar[list[int]] = []

    async def seed(self) -> None:
        await asyncio.sleep(0.05)
        self.seeds.append(1)

    def verify(self, response: Response) -> float:
        return 0.0


async def test_two_seeds_at_once_make_one_session(serve: Serve) -> None:
    """All copies get the first one's reply; another row at the same time is 409."""
    async with serve(LongSeed) as world:
        replies = await asyncio.gather(*(world.post("/seed_session", {"n": 1}) for _ in range(5)))
        assert len({reply.body for reply in replies}) == 1 and replies[0].status == 200
        assert len(LongSeed.seeds) == 1
        both = await asyncio.gather(*(world.post("/seed_session", {"n": n}, "t") for n in (1, 2)))
        assert sorted(reply.status for reply in both) == [200, 409]
        assert world.app.metrics.value("sessions_open") == 2


async def test_a_closed_session_stays_closed(serve: Serve) -> None:
    """Close is idempotent, also for what never was; tools, verify and seed are answered 410 after it."""
    async with serve(Counter) as world:
        await world.post("/seed_session", ROW)
        for _ in range(2):
            assert (await world.post("/close_session")).status == 200
        assert (await world.post("/close_session", session="never")).status == 200
        for session in ("s", "never"):
            for path in ("/seed_session", "/increment_counter", "/verify"):
                reply = await world.post(path, {**ROW, "count": 1, "response": {"output": []}}, session)
                assert reply.status == 410, path
                assert "was closed" in reply.text


async def test_verify_is_idempotent_and_ends_the_calls(serve: Serve) -> None:
    """Asked again it gives the same answer; no tool may run after it."""
    async with serve(Counter) as world:
        await world.post("/seed_session", ROW)
        await world.post("/increment_counter", {"count": 5})
        first = await world.post("/verify", {**ROW, "response": {"output": []}})
        late = await world.post("/increment_counter", {"count": 1})
        assert late.status == 410 and "has been verified" in late.text
        assert (await world.post("/verify", {**ROW, "response": {"output": []}})).body == first.body
        assert first.json["reward"] == 1.0


async def test_a_call_asked_for_again_runs_once(serve: Serve) -> None:
    """The same X-Call-Id is answered from memory; the same id for another call is refused."""
    async with serve(Counter) as world:
        await world.post("/seed_session", ROW)
        replies = [await world.post("/increment_counter", {"count": 2}, Call_Id="0.0") for _ in range(3)]
        assert len({reply.body for reply in replies}) == 1
        assert await count(world) == 2
        assert (await world.post("/increment_counter", {"count": 3}, Call_Id="0.0")).status == 409
        await world.post("/increment_counter", {"count": 2}, Call_Id="0.1")
        assert await count(world) == 4


async def test_a_repeat_waits_for_the_call_in_flight(serve: Serve) -> None:
    """Two copies of one call at once: one runs, both are answered."""
    async with serve(Slow) as world:
        await world.post("/seed_session", {})
        copies = [world.post("/add", {"by": 1}, Call_Id="0.0") for _ in range(5)]
        assert {reply.body for reply in await asyncio.gather(*copies)} == {b"1"}


class Slow(Environment[Task]):
    """Read, wait, write: loses updates unless calls take turns."""

    total: int = 0
    blocking: ClassVar[bool] = False

    @tool
    async def add(self, by: int) -> int:
        """Add.

        Args:
            by: How much.
        """
        before = self.total
        await asyncio.sleep(random.random() * 0.01)
        self.total = before + by
        return self.total

    @tool(read_only=True)
    async def look(self) -> int:
        """Look for a while."""
        before = self.total
        await asyncio.sleep(0.1)
        assert self.total == before, "somebody wrote meanwhile"
        return self.total

    def verify(self, response: Response) -> float:
        return float(self.total)


async def test_sessions_never_touch(serve: Serve) -> None:
    """64 at once, three calls each: session k ends at 3k."""

    async def rollout(world: World, k: int) -> float:
        session = f"session-{k}"
        await world.post("/seed_session", {}, session)
        for _ in range(3):
            await world.post("/add", {"by": k}, session)
        return float((await world.post("/verify", {"response": {"output": []}}, session)).json["reward"])

    async with serve(Slow) as world:
        rewards = await asyncio.gather(*(rollout(world, k) for k in range(64)))
    assert rewards == [3.0 * k for k in range(64)]


async def test_calls_of_one_session_take_turns(serve: Serve) -> None:
    """Twenty at once end at twenty; none is lost."""
    async with serve(Slow) as world:
        await world.post("/seed_session", {})
        replies = await asyncio.gather(*(world.post("/add", {"by": 1}) for _ in range(20)))
        assert sorted(int(reply.body) for reply in replies) == list(range(1, 21))


async def test_reads_run_together_and_writes_wait(serve: Serve) -> None:
    """Ten looks of 0.1 s take no longer than a few; a write among them sees none in progress."""
    async with serve(Slow) as world:
        await world.post("/seed_session", {})
        began = asyncio.get_running_loop().time()
        looks = [world.post("/look") for _ in range(10)]
        replies = await asyncio.gather(*looks, world.post("/add", {"by": 1}), world.post("/look"))
        assert asyncio.get_running_loop().time() - began < 0.8
        assert all(reply.status == 200 for reply in replies)


async def test_a_close_lets_the_call_in_flight_end(serve: Serve) -> None:
    """The session is gone at once for others; its world is let go of when the call has ended."""
    async with serve(Slow) as world:
        await world.post("/seed_session", {})
        look = asyncio.create_task(world.post("/look"))
        await asyncio.sleep(0.03)
        await world.post("/close_session")
        assert (await world.post("/look")).status == 410
        assert (await look).status == 200


async def test_a_cookie_is_enough(serve: Serve) -> None:
    """Each reply sets it, also the last one; it is short, and holds no state."""
    async with serve(Counter) as world:
        seeded = await world.post("/seed_session", ROW, session=None)
        cookie = cookie_of(seeded)
        assert len(cookie) < 512
        moved = await world.post("/increment_counter", {"count": 2}, session=None, cookie=f"a=b; {cookie}")
        assert moved.status == 200 and cookie_of(moved) == cookie
        assert (await world.post("/seed_session", ROW, session=None, cookie=cookie)).body == seeded.body
        assert (await world.post("/seed_session", OTHER, session=None, cookie=cookie)).status == 409
        assert await count(world, None, cookie=cookie) == 2
        done = await world.post("/verify", {**ROW, "response": {"output": []}}, session=None, cookie=cookie)
        assert done.status == 200 and cookie_of(done) == cookie


async def test_a_forged_cookie_is_refused(serve: Serve) -> None:
    """Signed with a public name, with a word, with nothing, or by the server's earlier start: 401 and no new session."""
    async with serve(Counter) as world:
        earlier = cookie_of(await world.post("/seed_session", ROW, session=None))
    async with serve(Counter) as world:
        name = cookie_of(await world.post("/seed_session", ROW, "victim")).split("=")[0]
        forged = [
            f"{name}={Signer(key, salt=salt).sign(b'victim').decode()}"
            for key in ("Counter___resources_server", "secret", "x")
            for salt in ("trivium.session", "itsdangerous.Signer")
        ]
        for cookie in [*forged, f"{name}=victim", f"{name}=", earlier]:
            for path in ("/seed_session", "/increment_counter", "/verify"):
                reply = await world.post(
                    path, {**ROW, "count": 1, "response": {"output": []}}, session=None, cookie=cookie
                )
                assert reply.status == 401, (cookie, path)
        assert world.app.metrics.value("sessions_open") == 1


async def test_replicas_with_one_secret_read_each_others_cookies(serve: Serve) -> None:
    """The cookie is known there; only the session has to be."""
    async with serve(Counter, secret="0123456789abcdef0123") as one:
        cookie = cookie_of(await one.post("/seed_session", ROW, session=None))
    async with serve(Counter, secret="0123456789abcdef0123") as two:
        assert "no session has this id" in (await two.post("/get_counter_value", session=None, cookie=cookie)).text


async def test_an_unused_session_expires_and_a_used_one_does_not(serve: Serve) -> None:
    """After `ttl_s` without a call it is answered 410 "expired"; a busy one is skipped."""
    async with serve(Slow, sessions={"ttl_s": 0.3}) as world:
        for session in ("idle", "used"):
            await world.post("/seed_session", {}, session)
        for _ in range(8):
            assert (await world.post("/look", session="used")).status == 200
        gone = await world.post("/look", session="idle")
        assert gone.status == 410 and "expired" in gone.text
        assert world.app.metrics.value("sessions_open") == 1
        assert world.app.metrics.value("sessions_expired") == 1


async def test_abandoned_sessions_are_let_go_of(serve: Serve) -> None:
    """Their number falls to nothing by itself, and so do the bytes counted for them."""
    async with serve(Counter, sessions={"ttl_s": 1.0}) as world:
        for number in range(20):
            await world.post("/seed_session", {**ROW, "pad": "x" * 10_000}, f"s{number}")
        assert world.app.metrics.value("sessions_bytes") > 200_000
        async with asyncio.timeout(5):
            while world.app.metrics.value("sessions_open"):  # noqa: ASYNC110  nothing tells when a reaper has reaped
                await asyncio.sleep(0.05)
        assert world.app.metrics.value("sessions_bytes") == 0


async def test_limits_are_answered_503_and_pass(serve: Serve) -> None:
    """By number and by bytes; a close makes room."""
    async with serve(Counter, sessions={"max": 2}) as world:
        for session in "ab":
            await world.post("/seed_session", ROW, session)
        full = await world.post("/seed_session", ROW, "c")
        assert full.status == 503 and "sessions.max" in full.text
        await world.post("/close_session", session="a")
        assert (await world.post("/seed_session", ROW, "c")).status == 200
    async with serve(Counter, sessions={"max_bytes": 50_000}) as world:
        big = {**ROW, "pad": "x" * 40_000}
        assert (await world.post("/seed_session", big, "a")).status == 200
        assert "sessions.max_bytes" in (await world.post("/seed_session", big, "b")).text


class Holding(Environment[Task]):
    """Holds something that is no state."""

    closed: ClassVar[list[str]] = []
    name: str = ""

    def seed(self) -> None:
        self.name = "world"

    @tool
    def refuse(self) -> None:
        """Refuse."""
        raise ToolError("no")

    @tool
    def accept(self, count: int = 1) -> str:
        """Accept.

        Args:
            count: How often.
        """
        return "yes"

    def verify(self, response: Response) -> float:
        expected = [
            AcceptedCall(name="accept", arguments={"count": 1}, status="ok", order=0),
            AcceptedCall(name="refuse", arguments={}, status="tool_error", order=1),
            AcceptedCall(name="accept", arguments={"count": 2}, status="ok", order=2),
        ]
        return float(self.calls == expected)

    def close(self) -> None:
        self.closed.append(self.name)


async def test_a_world_is_told_when_it_ends(serve: Serve) -> None:
    """By close, by expiry, and when the server stops; once each."""
    Holding.closed.clear()
    async with serve(Holding) as world:
        await world.post("/seed_session", {}, "a")
        await world.post("/seed_session", {}, "b")
        for _ in range(2):
            await world.post("/close_session", session="a")
    assert Holding.closed == ["world", "world"]


async def test_accepted_calls_are_what_verify_reads(serve: Serve) -> None:
    """In order, defaults filled in; a call with wrong arguments is none. They are in the reply, beside the state."""
    async with serve(Holding) as world:
        await world.post("/seed_session", {})
        for path, arguments in (("accept", {}), ("accept", {"count": "x"}), ("refuse", {}), ("accept", {"count": 2})):
            await world.post(f"/{path}", arguments)
        done = (await world.post("/verify", {"response": {"output": []}})).json
        assert done["reward"] == 1.0 and done["state"] == {"name": "world"}
        assert [call["name"] for call in done["accepted_calls"]] == ["accept", "refuse", "accept"]
        again = Holding.restored({}, done["state"], done["accepted_calls"])
        assert again.verify(Response()) == 1.0


async def test_replies_are_remembered_within_bounds(serve: Serve) -> None:
    """A long episode does not keep every output for ever."""
    async with serve(Counter) as world:
        await world.post("/seed_session", ROW)
        for number in range(300):
            await world.post("/increment_counter", {"count": 1}, Call_Id=f"{number}.0")
        assert await count(world) == 300
        await world.post("/increment_counter", {"count": 1}, Call_Id="299.0")
        assert await count(world) == 300


def test_the_newest_replies_are_kept_whatever_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number and beyond a number of bytes the oldest are forgotten, and what is held is counted right."""
    monkeypatch.setattr("resources_server.sessions.MAX_REPLY_BYTES", 1000)
    session = Session("s", b"", b"", Counter.of_row(ROW), frozenset(), (b"", b""))
    for number in range(MAX_REPLIES + 50):
        session.record(Ran("get_counter_value", b"{}", "ok"), str(number), Reply(b"x" * 100))
    assert list(session.replies) == [str(number) for number in range(MAX_REPLIES + 18, MAX_REPLIES + 50)]
    assert session.reply_bytes == 3200 and session.held == 3200 + 2 * (MAX_REPLIES + 50)


async def test_tombstones_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are forgotten first."""
    monkeypatch.setattr("resources_server.memory_sessions.MAX_TOMBSTONES", 3)
    store = MemorySessions()
    for number in range(10):
        await store.close(f"s{number}")
    assert len(store._ended) == 3
