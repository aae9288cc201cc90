"""What can be done with an environment's sessions: seed, verify, solve, close; `calls` has the tool calls. No HTTP here."""

import asyncio
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

from resources_server import sessions, verdicts
from resources_server.calls import Calls
from resources_server.environment import Call, Environment
from resources_server.game import Game
from resources_server.isolated import Judges
from resources_server.outputs import output
from resources_server.runner import Runner
from resources_server.sessions import Session, SessionStore
from resources_server.settings import ResourcesServerSettings
from resources_server.threads import Threads, TookTooLong
from resources_server.tools import Tool
from resources_server.watch import Watch
from wire import strict_json
from wire.deadline import Deadline
from wire.errors import Conflict, Failed, NotFound, UsageError
from wire.metrics import Metrics
from wire.responses import Response
from wire.rollout import EnvironmentRef

MAX_OFFERS = 1000  # different choices of tools that are kept; rows have a few
CLOSE_TIMEOUT_S = 10.0  # for an author's `close`; the session is gone whatever it does


class Offer(NamedTuple):
    """What sessions with the same tools share."""

    names: frozenset[str]
    reply_tail: bytes  # of the seed reply


class Host:
    """One environment class and the sessions that play in it.

    Args:
        name: The environment's, as rows call it.
        environment: Bound to its options.
        store: Where sessions are kept.
        settings: Time-outs and sizes.
        metrics: Counts calls and sessions.
    """

    def __init__(
        self,
        name: str,
        environment: type[Environment[Any]],
        store: SessionStore,
        settings: ResourcesServerSettings,
        metrics: Metrics,
    ) -> None:
        self.ref = EnvironmentRef(name=name, version=environment.version)
        self.environment = environment
        self.store = store
        self.settings = settings
        self._metrics = metrics
        self._threads = Threads(settings.threads)
        watch = Watch(lambda code: metrics.count("loop_blocked", code=code))
        self._runner = Runner(environment.blocking, self._threads, watch)
        self.step = environment.step_tool if issubclass(environment, Game) else None
        self.calls = Calls(environment, store, settings, self._runner, metrics)
        apart = environment.verify_isolated or settings.verify_in_process
        self._judges = Judges(environment, settings.verify_processes) if apart else None
        self._offers: dict[tuple[str, ...], Offer] = {}
        self._seeding: dict[str, asyncio.Event] = {}
        metrics.gauge("threads_stuck", lambda: self._threads.stuck)
        for gauge, read in store.gauges().items():
            metrics.gauge(gauge, read)

    async def start(self) -> None:
        """Make what sessions share, and open the store."""
        await self._threads.run(lambda: self.environment.shared, float("inf"))
        await self.store.start(self._close_world)

    async def stop(self) -> None:
        """End what is open here."""
        await self.store.stop()
        if self._judges is not None:
            await self._judges.stop()
        self._threads.stop()

    async def seed(self, session_id: str, row: dict[str, Any], body: bytes, deadline: Deadline) -> bytes:
        """Make the session's world, or find it made; the reply's JSON text.

        Args:
            session_id: The caller's.
            row: The data set row.
            body: The row as it was sent, for a store that keeps it.
            deadline: For the whole of it.

        Raises:
            UsageError: The row is not one of this environment.
            Conflict: The session was seeded with another row.
            Gone: The session has ended.
            Overloaded: There is no room for another session.
            Failed: `session_seed_failed`.
        """
        digest = sessions.digest(row)
        if (known := await self._same_seed(session_id, digest)) is not None:
            return known
        if (first := self._seeding.get(session_id)) is not None:  # the same seed, sent twice at once
            await first.wait()
            return await self.seed(session_id, row, body, deadline)
        self._seeding[session_id] = asyncio.Event()
        try:
            return await self._seed(session_id, row, body, digest, deadline)
        finally:
            self._seeding.pop(session_id).set()

    async def verify(
        self, session_id: str | None, row: Mapping[str, Any], response: Response, deadline: Deadline
    ) -> bytes:
        """The members that a verdict adds to the row, as JSON text; the same whenever it is asked.

        Raises:
            Unauthorized, Gone: There is no such session (any more), and the verdict needs one.
            Failed: `verifier_error`, `verifier_timeout`, `invalid_reward`, `unserialisable`, or what the verifier raised itself.
        """
        if session_id is None and self.environment.needs_no_session():
            world = self.environment.of_row(row)
            await self._seed_world(world, deadline)
            return await self._judge(world, response, deadline)
        async with self.store.use(session_id, history=True) as session:
            if session.verdict is None:
                if session.broken is not None:
                    raise Failed("session_lost", session.broken)
                session.world._history = functools.partial(self.calls.accepted, tuple(session.ran))
                try:
                    session.verdict = await self._judge(session.world, response, deadline)
                except Failed as error:
                    raise verdicts.NotJudgedError(error, session.world) from error
            return session.verdict

    async def solution(self, session_id: str | None) -> list[Call] | str:
        """The task's own reference solution.

        Raises:
            NotFound: The environment has none.
        """
        async with self.store.use(session_id, reading=True) as session:
            if type(session.world).solution is Environment.solution:
                raise NotFound(f"environment {self.ref.name!r} has no solution(); the reference backend needs one")
            try:
                found: list[Call] | str = await self._run(
                    "solution", self.settings.seed_timeout_s, session.world.solution
                )
            except Exception as error:
                raise verdicts.raised(error, f"{self.environment.__name__}.solution", "environment_error") from error
            return found

    async def close(self, session_id: str) -> None:
        """End the session; whether it was there makes no difference."""
        await self.store.close(session_id)
        self._metrics.count("sessions_closed")

    async def offered(self, session_id: str) -> frozenset[str]:
        """Names of the tools that the session may call.

        Raises:
            Unauthorized, Gone: There is no such session (any more).
        """
        async with self.store.use(session_id, reading=True) as session:
            return session.offered

    async def fresh(self, session_id: str) -> bytes:
        """The seed reply of a session in which nothing has happened yet.

        Raises:
            Unauthorized, Gone: There is no such session (any more).
            Conflict: Something has.
        """
        async with self.store.use(session_id, reading=True, history=True) as session:
            if session.ran or session.verdict is not None:
                raise Conflict("the session has been played; close it and seed another")
            return b"".join(session.seed_reply)

    async def _seed(
        self, session_id: str, row: dict[str, Any], body: bytes, digest: bytes, deadline: Deadline
    ) -> bytes:
        self.store.admit(len(body))
        world = self.environment.of_row(row)
        observation = await self._seed_world(world, deadline)
        offer = self._offer_to(world, self._offered(world, row))
        reply = (self._reply_head(session_id, observation), offer.reply_tail)
        session = Session(session_id, digest, body, world, offer.names, reply)
        if await self.store.add(session):
            self._metrics.count("sessions_seeded")
            return b"".join(reply)
        await self._close_world(world)  # another replica was faster: its session counts
        known = await self._same_seed(session_id, digest)
        return b"".join(reply) if known is None else known

    async def _same_seed(self, session_id: str, digest: bytes) -> bytes | None:
        known = await self.store.seeded(session_id)
        if known is None:
            return None
        if known.row_digest != digest:
            raise Conflict("the session was seeded with another row; a session plays one row")
        return known.reply

    async def _seed_world(self, world: Environment[Any], deadline: Deadline) -> Any:
        seconds = deadline.within(self.settings.seed_timeout_s).left()
        name = f"{self.environment.__name__}.seed"
        try:
            return await self._run("seed", seconds, world.seed)
        except TookTooLong:
            raise Failed("session_seed_failed", f"{name} took longer than {seconds:.3g} s") from None
        except UsageError:
            raise
        except Exception as error:
            raise verdicts.raised(error, name, "session_seed_failed") from error

    def _offered(self, world: Environment[Any], row: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of the tools that may be called, in the class's order: what the task offers, narrowed by what the row names."""
        names = set(world.offered()) & self.environment.tools.keys()
        params = row.get("responses_create_params")
        listed = params.get("tools") if isinstance(params, dict) else None
        if isinstance(listed, list):
            names &= {each.get("name") for each in listed if isinstance(each, dict)}
        kits = row.get("toolkits")
        own_say = type(world).offered is not Environment.offered  # then it has read the row's itself
        if isinstance(kits, list) and not own_say:
            names = {name for name in names if name in kits or self.environment.tools[name].path[0] in kits}
        return tuple(name for name in self.environment.tools if name in names)

    def _offer_to(self, world: Environment[Any], names: tuple[str, ...]) -> Offer:
        """What the session is offered; an augmented one may have tools by other names, or tell them otherwise."""
        if (retold := getattr(world, "retold", None)) is None:
            return self._offer(names)
        tools: dict[str, Tool] = retold(names)
        return Offer(frozenset(tools), self._reply_tail(tuple(tools), tools))

    def _offer(self, names: tuple[str, ...]) -> Offer:
        """What is the same for all sessions with these tools, kept so that they share it."""
        if names not in self._offers:
            if len(self._offers) >= MAX_OFFERS:
                self._offers.clear()
            self._offers[names] = Offer(frozenset(names), self._reply_tail(names))
        return self._offers[names]

    def _reply_head(self, session_id: str, observation: Any) -> bytes:
        """The seed reply as far as it is this session's own."""
        head: dict[str, Any] = {"session_id": session_id}
        if observation is not None:
            head["observation"] = output(observation, self.settings.max_output_bytes).body.decode()
        return strict_json.dumps(head)[:-1]

    def _reply_tail(self, offered: tuple[str, ...], tools: Mapping[str, Tool] | None = None) -> bytes:
        tools = self.environment.tools if tools is None else tools
        tail: dict[str, Any] = {
            "tools": [tools[name].definition for name in offered],
            "remembers_calls": True,
            "environment": self.ref.model_dump(),
            "score_on_timeout": self.environment.score_on_timeout,
            "parallel_tools": [name for name in offered if tools[name].read_only],
        }
        if self.step is not None:
            tail["game"] = {"action": self.step.schema["properties"]["action"]}
        return b"," + strict_json.dumps(tail)[1:]

    async def _judge(self, world: Environment[Any], response: Response, deadline: Deadline) -> bytes:
        seconds = deadline.within(self.settings.verify_timeout_s).left()
        name = f"{self.environment.__name__}.verify"
        try:
            if self._judges is None:
                found = await self._run("verify", seconds, world.verify, response)
            else:
                found, world._calls_were_read = await self._judges.verify(world, response, seconds)
        except TookTooLong:
            raise Failed("verifier_timeout", f"{name} took longer than {seconds:.3g} s") from None
        except Exception as error:
            raise verdicts.raised(error, name, "verifier_error") from error
        return verdicts.members(world, found)

    async def _run(self, what: str, timeout_s: float, method: Any, *args: Any) -> Any:
        return await self._runner.run(f"{self.environment.__name__}.{what}", timeout_s, method, *args)

    async def _close_world(self, world: Environment[Any]) -> None:
        if type(world).close is Environment.close:
            return
        try:
            await self._run("close", CLOSE_TIMEOUT_S, world.close)
        except Exception as error:  # noqa: BLE001  nobody waits for it; it is counted
            self._metrics.count("close_failed", error=type(error).__name__)
