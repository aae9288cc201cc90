"""What every backend behind Chat Completions shares: the conversation as messages that are serialised once, asking, reading, streaming."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from model_interface import faults
from model_interface.backend import Backend, Request, Response, read_options
from model_interface.constrained import PlainHistory, answer_schema, offered, read_answer
from model_interface.settings import ModelInterfaceSettings
from model_interface.streaming import ChatStreamAssembler, SSEParser, without_preface
from model_interface.tokens import put
from model_interface.translate import (
    MessageBuilder,
    UpstreamError,
    new_id,
    raise_if_error,
    request_to_chat,
    wants_scores,
)
from model_interface.upstream import Answer, Upstream
from wire import strict_json
from wire.deadline import Deadline
from wire.metrics import Metrics
from wire.responses import Item

MODELS_S = 10.0  # for GET /v1/models
STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
JSON = dict[str, Any]


class ChatOptions(BaseModel):
    """`model_interface.options` of a backend behind Chat Completions."""

    model_config = ConfigDict(extra="forbid")

    thoughts_as: Literal["reasoning_content", "reasoning", "tags", "drop"] = "reasoning_content"
    """Where earlier thoughts ride on their assistant message."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """How this server calls the limit of generated tokens."""


@dataclass(slots=True, eq=False)
class ChatMemory:
    """The messages of a conversation as they go to the server."""

    instructions: str | None
    tools: Any
    builder: MessageBuilder | PlainHistory
    sent: int = 0
    """Messages that are in `text`."""
    text: list[bytes] = field(default_factory=list)
    """The messages so far as JSON, in pieces that each end in a comma; what is in them never changes."""
    params: JSON | None = None
    """The parameters that `tail` was made of."""
    tail: bytes = b""
    """Everything of a body that follows the messages."""

    def add(self, items: list[Item]) -> None:
        """Add items, and make their messages part of the text."""
        self.builder.append(items)
        messages = self.builder.take()
        if len(messages) > self.sent:
            put(strict_json.dumps(messages[self.sent :], trusted=True)[1:-1] + b",", self.text)
            self.sent = len(messages)


class ChatBackend(Backend):
    """A model behind Chat Completions."""

    def __init__(
        self, settings: ModelInterfaceSettings, urls: dict[str, str], token: str | None, metrics: Metrics
    ) -> None:
        super().__init__(settings, urls, token, metrics)
        self.options = read_options(ChatOptions, settings)
        self.constrained = settings.tool_calls == "constrained"
        self.upstream = Upstream(settings, metrics)

    async def start(self) -> None:
        """Open the connection pool."""
        await self.upstream.start()

    async def stop(self) -> None:
        """Close it."""
        await self.upstream.stop()

    async def respond(self, request: Request) -> Response:
        """One chat completion. Raises as the contract says."""
        memory = self.remember(request)
        params, taken = request.params, memory.builder.call_ids

        def make(value: Any) -> tuple[Response, JSON]:
            return self.read(value, params, taken), value

        answer = await self.upstream.ask(
            "/chat/completions",
            self.body(memory, params),
            deadline=request.deadline,
            pin=request.session_id,
            make=make,
        )
        response, value = answer.value
        self.finish(request, memory, response, value)
        return _answered(response, answer)

    async def stream(self, request: Request) -> AsyncIterator[JSON | Response]:
        """One chat completion as it comes; its events, then the response. Raises as the contract says."""
        if self.constrained and offered(request.params):  # nothing can be told before the JSON is whole
            yield await self.respond(request)
            return
        memory = self.remember(request)
        body = b"".join(self.body(memory, request.params))[:-1] + b"," + strict_json.dumps(STREAMED)[1:]
        assembler = ChatStreamAssembler(
            request.params,
            reasoning=self.settings.reasoning,
            taken=memory.builder.call_ids,
            response_id=request.response_id,
        )
        whole: Any = None
        try:
            async with self.upstream.stream(
                "/chat/completions", body, deadline=request.deadline, pin=request.session_id
            ) as chunks:
                async for event in _assembled(assembler, chunks):
                    if isinstance(event, Whole):
                        whole = event.value
                    else:
                        yield event
        except UpstreamError as error:
            if faults.overflow_within(error):
                raise faults.ContextOverflow(str(error)) from error
            raise
        if whole is None:
            whole, response = assembler.completion(), _response(assembler.response)
        else:  # a server that does not stream answered all at once
            response = self.read(whole, request.params, memory.builder.call_ids)
        self.finish(request, memory, response, whole)
        yield response

    def remember(self, request: Request) -> ChatMemory:
        """The conversation's messages with what this request adds."""
        conversation, params = request.conversation, request.params
        memory: ChatMemory | None = conversation.memory
        if memory is None or memory.params is not params:
            tools = offered(params) if self.constrained else None
            instructions = params.get("instructions")
            if memory is None or memory.instructions != instructions or memory.tools != tools:
                memory = ChatMemory(instructions, tools, self._builder(instructions, tools))
                if conversation.items:
                    memory.builder.append(conversation.items)
                conversation.memory = memory
        memory.add(request.items)
        return memory

    def _builder(self, instructions: str | None, tools: Any) -> MessageBuilder | PlainHistory:
        if self.constrained:
            return PlainHistory(instructions, tools)
        return MessageBuilder(instructions, thoughts_as=self.options.thoughts_as)

    def body(self, memory: ChatMemory, params: JSON) -> list[bytes]:
        """The request's JSON text in pieces: the messages, and the rest, made once for parameters that are inherited."""
        if memory.params is not params:
            memory.tail = strict_json.dumps(self.parameters(params))[1:]
            memory.params = params
        *pieces, last = memory.text or [b","]
        closing = b"]," if len(memory.tail) > 1 else b"]"
        return [b'{"messages":[', *pieces, last[:-1] + closing + memory.tail]

    def parameters(self, params: JSON) -> JSON:
        """The chat parameters of a request, those of the config among them."""
        asked = {**params, "tools": [], "tool_choice": None, "text": None} if self.constrained else params
        body = request_to_chat(asked, max_tokens_field=self.options.max_tokens_field)
        schema = answer_schema(params) if self.constrained else None
        if schema is not None:
            form = {"name": "answer", "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if self.settings.model:
            body["model"] = self.settings.model
        return body | self.settings.extra_body

    def read(self, value: Any, params: JSON, taken: set[str]) -> Response:
        """A chat completion as the answer.

        Raises:
            Failed: it is none.
        """
        asked = params if wants_scores(params) else {}  # nothing else of them is read here
        response = Response.of_completion(value, asked, reasoning=self.settings.reasoning, taken=taken)
        text = value["choices"][0]["message"].get("content")
        if self.constrained and isinstance(text, str):
            made = read_answer(text, params, call_id=new_id("call"), reason=response.reason, log_probs=[])
            response.output = [item for item in response.output if item["type"] == "reasoning"] + made
        return response

    def finish(self, request: Request, memory: ChatMemory, response: Response, value: JSON) -> None:
        """Remember the answer as its server gave it; subclasses take its tokens."""
        memory.builder.append_answer(value["choices"][0]["message"], response.output)
        self.take_tokens(request, response, value)

    def take_tokens(self, request: Request, response: Response, value: JSON) -> None:
        """This one has none."""
        if self.settings.token_ids == "required":
            self.without_tokens("this backend asks for none (use backend: vllm)")

    async def models(self) -> list[str]:
        """What the server lists, or the configured name."""
        if self.settings.model:
            return [self.settings.model]
        answer = await self.upstream.ask("/models", b"", deadline=Deadline(MODELS_S), method="GET")
        listed = answer.value.get("data") if isinstance(answer.value, dict) else None
        return [each["id"] for each in listed or [] if isinstance(each, dict) and isinstance(each.get("id"), str)]


@dataclass(slots=True)
class Whole:
    """An answer that came all at once where a stream was asked for."""

    value: Any


async def _assembled(assembler: ChatStreamAssembler, chunks: AsyncIterator[bytes]) -> AsyncIterator[JSON | Whole]:
    """The Responses events of a chat stream; or the whole answer, where the server sent no stream."""
    parser, done, raw = SSEParser(), False, b""
    async for chunk in chunks:
        if not assembler.begun and not done and len(raw) < 2**20:
            raw += chunk
        for event in parser.feed(chunk):
            done = done or event.done
            for each in [] if event.done else assembler.feed(event.json()):
                yield each
    if not assembler.begun and (value := _json(raw)) is not None:
        raise_if_error(value)
        yield Whole(value)
        return
    for event in parser.close():
        done = done or event.done
        for each in [] if event.done else assembler.feed(event.json()):
            yield each
    for each in assembler.finish(done=done):
        yield each


def _json(raw: bytes) -> Any:
    text = without_preface(raw)
    if not text.startswith((b"{", b"[")):
        return None
    try:
        return strict_json.loads(text)
    except strict_json.JSONError:
        return None


def _response(made: JSON) -> Response:
    details = made.get("incomplete_details")
    reason = details["reason"] if details else None
    return Response(made["output"], made["status"], reason, made["usage"], model=made.get("model") or None)


def _answered(response: Response, answer: Answer) -> Response:
    response.attempts, response.model_s, response.endpoint = answer.attempts, answer.model_s, answer.endpoint
    return response
