"""One rollout: seed the world, let the agent act, ask for the verdict, close the world whatever happened."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agent_server import failures, line
from agent_server.agent import Agent, Episode
from agent_server.episode import Transcript
from agent_server.session import Session
from agent_server.tokens import marked_items
from agent_server.toolbox import Toolbox
from agent_server.world import World
from wire import strict_json
from wire.client import CallError, Client, Reply, Retry
from wire.deadline import Deadline
from wire.errors import Failed
from wire.rollout import Seeded

CLOSE_S = 5.0  # for a world to be closed, also when no time is left
WAIT_FOR_CLOSE_S = 0.5  # of it, before the line is given out
NOTHING_TO_CLOSE = frozenset({404, 405, 410, 422})  # gone already, or a stranger's server that knows no such session
VERIFY_SHARE = 0.2  # of the budget, kept for the verdict where a world wants one on time-out
VERIFY_RESERVE_S = 30.0  # the most that is kept
TIME_KINDS = frozenset({"timeout", "model_timeout", "tool_timeout"})
GARBLED_REPLIES = 2  # verdicts that are no object and are asked for again, as lost ones are: they are given from memory
AT_THE_END_S = 0.05  # left of the budget: another server may find a little earlier than we that it is spent

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Player:
    """Who plays, the same for every rollout of a process."""

    agent: Agent
    name: str
    """As the config has it, for the line."""
    client: Client
    """Knows `model_interface` and the resources servers."""
    closer: "Closer"


class _GarbledError(Failed):
    """A verdict that cannot be read."""


class Rollout:
    """One row's way through the three servers.

    Args:
        player: Plays the episode.
        row: The data set row, flat.
        session_id: This rollout's.
        world: The resources server under this rollout's session id.
        deadline: Of the whole rollout, the verdict included.
        token_ids_on_items: Put the three token fields on the items of the line.
    """

    def __init__(
        self,
        player: Player,
        row: dict[str, Any],
        session_id: str,
        world: World,
        deadline: Deadline,
        *,
        token_ids_on_items: bool = False,
    ) -> None:
        self._player = player
        self._row = row
        self._session_id = session_id
        self._world = world
        self._deadline = deadline
        self._token_ids_on_items = token_ids_on_items
        self._transcript: Transcript | None = None
        self._environment: dict[str, Any] | None = None
        self._declares = False
        self._left: dict[str, Any] = {}  # the world as a failed verifier left it, to be judged again later
        self._seconds: dict[str, float] = {}

    async def run(self) -> dict[str, Any]:
        """The rollout line: scored, or with the failure that left it without a verdict."""
        try:
            record = await self._scored()
        except Failed as error:
            record = {**line.failed(self._row, error, self._transcript, self._facts()), **self._left}
        finally:
            await self._player.closer.close(self._world)
        if self._token_ids_on_items and self._transcript is not None and record["response"] is not None:
            record["response"] = {**record["response"], "output": marked_items(self._transcript)}
        return record

    async def play(self) -> dict[str, Any]:
        """The episode's Responses object alone, without a verdict. Raises `Failed` as it comes."""
        try:
            episode = await self._episode(await self._seed())
        finally:
            await self._player.closer.close(self._world)
        if self._token_ids_on_items and self._transcript is not None:
            return {**episode.response, "output": marked_items(self._transcript)}
        return episode.response

    async def _scored(self) -> dict[str, Any]:
        seeded = await self._timed("seed_s", self._seed())
        episode = await self._episode(seeded)
        verified = await self._timed("verify_s", self._verify(episode))
        return line.scored(self._row, verified, episode, self._facts())

    async def _timed(self, name: str, call: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """Await a call, and keep for the line how long that took."""
        began = time.perf_counter()
        try:
            return await call
        finally:
            self._seconds[name] = round(time.perf_counter() - began, 6)

    def _facts(self) -> dict[str, Any]:
        return line.facts(self._row, self._player.name, self._environment, self._transcript, self._seconds)

    async def _seed(self) -> dict[str, Any]:
        body = strict_json.dumps(self._row, trusted=True)
        try:
            reply = await self._world.post("/seed_session", body, self._deadline, retry=Retry.REPLAY)
        except CallError as error:
            raise failures.no_answer("session", error, self._deadline) from error
        if not reply.ok:
            raise failures.seed_answer(reply)
        seeded = _object(reply, "session_seed_failed")
        if seeded.get("session_id") == self._session_id:
            self._world.cookies.clear()  # a server that knows us by the header needs none
        return seeded

    async def _episode(self, seeded: dict[str, Any]) -> Episode:
        params = self._row["responses_create_params"]
        told = _seeded(seeded)
        declared = seeded.get("tools")
        toolbox = Toolbox(declared, params.get("tools"), told.parallel_tools)
        self._declares = declared is not None
        self._environment = told.environment.model_dump() if told.environment else None
        deadline = _to_act(self._deadline) if told.score_on_timeout else self._deadline
        session = Session(
            self._player.client,
            self._session_id,
            deadline,
            toolbox,
            world=self._world,
            remembers_calls=told.remembers_calls,
            observation=told.observation,
        )
        self._transcript = session.transcript
        try:
            return await act(self._player.agent, params, session)
        except Failed as error:
            if told.score_on_timeout and error.kind in TIME_KINDS and deadline.left() < AT_THE_END_S:
                return session.transcript.episode("deadline")
            raise

    async def _verify(self, episode: Episode) -> dict[str, Any]:
        response = episode.response
        if self._declares:  # our own: it knows its tools, and need not read them in every verify
            response = {key: value for key, value in response.items() if key != "tools"}
        body = strict_json.dumps({**self._row, "response": response}, trusted=True)
        for _ in range(GARBLED_REPLIES):
            with contextlib.suppress(_GarbledError):
                return await self._verdict(body)
        return await self._verdict(body)

    async def _verdict(self, body: bytes) -> dict[str, Any]:
        try:
            reply = await self._world.post("/verify", body, self._deadline, retry=Retry.REPLAY)
        except CallError as error:
            raise failures.no_answer("verify", error, self._deadline) from error
        if not reply.ok:
            self._left = failures.left_world(reply)
            raise failures.verify_answer(reply)
        if b"NaN" in reply.body or b"Infinity" in reply.body:  # what Python's own JSON writer lets through
            return _object(reply, "invalid_reward", echoed=body)
        try:
            return _object(reply, "verifier_error", echoed=body)
        except Failed as error:
            raise _GarbledError(error.kind, str(error)) from error


async def act(agent: Agent, params: dict[str, Any], session: Session) -> Episode:
    """Let the agent play within the session's deadline.

    Raises:
        Failed: `timeout` when the time is up, `agent_error` for a fault of the agent's own code, else as the agent says.
    """
    request = {key: value for key, value in params.items() if key not in ("stream", "previous_response_id")}
    if session.toolbox.definitions:
        request["tools"] = session.toolbox.definitions
    try:
        async with asyncio.timeout(session.deadline.left()) as timer:
            return await agent.run(request, session)
    except (Failed, asyncio.CancelledError):
        raise
    except Exception as error:  # an agent is a plug-in: its faults are this rollout's, never the server's
        if timer.expired():
            steps = len(session.transcript.steps)
            raise Failed("timeout", f"the rollout's time was up after {steps} steps") from error
        log.exception("agent %s failed", type(agent).__name__)
        raise Failed("agent_error", f"{type(agent).__name__}: {type(error).__name__}: {error}") from error


class Closer:
    """Frees the worlds of a process's rollouts, also those whose caller has gone or whose time is up."""

    def __init__(self) -> None:
        self._closing: set[asyncio.Task[None]] = set()

    async def close(self, world: World) -> None:
        """Free one world's session. A server that does not answer soon is not waited for, but still asked until `CLOSE_S`."""
        closing = asyncio.ensure_future(_close(world))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.wait([closing], timeout=WAIT_FOR_CLOSE_S)

    async def finish(self) -> None:
        """Wait for what is still being freed."""
        if self._closing:
            await asyncio.wait(self._closing)


async def _close(world: World) -> None:
    try:
        reply = await world.post("/close_session", b"{}", Deadline(CLOSE_S), retry=Retry.REPLAY)
    except CallError as error:
        log.warning("session was not closed: %s", error)
        return
    if not reply.ok and reply.status not in NOTHING_TO_CLOSE:
        log.warning("session was not closed: %s", reply.quote())


def _to_act(whole: Deadline) -> Deadline:
    """The agent's part of the budget in a world that wants a verdict when the time is up."""
    left = whole.left()
    return Deadline(left - min(VERIFY_RESERVE_S, left * VERIFY_SHARE))


def _object(reply: Reply, kind: str, echoed: bytes = b"") -> dict[str, Any]:
    """The object that a server answered with; of what was posted and comes back as it was, nothing is read again."""
    text, posted = reply.body, echoed[:-1]
    if posted and text.startswith(posted + b","):
        text = b"{" + text[len(posted) + 1 :]
    try:
        value = strict_json.loads(text)
    except strict_json.JSONError as error:
        raise Failed(kind, f"{reply.server} answered {reply.path} with no JSON: {error}") from error
    if not isinstance(value, dict):
        raise Failed(kind, f"{reply.server} answered {reply.path} with a {type(value).__name__}, not an object")
    return value


def _seeded(seeded: dict[str, Any]) -> Seeded:
    """The seed reply; servers that are not ours say less, and what they say in other forms is not read."""
    try:
        return Seeded.model_validate({"session_id": "", **seeded})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise Failed("session_seed_failed", f"/seed_session answered with a bad {where}: {first['msg']}") from error
