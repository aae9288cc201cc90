"""Play a world whose user says more than one thing: when the model answers, the world is asked what the user says next.

Between two things that the user says, the model calls tools as in `tool_loop`. The world is a reset/step world with tools: what the model
says to the user is a move, `POST /step {"action": text}`, and the observation that comes back is the user's next message. The episode is
over when the world says so.
"""

import time

from agent_server import failures, options
from agent_server.agent import Agent, Episode, Request
from agent_server.calls import run_calls
from agent_server.conversation import Conversation
from agent_server.session import Session, text_of
from agent_server.settings import AgentServerSettings
from agent_server.turns import STALLED_TURNS, cut_off, is_answer
from wire import strict_json
from wire.client import Reply
from wire.errors import Failed
from wire.responses import function_calls, last_text


class Dialogue(Agent):
    """The agent for worlds with tools and a user who speaks again; it has no options."""

    def __init__(self, settings: AgentServerSettings) -> None:
        super().__init__(settings)
        options.read(options.NoOptions, settings.options, "dialogue")

    async def run(self, request: Request, session: Session) -> Episode:
        """One dialogue: `completed` when the user has nothing more to say. `max_steps` bounds all turns together."""
        transcript = session.transcript
        if session.observation:
            transcript.items.append(_user(session.observation))
        conversation, stalled = Conversation(session, request), 0
        for _ in range(self.settings.max_steps):
            made = await conversation.ask()
            outcome = cut_off(transcript.last)
            if outcome is not None:
                return transcript.episode(outcome)
            calls = function_calls(made)
            if not calls and not is_answer(made):
                stalled += 1
                if stalled == STALLED_TURNS:
                    return transcript.episode("stalled")
                continue
            stalled = 0
            if calls:
                await run_calls(session, calls)
                continue
            said = await _next(session, last_text(made))
            if said is None:
                return transcript.episode("completed")
            transcript.items.append(_user(said))
        return transcript.episode("max_steps")


async def _next(session: Session, answer: str) -> str | None:
    """What the user says to an answer; None when the dialogue is over.

    Raises:
        Failed: the world has failed, or is none that speaks.
    """
    transcript, began = session.transcript, time.perf_counter()
    record = transcript.add_call("step", 0.0, "cut_off")
    try:
        body = strict_json.dumps({"action": answer})
        reply = await session.post("/step", body, call_id=f"{len(transcript.steps) - 1}.0")
        said = _read(reply)
    except Failed as error:
        record["status"] = error.kind
        raise
    finally:
        record["s"] = time.perf_counter() - began
        transcript.steps[-1]["tool_s"] += record["s"]
    record["status"] = "ok" if reply.ok else "tool_error"
    return said


def _read(reply: Reply) -> str | None:
    if reply.status in (404, 405):
        raise Failed(
            "environment_error", f"{reply.server} has no /step: the agent `dialogue` is for worlds whose user speaks"
        )
    if reply.status >= 300 and (failed := failures.tool_answer(reply)) is not None:
        raise failed
    if not reply.ok:
        return text_of(reply.body)  # the world did not take the answer, and says why
    try:
        step = strict_json.loads(reply.body)
    except strict_json.JSONError as error:
        raise Failed("environment_error", f"{reply.path} was answered with no JSON: {error}") from error
    if not isinstance(step, dict) or "observation" not in step:
        raise Failed("environment_error", f"{reply.path} was answered without an observation")
    if step.get("terminated") is True or step.get("truncated") is True:
        return None
    seen = step["observation"]
    return seen if isinstance(seen, str) else strict_json.dumps(seen).decode()


def _user(text: str) -> dict[str, str]:
    return {"type": "message", "role": "user", "content": text}
