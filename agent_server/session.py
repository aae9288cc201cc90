"""One rollout's life as its agent sees it: a model to ask and tools to call. Agents know no HTTP; this is where it is.

Everything that is asked is recorded in the transcript at once, so an episode that is cut off keeps its beginning.
"""

import time
from dataclasses import dataclass
from typing import Any

from agent_server import failures
from agent_server.episode import Transcript
from agent_server.toolbox import BadCall, Toolbox, told
from agent_server.world import World
from wire import strict_json
from wire.client import CallError, Client, Reply, Retry
from wire.deadline import Deadline
from wire.errors import Failed, PreviousResponseNotFound
from wire.responses import Item
from wire.session import rollout_key

MODEL = "model_interface"
MAX_TOOL_OUTPUT_BYTES = 4 << 20  # of one call; our own resources server cuts far earlier, a stranger's may not
RECORD_S = 10.0  # for the record to be read, also when the rollout's time is up
CUT = "\n[… the tool's output was cut here: it had {} bytes]"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave: text for the model, and what became of the call."""

    text: str
    status: str
    """`ok`; `tool_error`: the tool refused, the text says why; `invalid_arguments`, `unknown_tool`: never sent."""


class Session:
    """What an agent may do in one rollout.

    Args:
        client: Shared by all rollouts; everything of this one rollout is in the session.
        session_id: Also told to the model interface, for its `reference` backend and for pinning to a replica.
        deadline: No call waits past it.
        toolbox: What may be called.
        world: Where the tools are; None where the rollout has none.
        remembers_calls: The world answers a repeated `X-Call-Id` from memory, so a lost reply may be asked for again.
        observation: The first observation of a reset/step world, where seeding gave one.
    """

    def __init__(
        self,
        client: Client,
        session_id: str,
        deadline: Deadline,
        toolbox: Toolbox,
        *,
        world: World | None = None,
        remembers_calls: bool = False,
        observation: str | None = None,
    ) -> None:
        self.id = session_id
        self.deadline = deadline
        self.toolbox = toolbox
        self.observation = observation
        self.transcript = Transcript()
        self._client = client
        self._world = world
        self._retry = Retry.REPLAY if remembers_calls else Retry.CONNECT
        self._headers = {"X-Session-Id": session_id}
        self._inheriting = {**self._headers, "X-Inherit-Params": "1"}

    async def ask(self, body: bytes, *, inherit: bool = False) -> list[Item]:
        """One model call; the items that the model made are recorded and returned.

        Args:
            body: A Responses create request as JSON text.
            inherit: Every parameter not in the body is as in the call that `previous_response_id` names.

        Raises:
            PreviousResponseNotFound: the model interface does not have that conversation any more; send everything.
            Failed: no answer of use came back.
        """
        started_at, began = time.time(), time.perf_counter()
        headers = self._inheriting if inherit else self._headers
        try:
            reply = await self._client.post(MODEL, "/v1/responses", body, headers, deadline=self.deadline)
        except CallError as error:
            raise failures.no_answer("model", error, self.deadline) from error
        if not reply.ok:
            if reply.status == 404 and reply.code() == PreviousResponseNotFound.code:
                raise PreviousResponseNotFound(reply.message())
            raise failures.model_answer(reply)
        return self.transcript.add_reply(_response(reply), started_at, time.perf_counter() - began)

    async def record(self) -> list[dict[str, Any]]:
        """The model calls that were made under this rollout's own address, by a program that asks for itself; it can make no more.

        Raises:
            Failed: the model interface has no record.
        """
        path, deadline = f"/rollouts/{self.id}", Deadline(RECORD_S)
        try:
            await self._client.post(MODEL, f"{path}/close", b"{}", self._headers, deadline=deadline, retry=Retry.REPLAY)
            reply = await self._client.get(MODEL, path, deadline=deadline, headers=self._headers)
        except CallError as error:
            raise failures.no_answer("model", error, self.deadline) from error
        if reply.status == 404:
            return []  # nothing was asked
        if not reply.ok:
            raise failures.model_answer(reply)
        try:
            record = strict_json.loads(reply.body)
        except strict_json.JSONError as error:
            raise Failed("model_invalid_response", f"{reply.server} answered {path} with no JSON: {error}") from error
        calls = record.get("calls") if isinstance(record, dict) else None
        return [each for each in calls or [] if isinstance(each, dict)]

    @property
    def model_url(self) -> str:
        """Where the model interface is, for a program that asks for itself."""
        return self._client.addresses[MODEL].rstrip("/")

    @property
    def model_key(self) -> str:
        """Opens this rollout's address there, for such a program; never the stack's token."""
        return rollout_key(self._client.token, self.id) if self._client.token else self.id

    @property
    def world_url(self) -> str | None:
        """Where the world is, for a program that calls its tools itself."""
        return self._client.addresses[self._world.server].rstrip("/") if self._world is not None else None

    async def call_tool(self, name: Any, arguments: Any, call_id: str) -> ToolResult:
        """Run one of the model's calls; what it got wrong is a result too, for the model to read.

        Args:
            name: As the model wrote it.
            arguments: The model's own argument text; sent untouched once it is known to be a JSON object.
            call_id: `<step>.<index>`, so that the call can be asked for again without running twice.

        Raises:
            Failed: the tool's side failed; the rollout has no verdict.
        """
        try:
            body = self.toolbox.check(name, arguments)
        except BadCall as bad:
            return ToolResult(told(str(bad)), bad.status)
        reply = await self.post(f"/{name}", body, call_id=call_id)
        if reply.status >= 300:
            failed = failures.tool_answer(reply)
            if failed is not None:
                raise failed
        return ToolResult(text_of(reply.body), "ok" if reply.status < 300 else "tool_error")

    async def post(self, path: str, body: bytes, *, call_id: str | None = None) -> Reply:
        """POST to this rollout's world.

        Raises:
            Failed: no answer came; an HTTP error status is an answer.
        """
        if self._world is None:
            raise Failed("environment_error", f"{path} was called in a rollout that has no resources server")
        retry = self._retry if call_id is not None else Retry.CONNECT
        try:
            return await self._world.post(path, body, self.deadline, call_id=call_id, retry=retry)
        except CallError as error:
            raise failures.no_answer("tool", error, self.deadline) from error


def text_of(body: bytes) -> str:
    """A tool's output as the model will read it: any bytes become text, the unreadable ones marked."""
    if len(body) > MAX_TOOL_OUTPUT_BYTES:
        return body[:MAX_TOOL_OUTPUT_BYTES].decode(errors="ignore") + CUT.format(len(body))
    return body.decode(errors="replace")


def _response(reply: Reply) -> dict[str, Any]:
    try:
        response = strict_json.loads(reply.body)
    except strict_json.JSONError as error:
        raise Failed(
            "model_invalid_response", f"{reply.server} answered {reply.status} with no JSON: {error}"
        ) from error
    output = response.get("output") if isinstance(response, dict) else None
    if not isinstance(output, list) or not all(isinstance(item, dict) for item in output):
        start = reply.body[:200].decode(errors="replace")
        raise Failed("model_invalid_response", f"{reply.server} answered {reply.status} without output items: {start}")
    fault = response.get("error")
    if fault or response.get("status") == "failed":
        message = fault.get("message") if isinstance(fault, dict) else fault
        raise Failed("model_error", f"{reply.server} answered 200 with an error inside: {message}")
    return response  # type: ignore[no-any-return]  # a dict, as checked
