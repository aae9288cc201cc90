"""Ask the model, run the tools it calls, ask again; stop at an answer without calls, or at a bound."""

from agent_server import options
from agent_server.agent import Agent, Episode, Request
from agent_server.calls import run_calls
from agent_server.conversation import Conversation
from agent_server.session import Session
from agent_server.settings import AgentServerSettings
from agent_server.turns import STALLED_TURNS, cut_off, is_answer
from wire.responses import function_calls


class ToolLoop(Agent):
    """The agent for worlds with tools. It has no options and adds no words of its own to the conversation."""

    def __init__(self, settings: AgentServerSettings) -> None:
        super().__init__(settings)
        options.read(options.NoOptions, settings.options, "tool_loop")

    async def run(self, request: Request, session: Session) -> Episode:
        """One episode; the calls of the last step are still run, so that their effect is there to be judged."""
        transcript, conversation = session.transcript, Conversation(session, request)
        stalled = 0
        for _ in range(self.settings.max_steps):
            made = await conversation.ask()
            outcome = cut_off(transcript.last)
            if outcome is not None:
                return transcript.episode(outcome)
            calls = function_calls(made)
            if calls:
                stalled = 0
                await run_calls(session, calls)
            elif is_answer(made):
                return transcript.episode("completed")
            else:
                stalled += 1
                if stalled == STALLED_TURNS:
                    return transcript.episode("stalled")
        return transcript.episode("max_steps")
