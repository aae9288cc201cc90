"""One environment behind its real resources server, spoken to as an agent does: seed, call, verify, close."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from wire import strict_json
from wire.client import CallError, Client, Reply, Retry
from wire.deadline import Deadline
from wire.session import new_session_id

SERVER = "resources_server"
CALL_S = 30.0  # for any one answer; what takes longer holds up every other rollout
ACT = "act"  # a move of a game, as solutions call it
NOT_HERE = (
    "judge_unavailable",
    "sandbox_lost",
    "model_unreachable",
)  # failures of this machine, not of the environment


class NotHereError(Exception):
    """A row cannot be judged on this machine; the message says what is missing."""


@dataclass(frozen=True)
class Move:
    """A tool call, or a game's action under the name `act`."""

    name: str
    arguments: Any = field(default_factory=dict)
    text: bytes | None = None  # the arguments' JSON, where it is not to be the plain one

    @property
    def body(self) -> bytes:
        """The arguments as they are sent."""
        return self.text if self.text is not None else strict_json.dumps(self.arguments)


@dataclass(frozen=True)
class Attempt:
    """What is done in one episode."""

    moves: tuple[Move, ...] = ()
    text: str = "done"  # the last thing said


@dataclass(frozen=True)
class Shown:
    """Something that the model gets to see."""

    where: str  # `the tools`, `the first observation`, `tool reserve`
    text: str
    status: int = 200


@dataclass(frozen=True)
class Played:
    """What came of an episode.

    Attributes:
        reward: None where there is no verdict; `failure` then says why.
        shown: All that the model was shown, in order.
        line: The row with its verdict, as `/verify` answered.
        verdict_again: Whether the verdict, asked for once more, was the same.
    """

    reward: float | None
    failure: str | None
    shown: list[Shown]
    line: dict[str, Any]
    verdict_again: bool = True

    @property
    def outputs(self) -> list[Shown]:
        """Of the calls."""
        return [each for each in self.shown if each.where.startswith("tool ")]


class World:
    """The resources server of one environment.

    Args:
        url: Where it is.
        token: What its control routes ask for.
        environment: The class, in this process: for what needs no server.
        augmented: Its tasks are made harder: a call may have to be made twice.
    """

    def __init__(self, url: str, token: str | None, environment: Any, *, augmented: bool = False) -> None:
        self.environment, self.augmented = environment, augmented
        self._client = Client({SERVER: url}, token=token)
        self._stranger = Client({SERVER: url})

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        await self._stranger.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self._client.__aexit__(None, None, None)
        await self._stranger.__aexit__(None, None, None)

    async def post(self, path: str, body: bytes, session_id: str, *, trusted: bool = True) -> Reply:
        """Send a request of a session; a stranger's carries no token. No answer is an answer, too: status 504."""
        client = self._client if trusted else self._stranger
        headers = {"X-Session-Id": session_id}
        try:
            return await client.post(SERVER, path, body, headers, deadline=Deadline(CALL_S), retry=Retry.CONNECT)
        except CallError as error:
            return Reply(
                SERVER, path, 504, strict_json.dumps({"error": {"message": str(error), "code": error.code}}), {}, {}
            )

    async def open(self, row: Mapping[str, Any]) -> "Session":
        """Seed a session.

        Raises:
            NotHereError: what the row needs is not on this machine.
            ValueError: the row was refused.
        """
        session_id = new_session_id()
        reply = await self.post("/seed_session", strict_json.dumps(dict(row)), session_id)
        if not reply.ok:
            _raise_if_not_here(reply)
            raise ValueError(reply.quote())
        return Session(self, row, session_id, strict_json.loads(reply.body))

    async def play(self, row: Mapping[str, Any], attempt: Attempt, *, twice: bool = False) -> Played:
        """A whole episode; with `twice` the verdict is asked for a second time."""
        session = await self.open(row)
        try:
            for move in attempt.moves:
                await session.call(move)
                if session.over:
                    break
            return await session.verify(attempt.text, twice=twice)
        finally:
            await session.close()


