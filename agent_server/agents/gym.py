"""Play a reset/step world: show the model what it sees, send what it does, until the world says that it is over.

The world is spoken to by `POST /reset` and `POST /step {"action": …}`, both answered with `{observation, reward, terminated, truncated,
info}`. Rewards are the world's to keep: the verdict is `/verify`'s, as everywhere.
"""

import time
from typing import Any, Literal

from pydantic import BaseModel

from agent_server import failures, options
from agent_server.agent import Agent, Episode, Request
from agent_server.conversation import Conversation
from agent_server.session import Session, text_of
from agent_server.settings import AgentServerSettings
from agent_server.toolbox import BadCall, Toolbox, told
from agent_server.turns import STALLED_TURNS, cut_off, is_answer
from wire import strict_json
from wire.client import Reply
from wire.errors import Failed
from wire.responses import Item, function_calls, last_text

ACT = "act"
DESCRIPTION = "Make your next move in the world and see what comes of it."
TEXT_ACTION = {"type": "string", "description": "The move, in the form that the world asks for."}


class GymOptions(BaseModel, extra="forbid"):
    """How the model acts."""

    action: Literal["text", "tool"] = "text"
    """`text`: the whole answer of a turn is the action. `tool`: the model calls `act(action)`."""
    action_schema: dict[str, Any] = TEXT_ACTION
    """JSON schema of an action; where it is not a string, an answer in text is read as JSON."""

    @property
    def tool(self) -> dict[str, Any]:
        """`act` as the model is shown it."""
        parameters = {
            "type": "object",
            "properties": {"action": self.action_schema},
            "required": ["action"],
            "additionalProperties": False,
        }
        return {"type": "function", "name": ACT, "description": DESCRIPTION, "parameters": parameters}


class Gym(Agent):
    """The agent for reset/step worlds."""

    def __init__(self, settings: AgentServerSettings) -> None:
        super().__init__(settings)
        self.options = options.read(GymOptions, settings.options, "gym")

    async def run(self, request: Request, session: Session) -> Episode:
        """One game: `completed` when the world says that it is over, whatever was scored."""
        transcript = session.transcript
        play = _Play(session, self.options)
        if self.options.action == "tool":
            request = {**request, "tools": [self.options.tool]}
        first = session.observation if session.observation is not None else await play.reset()
        if first:
            transcript.items.append(_seen(first))
        conversation, stalled = Conversation(session, request), 0
        for _ in range(self.settings.max_steps):
            made = await conversation.ask()
            outcome = cut_off(transcript.last)
            if outcome is not None:
                return transcript.episode(outcome)
            calls = function_calls(made) if self.options.action == "tool" else []
            if not calls and not is_answer(made):
                stalled += 1
                if stalled == STALLED_TURNS:
                    return transcript.episode("stalled")
                continue
            stalled = 0
            if not calls and self.options.action == "tool":
                return transcript.episode("completed")  # an answer in text where moves are calls: the model has stopped
            await (play.by_calls(calls) if calls else play.by_text(last_text(made)))
            if play.over:
                return transcript.episode("completed")
        return transcript.episode("max_steps")


class _Play:
    """One world in play."""

    def __init__(self, session: Session, options: GymOptions) -> None:
        self.over = False
        self._session = session
        self._tools = Toolbox([options.tool], None)
        self._as_json = options.action_schema.get("type") != "string"

    async def reset(self) -> str:
        """The first observation, from worlds that do not give it when they are seeded."""
        return self._read(await self._session.post("/reset", b"{}", call_id="reset"))

    async def by_text(self, action: str) -> None:
        """Act; what is seen next is recorded, unless the game is over."""
        try:
            value = strict_json.loads(action) if self._as_json else action
        except strict_json.JSONError as error:
            self._session.transcript.add_call("step", 0.0, "invalid_arguments")
            seen = told(f"the action is not valid JSON: {error}")
        else:
            seen, status = await self._step(value, 0)
            if status == "ok" and self.over:
                return
        self._session.transcript.items.append(_seen(seen))

    async def by_calls(self, calls: list[Item]) -> None:
        """Act once per call, in order; calls after the end are told so."""
        for index, call in enumerate(calls):
            output = await self._by_call(call, index)
            call_id = call.get("call_id") or call.get("id")
            item = {"type": "function_call_output", "call_id": call_id, "output": output}
            self._session.transcript.items.append(item)

    async def _by_call(self, call: Item, index: int) -> str:
        try:
            arguments = strict_json.loads(self._tools.check(call.get("name"), call.get("arguments")))
            if "action" not in arguments:
                raise BadCall("invalid_arguments", f"the argument 'action' of {ACT} is missing")
        except BadCall as bad:
            self._session.transcript.add_call(call.get("name"), 0.0, bad.status)
            return told(str(bad))
        if self.over:
            self._session.transcript.add_call(call.get("name"), 0.0, "tool_error")
            return told("the game is over")
        return (await self._step(arguments["action"], index))[0]

    async def _step(self, action: Any, index: int) -> tuple[str, str]:
        """What is seen after an action, and what became of the call."""
        transcript, began = self._session.transcript, time.perf_counter()
        record = transcript.add_call("step", 0.0, "cut_off")
        try:
            body = strict_json.dumps({"action": action})
            reply = await self._session.post("/step", body, call_id=f"{len(transcript.steps) - 1}.{index}")
            seen = self._read(reply)
        except Failed as error:
            record["status"] = error.kind
            raise
        finally:
            record["s"] = time.perf_counter() - began
            transcript.steps[-1]["tool_s"] += record["s"]
        record["status"] = "ok" if reply.ok else "tool_error"
        return seen, record["status"]

    def _read(self, reply: Reply) -> str:
        """The observation in an answer; a refusal of the action is told like one.

        Raises:
            Failed: the world has failed.
        """
        failed = failures.tool_answer(reply) if reply.status >= 300 else None
        if failed is not None:
            raise failed
        if not reply.ok:
            return text_of(reply.body)
        try:
            seen = strict_json.loads(reply.body)
        except strict_json.JSONError as error:
            raise Failed("environment_error", f"{reply.path} was answered with no JSON: {error}") from error
        if not isinstance(seen, dict) or "observation" not in seen:
            raise Failed("environment_error", f"{reply.path} was answered without an observation")
        self.over = seen.get("terminated") is True or seen.get("truncated") is True
        observation = seen["observation"]
        return observation if isinstance(observation, str) else strict_json.dumps(observation).decode()


def _seen(observation: str) -> Item:
    return {"type": "message", "role": "user", "content": observation}
