"""The contract between the model interface and what reaches a model.

A backend is a class in `model_interface.backends`, or any `module:Class` that derives from `Backend`. It holds no conversation of its
own: what came before is in the request, and what it wants to keep of it goes into `request.conversation.memory`.
"""

from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from model_interface.conversations import Conversation
from model_interface.settings import ModelInterfaceSettings
from model_interface.tokens import Tokens
from model_interface.translate import Reasoning, answer_items, usage_of
from wire.config import booleans_for_numbers
from wire.deadline import Deadline
from wire.errors import Failed, UsageError
from wire.metrics import Metrics
from wire.responses import Item

OptionsT = TypeVar("OptionsT", bound=BaseModel)


@dataclass(slots=True)
class Request:
    """One call of the model."""

    items: list[Item]
    """What this call adds to the conversation, checked."""
    params: dict[str, Any]
    """Every other parameter of the Responses request, checked; inherited ones are in it."""
    conversation: Conversation
    """What came before; for this call's use alone until it is answered."""
    deadline: Deadline
    session_id: str | None = None
    """The rollout's session in the resources server; also what keeps a rollout at one replica."""
    response_id: str = ""
    """Of the answer to come; a stream tells it before anything else."""

    @property
    def history(self) -> list[Item]:
        """All items, old and new."""
        return [*self.conversation.items, *self.items]


@dataclass(slots=True)
class Response:
    """What the model made of one request."""

    output: list[Item]
    """Items in the order in which the model made them; empty where it did not get to speak."""
    status: str = "completed"
    """`completed` or `incomplete`; what failed is an exception, never a response."""
    reason: str | None = None
    """Of an incomplete one: `max_output_tokens`, `context_window` or `content_filter`."""
    usage: dict[str, Any] | None = None
    """As the Responses API counts: input_tokens, output_tokens, total_tokens and their details."""
    tokens: Tokens | None = None
    """None where the backend has no ids for this call."""
    model: str | None = None
    attempts: int = 1
    model_s: float = 0.0
    endpoint: str | None = None
    policy_version: str | None = None
    """Which weights answered, where the server says so."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Further fields of the Responses object."""

    @classmethod
    def of_completion(
        cls, value: Any, params: dict[str, Any], *, reasoning: Reasoning, taken: Collection[str]
    ) -> "Response":
        """A chat completion as the answer. Arguments as `chat_to_response`.

        Raises:
            UpstreamError: it is none.
        """
        output, reason = answer_items(value, params, reasoning=reasoning, taken=taken)
        status, model = "incomplete" if reason else "completed", value.get("model")
        usage = usage_of(value.get("usage"))
        return cls(output, status, reason, usage, model=model if isinstance(model, str) and model else None)


class Backend:
    """How a model is reached.

    Args:
        settings: The `model_interface` section; `settings.options` is the backend's own.
        urls: Our other servers by name.
        token: The stack's bearer token, for calls to them.
        metrics: For what the backend counts.
    """

    def __init__(
        self, settings: ModelInterfaceSettings, urls: dict[str, str], token: str | None, metrics: Metrics
    ) -> None:
        self.settings = settings
        self.urls = urls
        self.token = token
        self.metrics = metrics
        self.facts: dict[str, Any] = {}
        """More to say in `/health`."""

    async def start(self) -> None:
        """Make ready, before the first request and in the loop that serves them."""

    async def stop(self) -> None:
        """Let go of everything."""

    async def respond(self, request: Request) -> Response:
        """The model's next turn.

        May change `request.conversation.memory` and `.thread` (for a turn that succeeds); the items are added by the caller, afterwards.

        Raises:
            ContextOverflow: the prompt does not fit the model; the caller ends the episode with it.
            Failed: no answer could be had; its kind says why.
            UsageError: the request asks for what this backend or model cannot do.
        """
        raise NotImplementedError

    async def stream(self, request: Request) -> AsyncIterator[dict[str, Any] | Response]:
        """The model's next turn as Responses stream events, and at the very end the `Response` itself.

        A backend whose upstream does not stream yields the `Response` alone: the caller makes the events of it.

        Raises:
            ContextOverflow, Failed, UsageError: as `respond`, before the first event or in the middle.
        """
        yield await self.respond(request)

    async def models(self) -> list[str]:
        """The names that `GET /v1/models` tells."""
        return [self.settings.model] if self.settings.model else []

    def without_tokens(self, why: str) -> None:
        """Accept that this call has no token ids, unless the config requires them.

        Raises:
            Failed: `token_ids: required`.
        """
        if self.settings.token_ids == "required":
            raise Failed("model_invalid_response", f"model_interface.token_ids is `required` and {why}")


def read_options(model: type[OptionsT], settings: ModelInterfaceSettings) -> OptionsT:
    """`model_interface.options` as a backend's own model.

    Raises:
        UsageError: a key is unknown or a value is wrong; all of them are named.
    """
    path = "model_interface.options"
    try:
        read = model.model_validate(settings.options)
        problems = booleans_for_numbers(read, settings.options, path)
    except ValidationError as error:
        problems = [f"{path}.{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    if problems:
        raise UsageError("; ".join(problems))
    return read


def same_prompt(request: Request) -> bool:
    """Whether the system prompt and the tools are those of the step before, so that its ids may be gone on from."""
    params, before = request.params, request.conversation.params
    return params is before or all(params.get(name) == before.get(name) for name in ("instructions", "tools"))
