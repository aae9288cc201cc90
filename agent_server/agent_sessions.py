"""Agent sessions as NeMo Gym 0.7's environment server opens them: who calls gets tools for one episode, and closes it again.

Opened by `POST /v1/agent_sessions`, named by a cookie in `/v1/responses`, ended by `POST /v1/agent_sessions/close`. Kept in memory,
bounded in number and age.
"""

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wire import strict_json
from wire.errors import Conflict, Overloaded, Unprocessable

ModelT = TypeVar("ModelT", bound=BaseModel)

COOKIE = "trivium_agent_session"
MAX_OPEN = 10_000
OPEN_S = 3600.0  # an episode that nobody closes is forgotten after this
CLOSED_S = 600.0  # a close is remembered, so that a seed that comes late is refused and a repeated close answered alike


class EpisodeId(BaseModel):
    """One attempt of a rollout."""

    model_config = ConfigDict(extra="forbid")

    rollout_id: str = Field(min_length=1)
    attempt: int = Field(0, ge=0)


class ToolAccess(BaseModel):
    """Where tools of this episode are."""

    model_config = ConfigDict(extra="allow")

    kind: Literal["direct_http", "mcp"]
    name: str
    required: bool = True
    base_url: str = ""
    """For `direct_http`: each tool is a POST route below it."""
    cookies: dict[str, str] = {}
    headers: dict[str, str] = {}


class Opening(BaseModel):
    """The body of `POST /v1/agent_sessions`."""

    model_config = ConfigDict(extra="forbid")

    agent_session_id: str = Field(min_length=1)
    episode_id: EpisodeId
    task_id: dict[str, Any]
    tool_accesses: list[ToolAccess] = []
    sandbox_access: dict[str, Any] | None = None


class Closing(BaseModel):
    """The body of `POST /v1/agent_sessions/close`."""

    model_config = ConfigDict(extra="forbid")

    agent_session_id: str
    episode_id: EpisodeId


@dataclass
class AgentSession:
    """One open or closed session."""

    id: str
    episode_id: EpisodeId
    opening: Opening | None
    """None for one that was closed before it was opened."""
    closed: bool = False
    touched_at: float = field(default_factory=time.monotonic)
    cookies: dict[str, str] = field(default_factory=dict)
    """The tools' server's, as last set."""

    @property
    def tools(self) -> ToolAccess | None:
        """Where the tools are posted to; None where the episode has none."""
        accesses = self.opening.tool_accesses if self.opening else []
        return next((each for each in accesses if each.kind == "direct_http"), None)


class AgentSessions:
    """The sessions of one process, oldest first."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, AgentSession] = OrderedDict()

    def __len__(self) -> int:
        return sum(not each.closed for each in self._sessions.values())

    def open(self, body: bytes) -> AgentSession:
        """Open one; the same id with the same body again is the same session.

        Raises:
            Conflict: the id is closed, or was opened with another body.
            Unprocessable: the body is not one.
            Overloaded: too many are open.
        """
        opening = _parse(Opening, body)
        for access in opening.tool_accesses:
            if access.kind == "mcp" and access.required:
                raise Unprocessable(f"tool access {access.name!r}: this agent calls tools over HTTP, not over MCP")
        self._forget_old()
        known = self._sessions.get(opening.agent_session_id)
        if known is not None:
            if known.closed:
                raise Conflict(f"agent session {known.id!r} is closed")
            if known.opening != opening:
                raise Conflict(f"agent session {known.id!r} was opened with another body")
            return known
        if len(self._sessions) >= MAX_OPEN:
            raise Overloaded(f"{MAX_OPEN} agent sessions are held; close some")
        session = AgentSession(opening.agent_session_id, opening.episode_id, opening)
        if session.tools is not None:
            session.cookies = dict(session.tools.cookies)
        self._sessions[session.id] = session
        return session

    def close(self, body: bytes) -> AgentSession:
        """Close one, open or not; once closed, an id is never opened again.

        Raises:
            Conflict: it belongs to another episode.
            Unprocessable: the body is not one.
        """
        closing = _parse(Closing, body)
        self._forget_old()
        session = self._sessions.setdefault(
            closing.agent_session_id, AgentSession(closing.agent_session_id, closing.episode_id, None)
        )
        if session.episode_id != closing.episode_id:
            raise Conflict(f"agent session {session.id!r} belongs to another episode")
        session.closed = True
        session.touched_at = time.monotonic()
        return session

    def get(self, session_id: str) -> AgentSession:
        """An open one.

        Raises:
            Conflict: there is none, or it is closed.
        """
        session = self._sessions.get(session_id)
        if session is None or session.closed:
            raise Conflict(f"agent session {session_id!r} is not open")
        session.touched_at = time.monotonic()
        return session

    def _forget_old(self) -> None:
        now = time.monotonic()
        old = [
            each.id for each in self._sessions.values() if now - each.touched_at > (CLOSED_S if each.closed else OPEN_S)
        ]
        for session_id in old:
            del self._sessions[session_id]


def _parse(model: type[ModelT], body: bytes) -> ModelT:
    try:
        return model.model_validate(strict_json.loads(body))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise Unprocessable(f"field {where!r}: {first['msg']}", param=where) from None
