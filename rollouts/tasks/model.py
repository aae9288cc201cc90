"""The stack's model, asked for texts; and its agent, set to solve a task."""

from collections.abc import Mapping
from typing import Any

from rollouts.stack import AGENT, MODEL
from wire import strict_json
from wire.client import Client
from wire.deadline import Deadline
from wire.errors import TriviumError
from wire.responses import Response
from wire.session import new_session_id

ASK_S, SOLVE_S = 120.0, 600.0


class Model:
    """Whoever answers behind the model interface.

    Args:
        client: Knows the stack's servers.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def text(self, instruction: str, prompt: str) -> str:
        """Its answer.

        Raises:
            TriviumError: there was none.
        """
        messages = [{"role": "system", "content": instruction}, {"role": "user", "content": prompt}]
        body = strict_json.dumps({"input": messages})
        reply = await self._client.post(MODEL, "/v1/responses", body, deadline=Deadline(ASK_S))
        if not reply.ok:
            raise TriviumError(reply.quote())
        return Response.model_validate(strict_json.loads(reply.body)).text.strip()

    async def solve(self, row: Mapping[str, Any]) -> float | None:
        """The reward of one rollout of the task; None where it has none."""
        headers = {"X-Session-Id": new_session_id()}
        reply = await self._client.post(
            AGENT, "/run", strict_json.dumps(dict(row)), headers, deadline=Deadline(SOLVE_S)
        )
        line = strict_json.loads(reply.body) if reply.ok else {}
        reward = line.get("reward")
        return None if reward is None else float(reward)
