"""One call of the model, from a Responses request to its answer: the conversation found, the backend asked, the reply written.

The paths of a step run through here: what was checked or converted once is never looked at again, and the reply is put together from the
JSON of its parts.
"""

import functools
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from model_interface.backend import Backend, Request, Response
from model_interface.conversations import Conversation, Conversations, new_id
from model_interface.faults import ContextOverflow
from model_interface.retry import LONGEST_WAIT_S
from model_interface.settings import ModelInterfaceSettings
from model_interface.streaming import response_events
from model_interface.tokens import read_steps
from model_interface.translate import check_items, check_request
from wire import strict_json
from wire.deadline import Deadline
from wire.errors import UsageError
from wire.metrics import Metrics
from wire.responses import Item, user_items

NOT_PARAMETERS = ("input", "previous_response_id", "stream", "stream_options", "trivium", "store", "background")
ECHOED = ("instructions", "metadata", "temperature", "top_p", "max_output_tokens", "text", "reasoning", "truncation")
ENDS = ("response.completed", "response.incomplete")
Event = dict[str, Any]
MADE_BY_MODEL = ("function_call", "reasoning")


@dataclass(slots=True)
class Call:
    """A request that has been read."""

    request: Request
    previous_id: str | None
    inherits: bool
    size: int  # bytes of its JSON text
    stream: bool
    backend: str  # its name in the config, for the line's provenance


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
        self._input_tokens, self._output_tokens = metrics.counter("input_tokens"), metrics.counter("output_tokens")
        self._default_budget_s = settings.attempts * (settings.timeout_s + LONGEST_WAIT_S)
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
        if inherits and _is_step(body):
            return self._read_step(body, size, session_id, budget_s)
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
            conversation.params = params
        deadline = Deadline.from_header(budget_s, self._default_budget_s)
        request = Request(items, params, conversation, deadline, session_id, new_id("resp_"))
        return Call(request, previous_id, inherits, size, bool(body.get("stream")), self._settings.backend)

    def _read_step(self, body: dict[str, Any], size: int, session_id: str | None, budget_s: str | None) -> Call:
        """A step of our agent: only what is new, everything else as before and checked then."""
        items, previous_id = body["input"], body["previous_response_id"]
        check_items(items)
        conversation = self.conversations.begin(previous_id)
        deadline = Deadline.from_header(budget_s, self._default_budget_s)
        request = Request(items, conversation.params, conversation, deadline, session_id, new_id("resp_"))
        return Call(request, previous_id, True, size, False, self._settings.backend)

    async def answer(self, call: Call) -> Response:
        """What the model made of the call; the conversation remembers it.

        Raises:
            Failed: no answer could be had.
            UsageError: the backend cannot do what is asked.
        """
        try:
            response = await self.backend.respond(call.request)
        except ContextOverflow as overflow:
            response = too_long(overflow)
        except BaseException:
            self.conversations.abandon(call.request.conversation)
            raise
        self._commit(call, response)
        return response

    async def stream(self, call: Call) -> AsyncIterator[Event]:
        """The events of an answer as it comes; its last one carries what `write` would, and by then it is remembered.

        Raises: as `answer`, before the first event or in the middle.
        """
        last: Event | None = None
        answered = begun = False
        try:
            async for event in self._events(call):
                if isinstance(event, Response):
                    answered = True
                    self._commit(call, event)
                    for each in _rest(call, event, last, begun=begun):
                        yield each
                elif event["type"] in ENDS:
                    last = event  # held until it can carry what is known only with the response
                else:
                    begun = True
                    yield event
        finally:
            if not answered:
                self.conversations.abandon(call.request.conversation)

    async def _events(self, call: Call) -> AsyncIterator[Event | Response]:
        try:
            async for event in self.backend.stream(call.request):
                yield event
        except ContextOverflow as overflow:
            yield too_long(overflow)

    def _commit(self, call: Call, response: Response) -> None:
        request = call.request
        conversation = request.conversation
        conversation.params = request.params
        size = call.size + 64 * len(response.output)
        self.conversations.commit(conversation, request.response_id, request.items, response.output, size)
        self._count(response)

    def _count(self, response: Response) -> None:
        self._metrics.count("model_calls", status=response.reason or response.status)
        usage = response.usage or {}
        self._input_tokens.add(usage.get("input_tokens") or 0)
        self._output_tokens.add(usage.get("output_tokens") or 0)


