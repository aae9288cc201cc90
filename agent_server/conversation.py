"""A conversation with the model in which only what is new is sent, as long as the model interface remembers the rest."""

from typing import Any

from agent_server.session import Session
from wire import strict_json
from wire.errors import PreviousResponseNotFound
from wire.responses import Item, user_items


class Conversation:
    """Asks the model again and again; what was recorded in the transcript since the last reply is what is new.

    Args:
        session: Whose transcript holds the conversation so far.
        request: A Responses create request; its parameters hold for every step.
    """

    def __init__(self, session: Session, request: dict[str, Any]) -> None:
        self._session = session
        self._request = request
        self._previous: str | None = None
        self._sent = 0  # items of the transcript that the model interface has

    async def ask(self) -> list[Item]:
        """The next turn's items. Raises as `Session.ask`."""
        transcript = self._session.transcript
        if self._previous is None:
            made = await self._session.ask(self._everything())
        else:
            made = await self._ask_for_more(self._previous, transcript.items[self._sent :])
        self._sent = len(transcript.items)
        self._previous = transcript.last.get("id")
        return made

    async def _ask_for_more(self, previous: str, new: list[Item]) -> list[Item]:
        body = strict_json.dumps({"previous_response_id": previous, "input": new}, trusted=True)
        try:
            return await self._session.ask(body, inherit=True)
        except PreviousResponseNotFound:
            return await self._session.ask(self._everything())

    def _everything(self) -> bytes:
        """The whole conversation; with the token ids of its steps, so that what the model saw stays exactly that."""
        transcript = self._session.transcript
        if not transcript.items:
            return strict_json.dumps(self._request, trusted=True)
        whole = {**self._request, "input": [*user_items(self._request["input"]), *transcript.items]}
        if transcript.steps:
            whole["trivium"] = {"steps": [step["tokens"] for step in transcript.steps]}
        return strict_json.dumps(whole, trusted=True)
