"""vLLM, with token ids and log-probabilities: the first step by Chat Completions, the later ones in tokens where that is safe.

Safe is: the model ended its turn itself, and the server's own tool parser was seen to agree with ours on calls of this very model (Hermes
style); everything else goes by chat, and the ids that come back are checked against those of the steps before and labelled.
"""

from typing import Any

from model_interface.backend import Request, Response, same_prompt
from model_interface.backends import _scored
from model_interface.backends._messages import JSON, ChatBackend, ChatMemory
from model_interface.continuation import Continuation, new_messages
from model_interface.faults import ContextOverflow
from model_interface.hermes import read_calls
from model_interface.settings import ModelInterfaceSettings
from model_interface.tokens import Fidelity, Thread, checked, ids_text
from model_interface.translate import Reasoning, calls_of, request_to_chat, split_thoughts, wants_scores
from model_interface.translate.history import Message
from wire import strict_json
from wire.deadline import Deadline
from wire.errors import Failed
from wire.metrics import Metrics

KEY = b'"prompt_token_ids":['
NAMED = "token_id:"
CHAT_ONLY = (
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "logprobs",
    "top_logprobs",
    "reasoning_effort",
    "return_token_ids",  # asked for apart
)
TURN = "chat_template_kwargs"  # a parameter that changes the template: only the server's own rendering is right then