class Session:
    """A seeded world.

    Attributes:
        shown: What the model has been shown so far.
        over: A game's end, or a call that ended the episode.
    """

    def __init__(self, world: World, row: Mapping[str, Any], session_id: str, seeded: dict[str, Any]) -> None:
        self.id, self.seeded, self.over = session_id, seeded, False
        self._world, self._row = world, row
        self._items: list[dict[str, Any]] = []
        self._failure: str | None = None
        self.shown = [Shown("the tools", strict_json.dumps(seeded.get("tools")).decode())]
        if "observation" in seeded:
            self.shown.append(Shown("the first observation", str(seeded["observation"])))

    @property
    def tools(self) -> dict[str, dict[str, Any]]:
        """Name -> JSON schema of the arguments; a game's action among them, as `act`."""
        found = {each["name"]: each["parameters"] for each in self.seeded.get("tools") or ()}
        if game := self.seeded.get("game"):
            found[ACT] = {"type": "object", "properties": {"action": game["action"]}, "required": ["action"]}
        return found

    @property
    def reads(self) -> frozenset[str]:
        """Tools that change nothing."""
        return frozenset(self.seeded.get("parallel_tools") or ())

    async def call(self, move: Move) -> Shown:
        """Make a call; what the model is shown for it."""
        game = move.name == ACT and "game" in self.seeded
        reply = await self._world.post("/step" if game else f"/{move.name}", move.body, self.id)
        if reply.status >= 500:
            _raise_if_not_here(reply)
            self._failure, self.over = f"{reply.code()}: {reply.message()}", True
        text = reply.body.decode("utf-8", "replace")
        if game and reply.ok:
            step = strict_json.loads(reply.body)
            seen = step["observation"]
            text = seen if isinstance(seen, str) else strict_json.dumps(seen).decode()
            self.over = bool(step["terminated"] or step["truncated"])
        shown = Shown(f"tool {move.name}", text, reply.status)
        self.shown.append(shown)
        self._record(move, text)
        return shown

    async def verify(self, text: str, *, twice: bool = False) -> Played:
        """End the episode with these words.

        Raises:
            NotHereError: what the verdict needs is not on this machine.
        """
        if self._failure is not None:
            return Played(None, self._failure, self.shown, {})
        content = [{"type": "output_text", "text": text, "annotations": []}]
        message = {"type": "message", "role": "assistant", "status": "completed", "content": content}
        response = {"id": "resp_check", "object": "response", "status": "completed", "output": [*self._items, message]}
        body = strict_json.dumps({**self._row, "response": response})
        reply = await self._world.post("/verify", body, self.id)
        if not reply.ok:
            _raise_if_not_here(reply)
            return Played(None, f"{reply.code()}: {reply.message()}", self.shown, {})
        again = (await self._world.post("/verify", body, self.id)).body == reply.body if twice else True
        line = strict_json.loads(reply.body)
        return Played(float(line["reward"]), None, self.shown, line, again)

    async def close(self) -> None:
        """Free it."""
        await self._world.post("/close_session", b"{}", self.id)

    def _record(self, move: Move, output: str) -> None:
        call_id = f"call_{len(self._items)}"
        arguments = move.body.decode("utf-8", "replace")
        call = {"type": "function_call", "call_id": call_id, "name": move.name, "arguments": arguments}
        self._items += [call, {"type": "function_call_output", "call_id": call_id, "output": output}]


async def solution(session: Session, world: World) -> Attempt | None:
    """The task's own; None where the environment has none.

    Raises:
        ValueError: it cannot be had.
    """
    reply = await world.post("/solution", b"{}", session.id)
    if reply.status == 404:
        return None
    if not reply.ok:
        _raise_if_not_here(reply)
        raise ValueError(reply.quote())
    found = strict_json.loads(reply.body)
    moves = tuple(Move(each["name"], each["arguments"]) for each in found["calls"])
    return Attempt(moves, "done" if found.get("text") is None else found["text"])


def said(attempt: Attempt) -> bool:
    """Whether the attempt is an answer in text."""
    return not attempt.moves and attempt.text != "done"


def prompt_of(row: Mapping[str, Any]) -> str:
    """All text that the row itself shows the model."""
    params = row.get("responses_create_params") or {}
    return "\n".join(_texts([params.get("instructions"), params.get("input"), params.get("tools")]))


def _texts(value: Any) -> Sequence[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [text for each in value for text in _texts(each)] if isinstance(value, list) else []


def _raise_if_not_here(reply: Reply) -> None:
    if reply.code() in NOT_HERE:
        raise NotHereError(f"{reply.code()}: {reply.message()}")
