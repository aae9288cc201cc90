"""OpenAI's own API, and any server that speaks Responses: the items go through as they are.

The server's own memory is used while it lasts (`previous_response_id`, so that a step's bytes do not grow); when it says that an id is
lost, everything is sent again. `store: false` in `extra_body` makes each call whole.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from model_interface.backend import Backend, Request, Response
from model_interface.faults import ContextOverflow, overflow_within
from model_interface.settings import ModelInterfaceSettings
from model_interface.streaming import ResponsesRelay, SSEParser
from model_interface.translate import InvalidRequest, UpstreamError, count_of, error_sentence, extra_body
from model_interface.translate.answers import argument_text, name_text
from model_interface.translate.content import wire_arguments, wire_name
from model_interface.upstream import Upstream
from wire import strict_json
from wire.deadline import Deadline
from wire.errors import Failed
from wire.metrics import Metrics
from wire.responses import Item

LOST = frozenset({"previous_response_not_found", "response_not_found"})
REASONS = {each: each for each in ("max_output_tokens", "content_filter", "context_window")}
TOTALS = ("input_tokens", "output_tokens", "total_tokens")
MODELS_S = 10.0
JSON = dict[str, Any]


@dataclass(slots=True)
class Memory:
    """What the server remembers of a conversation."""

    response_id: str | None = None


class Responses(Backend):
    """A model behind the Responses API."""

    def __init__(
        self, settings: ModelInterfaceSettings, urls: dict[str, str], token: str | None, metrics: Metrics
    ) -> None:
        if not settings.endpoints:
            settings = settings.model_copy(update={"base_url": "https://api.openai.com/v1"})
        super().__init__(settings, urls, token, metrics)
        self.upstream = Upstream(settings, metrics)
        self._stores = settings.extra_body.get("store") is not False

    async def start(self) -> None:
        """Open the connection pool."""
        await self.upstream.start()

    async def stop(self) -> None:
        """Close it."""
        await self.upstream.stop()

    async def models(self) -> list[str]:
        """What the server lists, or the configured name."""
        if self.settings.model:
            return [self.settings.model]
        answer = await self.upstream.ask("/models", b"", deadline=Deadline(MODELS_S), method="GET")
        return [each["id"] for each in answer.value.get("data") or [] if isinstance(each.get("id"), str)]

    async def respond(self, request: Request) -> Response:
        """One response of the server. Raises as the contract says."""
        self.without_tokens("the Responses API gives no token ids")
        memory = self._memory(request)
        try:
            answer = await self.upstream.ask(
                "/responses",
                self._body(request, memory),
                deadline=request.deadline,
                pin=request.session_id,
                make=_checked,
            )
        except UpstreamError as error:
            if memory.response_id is None or error.upstream_code not in LOST:
                raise
            memory.response_id = None
            return await self.respond(request)
        memory.response_id = answer.value.get("id") if self._stores else None
        response = _read(answer.value)
        response.attempts, response.model_s, response.endpoint = answer.attempts, answer.model_s, answer.endpoint
        return response

    async def stream(self, request: Request) -> AsyncIterator[JSON | Response]:
        """The server's own events under our id, then the response."""
        self.without_tokens("the Responses API gives no token ids")
        memory = self._memory(request)
        relay, parser, upstream_id = ResponsesRelay(request.response_id), SSEParser(), None
        body = self._body(request, memory)[:-1] + b',"stream":true}'
        try:
            async with self.upstream.stream(
                "/responses", body, deadline=request.deadline, pin=request.session_id
            ) as chunks:
                async for chunk in chunks:
                    for event in parser.feed(chunk):
                        if event.done:
                            continue
                        value = event.json()
                        upstream_id = upstream_id or _id_of(value)
                        for each in relay.feed(value):
                            yield each
            relay.finish()
        except UpstreamError as error:
            if overflow_within(error):
                raise ContextOverflow(str(error)) from error
            if relay.begun or memory.response_id is None or error.upstream_code not in LOST:
                raise
            memory.response_id = None
            async for each_again in self.stream(request):
                yield each_again
            return
        memory.response_id = upstream_id if self._stores else None
        yield _read(relay.response)

    def _memory(self, request: Request) -> Memory:
        if request.conversation.memory is None:
            request.conversation.memory = Memory()
        memory: Memory = request.conversation.memory
        return memory

    def _body(self, request: Request, memory: Memory) -> bytes:
        params = {name: value for name, value in request.params.items() if name not in ("extra_body", "trivium")}
        body = {**params, **extra_body(request.params)}
        if isinstance(body.get("metadata"), dict):
            body["metadata"] = {name: value for name, value in body["metadata"].items() if name != "extra_body"}
        if self.settings.model:
            body["model"] = self.settings.model
        if not body.get("model"):
            raise InvalidRequest("the Responses API needs a model: set model_interface.model", param="model")
        if memory.response_id is not None:
            body |= {"previous_response_id": memory.response_id, "input": request.items}
        else:
            body["input"] = [_replayed(item) for item in request.history if not _unplayable(item)]
        return strict_json.dumps({**body, **self.settings.extra_body})


def _replayed(item: Item) -> Item:
    """An item as a server takes it that has never seen it: without ids of its own, and a call with a name and arguments that are valid."""
    sent = {name: value for name, value in item.items() if name not in ("id", "status")}
    if item.get("type") == "function_call":
        sent |= {"name": wire_name(item["name"]), "arguments": wire_arguments(item["arguments"])}
    return sent


def _unplayable(item: Item) -> bool:
    """Whether an item makes sense only to the server that remembers it."""
    return item.get("type") == "reasoning" and not item.get("encrypted_content")


def _checked(value: Any) -> JSON:
    said = error_sentence(value)
    if said is not None:
        raise UpstreamError("model_error", said[0], upstream_code=said[1])
    if not isinstance(value, dict) or not isinstance(value.get("output"), list):
        raise Failed("model_invalid_response", f"the answer is no Responses object: {str(value)[:200]}")
    return value


def _read(value: JSON) -> Response:
    details = value.get("incomplete_details")
    said = details.get("reason") if isinstance(details, dict) else None
    reason = REASONS.get(str(said), "max_output_tokens") if value.get("status") == "incomplete" else None
    output = [_readable(item) for item in value["output"] if isinstance(item, dict)]
    status, model = "incomplete" if reason else "completed", value.get("model")
    usage = _usage(value.get("usage"))
    return Response(output, status, reason, usage, model=model if isinstance(model, str) and model else None)


def _usage(usage: Any) -> JSON | None:
    """As the server gave it, with numbers where the totals are none."""
    if not isinstance(usage, dict):
        return None
    return {**usage, **{name: count_of(usage[name]) for name in TOTALS if name in usage}}


def _readable(item: Item) -> Item:
    """An item of the answer, a call's name and arguments as text whatever the model put there."""
    if item.get("type") != "function_call":
        return item
    return {**item, "name": name_text(item.get("name", "")), "arguments": argument_text(item.get("arguments"))}


def _id_of(event: Any) -> str | None:
    response = event.get("response") if isinstance(event, dict) else None
    found = response.get("id") if isinstance(response, dict) else None
    return found if isinstance(found, str) else None
