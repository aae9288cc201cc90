"""The policy that is being trained, in this process: prompts and answers are token ids, and somebody else computes them.

For integrations of trainers, which hand over an object with `options.policy` in code; a config file cannot name it. The conversation is
carried in ids from step to step, so every step is exact unless the chat template rewrites what came before.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from model_interface.backend import Backend, Request, Response, read_options
from model_interface.constrained import COMPACT, PlainHistory, answer_schema, offered, read_answer
from model_interface.continuation import Continuation
from model_interface.faults import ContextOverflow
from model_interface.hermes import read_calls
from model_interface.settings import ModelInterfaceSettings
from model_interface.tokens import Fidelity, Thread, checked
from model_interface.translate import MessageBuilder, new_id, split_thoughts
from model_interface.translate.history import Message
from wire.errors import Failed, UsageError
from wire.metrics import Metrics


class Generated(Protocol):
    """What the policy made of one prompt."""

    ids: list[int]
    log_probs: list[float]
    """Natural log under the distribution that was sampled from; one per id."""
    ended: bool
    """The last id is the model's own end of turn; otherwise the limit was reached."""
    version: str
    """Which weights answered."""


class Policy(Protocol):
    """What a trainer's integration provides; called in the loop that serves the model interface."""

    name: str
    context_tokens: int | None
    """Prompt and answer together at most."""
    episode_tokens: int | None
    """Everything after an episode's first prompt at most: a trainer's completion length."""

    def render(self, messages: Sequence[Message], *, generation: bool, tools: Any) -> list[int]:
        """Ids of messages under the chat template."""
        ...

    def text(self, ids: Sequence[int]) -> str:
        """The text of generated ids, special tokens that are part of the answer included."""
        ...

    async def generate(self, prompt: list[int], limit: int | None, schema: dict[str, Any] | None) -> Generated:
        """One answer of at most `limit` ids, held to a JSON schema where there is one and the trainer can."""
        ...


class TrainerOptions(BaseModel):
    """`model_interface.options` of this backend."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    policy: Any = None
    """A `Policy`."""


@dataclass(slots=True, eq=False)
class TrainerMemory:
    """A conversation as the policy sees it."""

    params: dict[str, Any]
    builder: MessageBuilder | PlainHistory
    start: int | None = None
    """Ids of the episode's first prompt."""


class Trainer(Backend):
    """A trainer's own model."""

    def __init__(
        self, settings: ModelInterfaceSettings, urls: dict[str, str], token: str | None, metrics: Metrics
    ) -> None:
        super().__init__(settings, urls, token, metrics)
        policy = read_options(TrainerOptions, settings).policy
        if policy is None:
            raise UsageError(
                "backend `trainer` is for a trainer's integration (rollouts.trainers), which sets options.policy"
            )
        self._policy: Policy = policy
        self._constrained = settings.tool_calls == "constrained"
        self._continuation = Continuation(self)

    async def models(self) -> list[str]:
        """The one that is trained."""
        return [self._policy.name]

    async def tokenize(self, messages: Sequence[Message], *, generation: bool, tools: Any = None) -> list[int]:
        """Ids of messages under the trainer's chat template."""
        return self._policy.render(messages, generation=generation, tools=tools)

    async def respond(self, request: Request) -> Response:
        """One answer of the policy. Raises as the contract says."""
        started = time.monotonic()
        memory = self._remember(request)
        before, new, fidelity = await self._continuation.prompt(
            request, memory.builder.take(), tools=self._tools(request)
        )
        prompt = before.ids + new
        if memory.start is None:
            memory.start = len(prompt)
        limit = self._room(request, len(prompt), len(prompt) - memory.start)
        schema = answer_schema(request.params) if self._constrained else None
        held = {**schema, "x-guidance": COMPACT} if schema else None
        made = await self._policy.generate(prompt, limit, held)
        response = self._read(request, memory, made, len(prompt))
        response.model_s = time.monotonic() - started
        self._take_tokens(request, response, made, before, new, fidelity)
        return response

    def _remember(self, request: Request) -> TrainerMemory:
        conversation, params = request.conversation, request.params
        memory: TrainerMemory | None = conversation.memory
        if memory is None or (memory.params is not params and memory.params != params):
            instructions, start = params.get("instructions"), memory.start if memory else None
            builder = PlainHistory(instructions, offered(params)) if self._constrained else MessageBuilder(instructions)
            builder.append(conversation.items)
            memory = conversation.memory = TrainerMemory(params, builder, start)
        memory.builder.append(request.items)
        return memory

    def _tools(self, request: Request) -> Any:
        if self._constrained:
            return None  # described in the system prompt
        named = ("name", "description", "parameters", "strict")
        functions = [{key: tool[key] for key in named if tool.get(key) is not None} for tool in offered(request.params)]
        return [{"type": "function", "function": function} for function in functions] or None

    def _room(self, request: Request, prompt: int, so_far: int) -> int | None:
        """How many ids the answer may have; the trainer decides about everything else of the sampling.

        Raises:
            ContextOverflow: none.
        """
        bounds = [
            request.params.get("max_output_tokens"),
            None if self._policy.context_tokens is None else self._policy.context_tokens - prompt,
            None if self._policy.episode_tokens is None else self._policy.episode_tokens - so_far,
        ]
        known = [each for each in bounds if each is not None]
        if known and min(known) < 1:
            raise ContextOverflow(f"a prompt of {prompt} tokens leaves no room for an answer in this trainer's lengths")
        return min(known) if known else None

    def _read(self, request: Request, memory: TrainerMemory, made: Generated, prompt: int) -> Response:
        text = self._policy.text(made.ids[:-1] if made.ended else made.ids)
        usage = {"prompt_tokens": prompt, "completion_tokens": len(made.ids), "total_tokens": prompt + len(made.ids)}
        finish = "stop" if made.ended else "length"
        message: Message = {"role": "assistant", "content": text}
        if not self._constrained and made.ended:
            message = _with_calls(text, self.settings.reasoning)
        value = {
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": usage,
            "model": self._policy.name,
        }
        response = Response.of_completion(value, {}, reasoning=self.settings.reasoning, taken=memory.builder.call_ids)
        if self._constrained:
            response.output = read_answer(
                text, request.params, call_id=new_id("call"), reason=response.reason, log_probs=[]
            )
        memory.builder.append_answer(message, response.output)
        response.model, response.policy_version = self._policy.name, made.version
        return response

    def _take_tokens(
        self,
        request: Request,
        response: Response,
        made: Generated,
        thread: Thread,
        new: list[int],
        fidelity: Fidelity,
    ) -> None:
        tokens = checked(new, made.ids, made.log_probs, fidelity=fidelity)
        if tokens is None:
            raise Failed("model_invalid_response", "the trainer's ids and log-probabilities do not belong together")
        thread.add(tokens, ended=made.ended)
        request.conversation.thread = thread
        if self.settings.token_ids != "off":
            response.tokens = tokens


def _with_calls(text: str, reasoning: Any) -> Message:
    """The text as a chat message, with the calls that a Hermes-style model wrote into it."""
    thoughts, said = split_thoughts(text, reasoning)
    content, calls = read_calls(said)
    message: Message = {"role": "assistant", "content": content or None}
    if thoughts:
        message["reasoning_content"] = thoughts
    if calls:
        message["tool_calls"] = calls
    return message
