"""Any server that speaks Chat Completions: vLLM, SGLang, llama.cpp, TGI, LiteLLM, OpenRouter and the like.

A conversation's messages are made and serialised once; a step's request is their bytes joined with what is new.
options: {thoughts_as: reasoning_content|reasoning|tags|drop, max_tokens_field: max_tokens|max_completion_tokens}
"""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from model_interface.backend import Backend, Request, Response, read_options
from model_interface.settings import ModelInterfaceSettings
from model_interface.translate import MessageBuilder, chat_to_response, request_to_chat
from model_interface.upstream import Answer, Upstream
from wire import strict_json
from wire.deadline import Deadline
from wire.metrics import Metrics
from wire.responses import Item

MODELS_S = 10.0  # for GET /v1/models


class ChatOptions(BaseModel):
    """`model_interface.options` of this backend."""

    model_config = ConfigDict(extra="forbid")

    thoughts_as: Literal["reasoning_content", "reasoning", "tags", "drop"] = "reasoning_content"
    """Where earlier thoughts ride on their assistant message."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """How this server calls the limit of generated tokens."""


@dataclass(slots=True)
class ChatMemory:
    """The messages of a conversation as they go to the server."""

    instructions: str | None
    builder: MessageBuilder
    sent: int = 0
    """Messages that are in `text`."""
    text: bytes = b""
    """The messages so far as JSON, without the brackets; what is in it never changes."""
    params: dict[str, Any] | None = None
    """The parameters that `tail` was made of."""
    tail: bytes = b""
    """Everything of a body that follows the messages."""

    def add(self, items: list[Item]) -> None:
        """Add items, and make their messages part of the text."""
        self.builder.append(items)
        messages = self.builder.take()
        if len(messages) > self.sent:
            new = strict_json.dumps(messages[self.sent :])[1:-1]
            self.text = self.text + b"," + new if self.text else new
            self.sent = len(messages)


class Chat(Backend):
    """A model behind Chat Completions."""

    def __init__(
        self, settings: ModelInterfaceSettings, urls: dict[str, str], token: str | None, metrics: Metrics
    ) -> None:
        super().__init__(settings, urls, token, metrics)
        self.options = self.read_own_options()
        self.upstream = Upstream(settings, metrics)

    def read_own_options(self) -> ChatOptions:
        """`settings.options` as this backend knows them."""
        return read_options(ChatOptions, self.settings)

    async def start(self) -> None:
        """Open the connection pool."""
        await self.upstream.start()

    async def stop(self) -> None:
        """Close it."""
        await self.upstream.stop()

    async def respond(self, request: Request) -> Response:
        """One chat completion. Raises as the contract says."""
        memory = self.remember(request)
        body = b'{"messages":[' + memory.text + b"]," + self.tail(memory, request.params)
        taken = memory.builder.call_ids

        def make(value: Any) -> Response:
            return self.read(value, request.params, taken)

        answer = await self.upstream.ask(
            "/chat/completions", body, deadline=request.deadline, pin=request.session_id, make=make
        )
        response: Response = answer.value
        self.finish(request, memory, answer, response)
        return response

    def remember(self, request: Request) -> ChatMemory:
        """The conversation's messages with what this request adds."""
        conversation = request.conversation
        instructions = request.params.get("instructions")
        memory: ChatMemory | None = conversation.memory
        if memory is None or memory.instructions != instructions:
            memory = ChatMemory(instructions, MessageBuilder(instructions, thoughts_as=self.options.thoughts_as))
            if conversation.items:
                memory.add(conversation.items)
            conversation.memory = memory
        memory.add(request.items)
        return memory

    def tail(self, memory: ChatMemory, params: dict[str, Any]) -> bytes:
        """Everything of the body that follows the messages; made once for parameters that are inherited."""
        if memory.params is not params:
            memory.tail = strict_json.dumps(self.parameters(params))[1:]
            memory.params = params
        return memory.tail

    def parameters(self, params: dict[str, Any]) -> dict[str, Any]:
        """The chat parameters of a request, those of the config among them."""
        body = request_to_chat(params, max_tokens_field=self.options.max_tokens_field)
        if self.settings.model:
            body["model"] = self.settings.model
        return body | self.settings.extra_body

    def read(self, value: Any, params: dict[str, Any], taken: set[str]) -> Response:
        """A chat completion as the answer; raises `Failed` for what is none."""
        made = chat_to_response(value, params, reasoning=self.settings.reasoning, taken=taken)
        details = made.get("incomplete_details")
        return Response(
            made["output"],
            made["status"],
            details["reason"] if details else None,
            made["usage"],
            model=made.get("model") or None,
            extra={"message": value["choices"][0]["message"]},
        )

    def finish(self, request: Request, memory: ChatMemory, answer: Answer, response: Response) -> None:
        """Remember the answer as its server gave it."""
        memory.builder.append_answer(response.extra.pop("message"), response.output)
        response.attempts, response.model_s, response.endpoint = answer.attempts, answer.model_s, answer.endpoint
        if self.settings.token_ids == "required":
            self.without_tokens("the chat backend asks for none (use backend: vllm)")

    async def models(self) -> list[str]:
        """What the server lists, or the configured name."""
        if self.settings.model:
            return [self.settings.model]
        answer = await self.upstream.ask("/models", b"", deadline=Deadline(MODELS_S), method="GET")
        listed = answer.value.get("data") if isinstance(answer.value, dict) else None
        return [each["id"] for each in listed or [] if isinstance(each, dict) and isinstance(each.get("id"), str)]
