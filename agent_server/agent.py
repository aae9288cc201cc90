"""The contract of an agent: it gets a request and a session, and plays one episode. It knows no HTTP."""

from abc import ABC, abstractmethod
from typing import Any

from agent_server.episode import Episode
from agent_server.session import Session
from agent_server.settings import AgentServerSettings

__all__ = ["Agent", "Episode", "Request", "Session"]

Request = dict[str, Any]
"""A Responses create request: `input` (text or items), `tools` as the model is to see them, instructions, sampling."""


class Agent(ABC):
    """Plays episodes; one instance serves all rollouts of a process, so it keeps nothing of a rollout in itself.

    Args:
        settings: The server's section of the config; `settings.options` are this agent's own.

    Raises:
        UsageError: from the constructor, where the options are wrong.
    """

    def __init__(self, settings: AgentServerSettings) -> None:
        self.settings = settings

    @abstractmethod
    async def run(self, request: Request, session: Session) -> Episode:
        """One episode, from the request to an outcome.

        What the session was asked is recorded in `session.transcript` as it happens, so that an episode that fails half-way keeps
        its beginning; `session.transcript.episode(outcome)` is the usual return value.

        Raises:
            Failed: the episode ends without an outcome; the rollout has no verdict.
        """
