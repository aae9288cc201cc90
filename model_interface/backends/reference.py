"""Plays each task's own solution, as its environment gives it: for checking environments. Nothing of it ever reaches a model."""

import itertools
from typing import Any

from model_interface.backend import Backend, Request, Response
from model_interface.backends._play import call_item, message_item
from model_interface.settings import ModelInterfaceSettings
from wire import strict_json
from wire.client import CallError, Client, Reply
from wire.errors import Failed, UsageError
from wire.metrics import Metrics

ROOM = "resources_server"
DONE = "done"
ACT = "act"  # a move in a game: a call of this name where the agent offers one, else the text of a turn


class Reference(Backend):
    """The task's own solution, one call a turn but for those that belong together, then its final text."""

    def __init__(
        self, settings: ModelInterfaceSettings, urls: dict[str, str], token: str | None, metrics: Metrics
    ) -> None:
        super().__init__(settings, urls, token, metrics)
        self._worlds = [name for name in urls if name == ROOM or name.startswith(f"{ROOM}.")]
        self._client = Client(urls, token=token)

    async def start(self) -> None:
        """Open the connections."""
        await self._client.__aenter__()

    async def stop(self) -> None:
        """Close them."""
        await self._client.__aexit__(None, None, None)

    async def models(self) -> list[str]:
        """Its own name."""
        return ["reference"]

    async def respond(self, request: Request) -> Response:
        """The next call of the solution, or its end.

        Raises:
            UsageError: the world has no solution, or the call names no session.
            Failed: the resources server cannot be asked.
        """
        self.without_tokens("the reference backend makes none")
        solution = request.conversation.memory
        if solution is None:
            solution = request.conversation.memory = await self._solution(request)
        calls, text = solution
        turn = sum(item.get("type") == "function_call" or item.get("role") == "assistant" for item in request.history)
        if turn >= len(calls):
            return Response([message_item(DONE if text is None else text)], model="reference")
        call = calls[turn]
        if call["name"] == ACT and not _offers(request, ACT):  # a game that is played by text
            return Response([message_item(str(call["arguments"]["action"]))], model="reference")
        rest = itertools.takewhile(lambda each: each.get("together"), calls[turn + 1 :])
        made = [call_item(each["name"], each["arguments"], f"call_{n}") for n, each in enumerate((call, *rest), turn)]
        return Response(made, model="reference")

    async def _solution(self, request: Request) -> tuple[list[dict[str, Any]], str | None]:
        if request.session_id is None:
            raise UsageError("backend `reference` plays a session's own solution: send its id as X-Session-Id")
        if not self._worlds:
            raise UsageError("backend `reference` needs a resources server in the stack")
        refused: Reply | None = None
        for world in self._worlds:
            reply = await self._ask(world, request)
            if reply.ok:
                return _read(reply)
            if refused is None or reply.status not in (401, 404):
                refused = reply
        assert refused is not None
        if refused.status in (400, 404, 501):
            raise UsageError(f"backend `reference` needs a world with a solution(): {refused.quote()}")
        raise Failed("model_error", f"the reference solution cannot be had: {refused.quote()}")

    async def _ask(self, world: str, request: Request) -> Reply:
        headers = {"X-Session-Id": str(request.session_id)}
        try:
            return await self._client.post(world, "/solution", b"{}", headers, deadline=request.deadline)
        except CallError as error:
            raise Failed("model_unreachable", f"the reference solution cannot be had: {error}") from error


def _offers(request: Request, name: str) -> bool:
    return any(tool.get("name") == name for tool in request.params.get("tools") or ())


def _read(reply: Reply) -> tuple[list[dict[str, Any]], str | None]:
    try:
        value = strict_json.loads(reply.body)
    except strict_json.JSONError as error:
        raise Failed("model_invalid_response", f"{reply.server} answered /solution with no JSON: {error}") from error
    if isinstance(value, dict) and isinstance(value.get("calls"), list):
        return value["calls"], value.get("text")
    raise Failed("model_invalid_response", f"{reply.server} answered /solution without calls: {reply.body[:200]!r}")