class VLLM(ChatBackend):
    """A model behind vLLM."""

    def __init__(
        self, settings: ModelInterfaceSettings, urls: dict[str, str], token: str | None, metrics: Metrics
    ) -> None:
        super().__init__(settings, urls, token, metrics)
        self.wants_tokens = settings.token_ids != "off"
        self._continuation = Continuation(self)
        self._parser_agrees: bool | None = (
            None  # whether ours reads this model's calls as the server's does; None = not seen yet
        )
        self._names_ids = (
            False  # whether it was seen to take ids as they are and to name those it samples: no echo is needed then
        )
        self._max_model_len: int | None = None

    def parameters(self, params: JSON) -> JSON:
        """With ids and log-probabilities asked for."""
        body = super().parameters(params)
        return {**body, "return_token_ids": True, "logprobs": True} if self.wants_tokens else body

    async def respond(self, request: Request) -> Response:
        """By tokens where the conversation goes on exactly, else by chat. Raises as the contract says."""
        thread = request.conversation.thread
        if not self.wants_tokens or thread is None or not self._by_tokens(request, thread):
            return await self._by_chat(request)
        memory = self.remember(request)
        more = await self._continuation.after(thread.end, new_messages(memory.builder.take()))
        if more is None:
            return await self._by_chat(request, memory)
        return await self._complete(request, memory, thread, more)

    async def tokenize(self, messages: Any, *, generation: bool, tools: Any = None) -> list[int]:
        """Ids of messages under the server's own chat template."""
        body: JSON = {"messages": list(messages), "add_generation_prompt": generation}
        if self.settings.model:
            body["model"] = self.settings.model
        answer = await self.upstream.ask(
            "//tokenize", strict_json.dumps(body), deadline=Deadline(self.settings.timeout_s), make=_token_list
        )
        ids, self._max_model_len = answer.value[0], answer.value[1] or self._max_model_len
        return list(ids)

    def _by_tokens(self, request: Request, thread: Thread) -> bool:
        """Whether this step may be asked for in tokens."""
        params = request.params
        if thread.end is None or not same_prompt(request) or TURN in params or TURN in (params.get("extra_body") or {}):
            return False
        if self.constrained:
            return True
        if params.get("tool_choice") not in (None, "auto", "none") or (params.get("text") or {}).get("format"):
            return False
        return self._parser_agrees is True

    async def _by_chat(self, request: Request, memory: ChatMemory | None = None) -> Response:
        if memory is None:
            memory = self.remember(request)
        thread = request.conversation.thread
        params, taken = request.params, memory.builder.call_ids
        loads = strict_json.loads_numbers if wants_scores(params) else _scored.loads
        went_on = False

        def parse(raw: bytes) -> Any:
            nonlocal went_on
            at = raw.find(KEY) + len(KEY)
            end = thread.end_in(raw, at) if thread is not None and at >= len(KEY) else None
            went_on = end is not None
            return loads(raw if end is None else raw[:at] + raw[end:])

        def make(value: Any) -> tuple[Response, JSON]:
            return self.read(value, params, taken), value

        answer = await self.upstream.ask(
            "/chat/completions",
            self.body(memory, params),
            deadline=request.deadline,
            pin=request.session_id,
            parse=parse,
            make=make,
        )
        made: tuple[Response, JSON] = answer.value
        response, value = made
        response.attempts, response.model_s, response.endpoint = answer.attempts, answer.model_s, answer.endpoint
        if went_on:
            value["trivium_delta"] = True
        self.finish(request, memory, response, value)
        if params.get("tool_choice") in (None, "auto"):  # a forced call is bare JSON, without the tags
            await self._compare_parsers(response, value, request.deadline)
        return response

    async def _complete(self, request: Request, memory: ChatMemory, thread: Thread, more: list[int]) -> Response:
        """One step in tokens: `/v1/completions` with the ids so far and those that are new.

        The server's echo of the prompt grows with the episode; it is asked for until the server was once seen to take the ids as they are
        and to name the ids that it samples among the log-probabilities. From then on the count of prompt tokens is compared.
        """
        params, taken = request.params, memory.builder.call_ids
        length, echo = thread.length + len(more), not self._names_ids
        asked = {**self._completion_parameters(params, length), **({"return_token_ids": True} if echo else {})}
        new = ids_text(more)[:-1] + b"]"
        reasoning = self.settings.reasoning

        def parse(raw: bytes) -> Any:
            at = raw.find(KEY) + len(KEY) if echo else 0
            end = thread.end_in(raw, at) if at >= len(KEY) else None
            if end is not None and raw.startswith(new, end):
                value = strict_json.loads_numbers(raw[:at] + raw[end + len(new) - 1 :])
                return _as_chat(value, reasoning, taken_whole=True)
            value = strict_json.loads_numbers(raw)
            same = _echo(value) == [*thread.ids, *more] if echo else _prompt_tokens(value) == length
            return _as_chat(value, reasoning, taken_whole=same)

        def make(value: Any) -> tuple[Response, JSON]:
            return self.read(value, params, taken), value

        answer = await self.upstream.ask(
            "/completions",
            [b'{"prompt":[', *thread.text, new + b"," + strict_json.dumps(asked)[1:]],
            deadline=request.deadline,
            pin=request.session_id,
            parse=parse,
            make=make,
        )
        made: tuple[Response, JSON] = answer.value
        response, value = made
        response.attempts, response.model_s, response.endpoint = answer.attempts, answer.model_s, answer.endpoint
        memory.builder.append_answer(value["choices"][0]["message"], response.output)
        choice, whole = value["choices"][0], value["taken_whole"]
        named = _named_ids(choice)
        if echo:
            self._names_ids = whole and _prompt_tokens(value) == length and named == choice.get("token_ids")
        else:
            choice["token_ids"], self._names_ids = named, whole and named is not None
        if whole:
            self._keep(request, response, choice, more, thread, "exact")
        else:
            self._keep(request, response, choice, [*thread.ids, *more], Thread(), "retokenized")
        return response

    def _completion_parameters(self, params: JSON, prompt_length: int) -> JSON:
        chat = (
            self.parameters(params)
            if self.constrained
            else request_to_chat({**params, "tools": [], "tool_choice": None})
        )
        body = {name: value for name, value in chat.items() if name not in CHAT_ONLY}
        if self.constrained and "response_format" in chat:
            body["response_format"] = chat["response_format"]
        if self.settings.model:
            body["model"] = self.settings.model
        if "max_tokens" not in body and self._max_model_len:
            body["max_tokens"] = self._max_model_len - prompt_length  # a chat's default; a completion's is 16
            if body["max_tokens"] < 1:
                limit = self._max_model_len
                raise ContextOverflow(f"the model takes {limit} tokens and the prompt has {prompt_length}")
        return {**body, **self.settings.extra_body, "return_tokens_as_token_ids": True, "logprobs": 0}

    def take_tokens(self, request: Request, response: Response, value: JSON) -> None:
        """The ids of a chat completion, checked against those of the steps before."""
        if not self.wants_tokens:
            return
        thread, choice = request.conversation.thread, value["choices"][0]
        prompt = value.get("prompt_token_ids")
        if not isinstance(prompt, list):
            self._lose(request, "the server gave no prompt_token_ids (vLLM 0.10 and newer do)")
            return
        whole = Thread()
        fidelity: Fidelity = "exact"
        if value.pop("trivium_delta", False) and thread is not None:
            whole = thread
        elif thread is not None and prompt[: thread.length] == thread.ids and len(prompt) > thread.length:
            whole, prompt = thread, prompt[thread.length :]
        elif thread is not None:
            fidelity = "retokenized"
        elif not request.conversation.first:
            fidelity = "forked"
        self._keep(request, response, choice, prompt, whole, fidelity)

    def _keep(
        self, request: Request, response: Response, choice: JSON, prompt: list[int], whole: Thread, fidelity: Fidelity
    ) -> None:
        """Take the ids of a step, which `prompt` and the generation add to `whole`."""
        tokens = checked(prompt, choice.get("token_ids"), _log_probs(choice), fidelity=fidelity)
        if tokens is None:
            self._lose(request, "the server's token ids and log-probabilities do not belong together")
            return
        whole.add(tokens, ended=response.reason is None)
        request.conversation.thread = whole
        response.tokens = tokens

    def _lose(self, request: Request, why: str) -> None:
        request.conversation.thread = None
        request.conversation.resumed = True  # the next step with ids starts a new segment
        self.without_tokens(why)

    async def _compare_parsers(self, response: Response, value: JSON, deadline: Deadline) -> None:
        """Once per server: does our reading of the generated text give the calls that the server's parser gave?"""
        if self._parser_agrees is not None or response.tokens is None or self.constrained:
            return
        calls = [item for item in response.output if item["type"] == "function_call"]
        if not calls:
            return
        ids = response.tokens.generation_token_ids
        body: JSON = {"tokens": ids[:-1]}
        if self.settings.model:
            body["model"] = self.settings.model
        try:
            answer = await self.upstream.ask("//detokenize", strict_json.dumps(body), deadline=deadline)
        except Failed:
            self._parser_agrees = False
            return
        text = answer.value.get("prompt") if isinstance(answer.value, dict) else None
        self._parser_agrees = isinstance(text, str) and _same_calls(text, calls)


