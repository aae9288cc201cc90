"""One call of the model, from a Responses request to its answer: the conversation found, the backend asked, the reply written.

The paths of a step run through here: what was checked or converted once is never looked at again, and the reply is put together from the
JSON of its parts.
"""

import time
from dataclasses import dataclass
from typing import Any

from model_interface.backend import Backend, Request, Response
from model_interface.conversations import Conversation, Conversations, new_id
from model_interface.faults import ContextOverflow
from model_interface.settings import ModelInterfaceSettings
from model_interface.tokens import read_steps
from model_interface.translate import check_items, check_request
from wire import strict_json
from wire.deadline import Deadline
from wire.errors import UsageError
from wire.metrics import Metrics
from wire.responses import Item, user_items

NOT_PARAMETERS = ("input", "previous_response_id", "stream", "stream_options", "trivium", "store", "background")
ECHOED = ("instructions", "metadata", "temperature", "top_p", "max_output_tokens", "text", "reasoning", "truncation")
MADE_BY_MODEL = ("function_call", "reasoning")


@dataclass(slots=True)
class Call:
    """A request that has been read."""

    request: Request
    previous_id: str | None
    inherits: bool
    size: int  # bytes of its JSON text
    stream: bool


class Calls:
    """Answers Responses requests with one backend.

    Args:
        backend: What reaches the model; started by the caller.
        settings: Bounds and time-outs.
        metrics: Counts calls, tokens and failures.
    """

    def __init__(self, backend: Backend, settings: ModelInterfaceSettings, metrics: Metrics) -> None:
        self.backend = backend
        self.conversations = Conversations(settings.conversations)
        self._settings = settings
        self._metrics = metrics
        self._default_budget_s = settings.timeout_s * settings.attempts
        metrics.gauge("conversations", lambda: len(self.conversations))
        metrics.gauge("conversation_bytes", lambda: self.conversations.bytes)
        metrics.gauge("conversations_forgotten", lambda: self.conversations.forgotten)

    def read(
        self,
        body: Any,
        size: int,
        *,
        inherits: bool = False,
        session_id: str | None = None,
        budget_s: str | None = None,
    ) -> Call:
        """Check a Responses request and find its conversation, which is held until `answer` or `abandon`.

        Args:
            body: The request's JSON value.
            size: Bytes of its text.
            inherits: `X-Inherit-Params`: all other parameters are those of the previous call.
            session_id: `X-Session-Id`.
            budget_s: `X-Budget-S`.

        Raises:
            UsageError: an unknown field, role, item or parameter, named by its path.
            PreviousResponseNotFound: the conversation is gone; send all of it.
        """
        check_request(body)
        if body.get("input") is None:
            raise UsageError("input is missing (a string or a list of items)", param="input")
        items = user_items(body["input"])
        check_items(items)
        previous_id = body.get("previous_response_id")
        conversation = self.conversations.begin(previous_id)
        params = {name: value for name, value in body.items() if name not in NOT_PARAMETERS and value is not None}
        if inherits and previous_id is not None:
            params = {**conversation.params, **params} if params else conversation.params
        if previous_id is None and isinstance(body.get("trivium"), dict):
            items = _resume(conversation, items, body["trivium"])
        deadline = Deadline.from_header(budget_s, self._default_budget_s)
        request = Request(items, params, conversation, deadline, session_id)
        return Call(request, previous_id, inherits, size, bool(body.get("stream")))

    async def answer(self, call: Call) -> tuple[str, Response]:
        """The response's id and what the model made of the call; the conversation remembers both.

        Raises:
            Failed: no answer could be had.
            UsageError: the backend cannot do what is asked.
        """
        request = call.request
        try:
            response = await self.backend.respond(request)
        except ContextOverflow as overflow:
            response = too_long(overflow)
        except BaseException:
            self.conversations.abandon(request.conversation)
            raise
        return self.commit(call, response), response

    def commit(self, call: Call, response: Response) -> str:
        """Remember an answered call; the id of its response."""
        request = call.request
        conversation = request.conversation
        response_id = new_id("resp_")
        conversation.params = request.params
        self.conversations.commit(
            conversation, response_id, request.items, response.output, call.size + 64 * len(response.output)
        )
        self._count(response)
        return response_id

    def _count(self, response: Response) -> None:
        self._metrics.count("model_calls", status=response.reason or response.status)
        usage = response.usage or {}
        self._metrics.count("input_tokens", usage.get("input_tokens") or 0)
        self._metrics.count("output_tokens", usage.get("output_tokens") or 0)


def too_long(overflow: ContextOverflow) -> Response:
    """The answer to a prompt that does not fit the model: the episode's end, with nothing said."""
    return Response([], "incomplete", "context_window", extra={"trivium_message": str(overflow)})


def write(call: Call, response_id: str, response: Response) -> bytes:
    """The Responses object as JSON text."""
    params = call.request.params
    parts = [
        b'{"id":"',
        response_id.encode(),
        b'","object":"response","created_at":',
        str(int(time.time())).encode(),
        b',"status":"',
        response.status.encode(),
        b'","error":null,"incomplete_details":',
        strict_json.dumps({"reason": response.reason}) if response.reason else b"null",
        b',"model":',
        strict_json.dumps(response.model or params.get("model") or "unknown"),
        b',"output":',
        strict_json.dumps(response.output),
        b',"usage":',
        strict_json.dumps(response.usage) if response.usage else b"null",
        b',"previous_response_id":',
        strict_json.dumps(call.previous_id),
        b"," if call.inherits else b"," + _echo(params) + b",",
        b'"trivium":',
        strict_json.dumps(_own(response)),
        b"}",
    ]
    return b"".join(parts)


def response_object(call: Call, response_id: str, response: Response) -> dict[str, Any]:
    """The Responses object as a JSON value, for the other dialects."""
    value = strict_json.loads(write(call, response_id, response))
    assert isinstance(value, dict)
    return value


def _echo(params: dict[str, Any]) -> bytes:
    """The parameters that OpenAI's own answer repeats, and that its clients' types demand; not on the paths of a step."""
    echoed = {name: params[name] for name in ECHOED if name in params}
    echoed["parallel_tool_calls"] = params.get("parallel_tool_calls", True)
    echoed["tool_choice"] = params.get("tool_choice", "auto")
    echoed["tools"] = params.get("tools", [])
    return strict_json.dumps(echoed)[1:-1]


def _own(response: Response) -> dict[str, Any]:
    """What a Responses object has no place for."""
    own: dict[str, Any] = {
        "tokens": response.tokens.json() if response.tokens is not None else None,
        "model_s": round(response.model_s, 6),
        "attempts": response.attempts,
        "model": response.model,
    }
    if response.endpoint is not None:
        own["endpoint"] = response.endpoint
    if response.policy_version is not None:
        own["policy_version"] = response.policy_version
    if response.extra:
        own |= response.extra
    return own


def _resume(conversation: Conversation, items: list[Item], own: dict[str, Any]) -> list[Item]:
    """Take up a conversation that was forgotten: what came before is put back with its ids; the items that are new remain."""
    known = _end_of_history(items)
    thread = read_steps(own.get("steps"))
    if not known or thread is None:
        return items
    conversation.items = items[:known]
    conversation.thread = thread
    return items[known:]


def _end_of_history(items: list[Item]) -> int:
    """How many items there are up to and including the last one that a model made."""
    for index in range(len(items) - 1, -1, -1):
        if items[index].get("type") in MADE_BY_MODEL or items[index].get("role") == "assistant":
            return index + 1
    return 0