def too_long(overflow: ContextOverflow) -> Response:
    """The answer to a prompt that does not fit the model: the episode's end, with nothing said."""
    return Response([], "incomplete", "context_window", extra={"trivium_message": str(overflow)})


def _rest(call: Call, response: Response, last: Event | None, *, begun: bool) -> list[Event]:
    """The events that are still to come once the response is whole: the last one, or all of them."""
    events = [last] if last is not None else list(response_events(response_object(call, response)))
    tokens = strict_json.loads(response.tokens.text) if response.tokens is not None else None
    own = {"tokens": tokens, **_own(call, response)}
    events[-1]["response"] |= {"trivium": own, "previous_response_id": call.previous_id}
    return events[-1:] if begun else events


def write(call: Call, response: Response) -> bytes:
    """The Responses object as JSON text."""
    params = call.request.params
    known: dict[str, Any] = {
        "id": call.request.response_id,
        "created_at": int(time.time()),
        "status": response.status,
        "model": response.model or params.get("model") or "unknown",
        "output": response.output,
    }
    if response.usage:
        known["usage"] = response.usage
    if call.previous_id is not None:
        known["previous_response_id"] = call.previous_id
    if not call.inherits:
        known |= _echo(params)
    # What is null is written beside it: `dumps` looks twice at a text that holds a null
    start = _beginning(response.reason, usage=bool(response.usage), previous=call.previous_id is not None)
    tokens = response.tokens.text if response.tokens is not None else b"null"
    own = strict_json.dumps(_own(call, response))[1:]
    return b"".join((start, strict_json.dumps(known)[1:-1], b',"trivium":{"tokens":', tokens, b",", own, b"}"))


def _is_step(body: Any) -> bool:
    """Whether a request holds nothing but what is new and the name of what came before."""
    return (
        isinstance(body, dict)
        and len(body) == 2
        and isinstance(body.get("input"), list)
        and isinstance(body.get("previous_response_id"), str)
    )


@functools.lru_cache(64)
def _beginning(reason: str | None, *, usage: bool, previous: bool) -> bytes:
    """The members that are the same for many responses, and those that are null; `,` at the end."""
    members: dict[str, Any] = {"object": "response", "error": None}
    members["incomplete_details"] = {"reason": reason} if reason else None
    members |= ({} if usage else {"usage": None}) | ({} if previous else {"previous_response_id": None})
    return strict_json.dumps(members)[:-1] + b","


def response_object(call: Call, response: Response) -> dict[str, Any]:
    """The Responses object as a JSON value, for the other dialects."""
    value = strict_json.loads(write(call, response))
    assert isinstance(value, dict)
    return value


def _echo(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters that OpenAI's own answer repeats, and that its clients' types demand; not on the paths of a step."""
    echoed = {name: params[name] for name in ECHOED if name in params}
    echoed["parallel_tool_calls"] = params.get("parallel_tool_calls", True)
    echoed["tool_choice"] = params.get("tool_choice", "auto")
    echoed["tools"] = params.get("tools", [])
    return echoed


def _own(call: Call, response: Response) -> dict[str, Any]:
    """What a Responses object has no place for, but for the tokens."""
    own: dict[str, Any] = {
        "model_s": round(response.model_s, 6),
        "attempts": response.attempts,
        "backend": call.backend,
    }
    if response.model is not None:
        own["model"] = response.model
    if response.endpoint is not None:
        own["endpoint"] = response.endpoint
    if response.policy_version is not None:
        own["policy_version"] = response.policy_version
    if response.extra:
        own |= response.extra
    return own


def _resume(conversation: Conversation, items: list[Item], own: dict[str, Any]) -> list[Item]:
    """Take up a conversation that was forgotten: what came before is put back with its ids; the items that are new remain."""
    steps = own.get("steps")
    known = _end_of_history(items)
    if not steps or not known:
        return items
    conversation.resumed = True
    thread = read_steps(steps)
    if thread is None:
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