def _as_chat(value: Any, reasoning: Reasoning, *, taken_whole: bool) -> Any:
    """A completion as the chat completion it would have been."""
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0].get("text"), str):
        return value
    choice = choices[0]
    thoughts, said = split_thoughts(choice["text"], reasoning)
    text, calls = read_calls(said)
    message: Message = {"role": "assistant", "content": text or None}
    if thoughts:
        message["reasoning_content"] = thoughts
    if calls:
        message["tool_calls"] = calls
    return {**value, "choices": [{**choice, "message": message}], "taken_whole": taken_whole}


def _echo(value: Any) -> Any:
    choices = value.get("choices") if isinstance(value, dict) else None
    return choices[0].get("prompt_token_ids") if isinstance(choices, list) and choices else None


def _prompt_tokens(value: Any) -> Any:
    usage = value.get("usage") if isinstance(value, dict) else None
    return usage.get("prompt_tokens") if isinstance(usage, dict) else None


def _named_ids(choice: JSON) -> list[int] | None:
    """The generated ids, where the log-probabilities of a completion are of tokens written `token_id:17`."""
    scores = choice.get("logprobs")
    tokens = scores.get("tokens") if isinstance(scores, dict) else None
    if not isinstance(tokens, list) or not all(isinstance(each, str) and each.startswith(NAMED) for each in tokens):
        return None
    try:
        return [int(each[len(NAMED) :]) for each in tokens]
    except ValueError:
        return None


def _log_probs(choice: JSON) -> Any:
    scores = choice.get("logprobs")
    if not isinstance(scores, dict):
        return None
    if isinstance(scores.get("token_logprobs"), list):
        return scores["token_logprobs"]
    content = scores.get("content")
    if not isinstance(content, list):
        return None
    try:
        return [each["logprob"] for each in content]
    except (KeyError, TypeError):
        return None


def _token_list(value: Any) -> tuple[list[int], int | None]:
    if not isinstance(value, dict) or not isinstance(value.get("tokens"), list):
        raise Failed("model_invalid_response", f"/tokenize gave no tokens: {str(value)[:200]}")
    limit = value.get("max_model_len")
    return value["tokens"], limit if isinstance(limit, int) else None


def _same_calls(text: str, calls: list[JSON]) -> bool:
    _, found = read_calls(split_thoughts(text)[1])
    ours = calls_of({"tool_calls": found})
    try:
        return len(ours) == len(calls) and all(
            one["name"] == other["name"]
            and strict_json.loads(one["arguments"]) == strict_json.loads(other["arguments"])
            for one, other in zip(ours, calls, strict=True)
        )
    except strict_json.JSONError:
        return False
