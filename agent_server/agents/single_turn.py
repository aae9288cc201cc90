"""One question, one turn: what the model answers at once is the episode."""

from agent_server import options
from agent_server.agent import Agent, Episode, Request
from agent_server.calls import run_calls
from agent_server.conversation import Conversation
from agent_server.session import Session
from agent_server.settings import AgentServerSettings
from agent_server.turns import cut_off, is_answer
from wire.responses import function_calls


class SingleTurn(Agent):
    """For worlds whose verdict is on one answer, or on the calls of one turn; it has no options.

    Calls of the turn are run, so that the world has them for its verdict; the model does not see their results (outcome
    `max_steps`). A turn that says nothing is `stalled`.
    """

    def __init__(self, settings: AgentServerSettings) -> None:
        super().__init__(settings)
        options.read(options.NoOptions, settings.options, "single_turn")

    async def run(self, request: Request, session: Session) -> Episode:
        """One model call, and the tools that it asked for."""
        made = await Conversation(session, request).ask()
        transcript = session.transcript
        outcome = cut_off(transcript.last)
        if outcome is not None:
            return transcript.episode(outcome)
        calls = function_calls(made)
        if calls:
            await run_calls(session, calls)
            return transcript.episode("max_steps")
        return transcript.episode("completed" if is_answer(made) else "stalled")
