"""A real model on this machine: llama.cpp's server in this process (package xllamacpp, extra `local`), spoken to in tokens.

`model` is a name of `trivium models list` (default smollm2-135m) or the path of a GGUF file. The conversation goes to the model as the ids
it saw and said, so that every step is exact; the beginning that all rows of an environment share is computed once and copied.
options: {threads, slots, context_tokens, max_output_tokens, temperature, top_p, examples}
"""

import asyncio
import hashlib
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from model_interface import models
from model_interface.backend import Backend, Request, Response, read_options
from model_interface.backends._slots import Slot, Slots
from model_interface.constrained import COMPACT, PlainHistory, answer_schema, offered, read_answer
from model_interface.continuation import Continuation
from model_interface.settings import ModelInterfaceSettings, normalise_base_url
from model_interface.tokens import Fidelity, Thread, checked, ids_text
from model_interface.translate import new_id, request_to_chat
from model_interface.translate.history import Message
from model_interface.upstream import Answer, Upstream
from wire import strict_json
from wire.deadline import Deadline
from wire.errors import Failed, UsageError
from wire.metrics import Metrics

SNAPSHOTS = 16  # common beginnings kept
SHORTEST_PREFIX = 48  # tokens; below this a copy saves nothing
FIELDS = ["content", "tokens", "stop_type", "tokens_evaluated", "truncated", "completion_probabilities", "timings"]
RENAMED = {"max_tokens": "n_predict"}
NOT_SAMPLING = (
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "logprobs",
    "top_logprobs",
)


class LocalOptions(BaseModel):
    """`model_interface.options` of this backend."""

    model_config = ConfigDict(extra="forbid")

    threads: int = Field(1, ge=1, le=256)
    """Threads that compute; more than the cores that are free makes it many times slower."""
    slots: int = Field(4, ge=1, le=256)
    """Conversations computed at once."""
    context_tokens: int = Field(4096, ge=256, le=1_048_576)
    """Prompt and answer of one conversation at most; memory grows with it, times the slots."""
    max_output_tokens: int = Field(256, ge=1, le=1_048_576)
    """Tokens of one answer where the request sets no limit."""
    temperature: float = Field(0.2, ge=0, le=2)
    """Where the request sets none; the model's own card recommends 0.2."""
    top_p: float = Field(0.9, gt=0, le=1)
    """Where the request sets none."""
    examples: bool = True
    """Show three short exchanges before the task; a model of some billion parameters needs none."""


@dataclass(slots=True, eq=False)
class LocalMemory:
    """A conversation as the model sees it."""

    params: dict[str, Any]
    history: PlainHistory
    grammar: dict[str, Any]
    prefix: list[int] = field(default_factory=list)
    """Ids of the system prompt, which other conversations share."""


class Local(Backend):
    """llama.cpp in this process."""

    def __init__(
        self, settings: ModelInterfaceSettings, urls: dict[str, str], token: str | None, metrics: Metrics
    ) -> None:
        super().__init__(settings, urls, token, metrics)
        self.options = read_options(LocalOptions, settings)
        if settings.tool_calls == "native":
            raise UsageError("backend `local` makes constrained tool calls only: leave model_interface.tool_calls out")
        self.name = settings.model or models.DEFAULT
        self._path = _find_model(self.name)
        _import_llama()
        self._continuation = Continuation(self)
        self._slots = Slots(self.options.slots)
        self._snapshots: OrderedDict[bytes, asyncio.Task[str | None]] = OrderedDict()
        self._prefixes: dict[bytes, list[int]] = {}
        self._server: Any = None

    async def start(self) -> None:
        """Load the model."""
        self._folder = tempfile.TemporaryDirectory(prefix="trivium-local-")
        self._server = await asyncio.to_thread(_start_server, self._path, self.options, self._folder.name)
        address = normalise_base_url(self._server.listening_address)
        settings = self.settings.model_copy(
            update={"base_url": address, "base_urls": [], "concurrency": self.options.slots + 1, "attempts": 1}
        )
        self.facts |= {"model": self.name, "llama_cpp": self._server.listening_address}
        self._upstream = Upstream(settings, self.metrics)
        await self._upstream.start()

    async def stop(self) -> None:
        """Let the model go."""
        if self._server is None:
            return
        await self._upstream.stop()
        held, self._server = [self._server], None
        await asyncio.to_thread(held.clear)  # the last reference: waits for llama.cpp's own threads
        self._folder.cleanup()

    async def models(self) -> list[str]:
        """The one that is loaded."""
        return [self.name]

    async def respond(self, request: Request) -> Response:
        """One answer, computed here. Raises as the contract says."""
        memory = await self._remember(request)
        thread, new, fidelity = await self._continuation.prompt(request, memory.history.messages)
        body = {
            **self._sampling(request.params),
            **memory.grammar,
            "cache_prompt": True,
            "return_tokens": True,
            "n_probs": 1,
            "response_fields": FIELDS,
        }
        async with self._slots.hold(memory) as (slot, kept):
            if not kept:
                await self._copy_prefix(slot, memory.prefix, request.deadline)
            tail = strict_json.dumps({**body, "id_slot": slot.number})[1:]
            text = [b'{"prompt":[', *thread.text, ids_text(new)[:-1] + b"]," + tail]
            answer = await self._upstream.ask("//completion", text, deadline=request.deadline)
        return self._read(request, memory, thread, new, fidelity, answer)

    async def tokenize(self, messages: Sequence[Message], *, generation: bool, tools: Any = None) -> list[int]:
        """Ids of messages under the model's own chat template."""
        deadline = Deadline(self.settings.timeout_s)
        body = strict_json.dumps({"messages": list(messages), "add_generation_prompt": generation})
        rendered = await self._upstream.ask("//apply-template", body, deadline=deadline)
        text = strict_json.dumps({"content": rendered.value["prompt"], "add_special": False, "parse_special": True})
        ids: list[int] = (await self._upstream.ask("//tokenize", text, deadline=deadline)).value["tokens"]
        return ids

    async def _shared_ids(self, beginning: list[Message]) -> list[int]:
        key = strict_json.dumps(beginning)
        known = self._prefixes.get(key)
        if known is None:
            if len(self._prefixes) >= SNAPSHOTS:
                self._prefixes.clear()
            known = self._prefixes[key] = await self.tokenize(beginning, generation=False)
        return known

    async def _remember(self, request: Request) -> LocalMemory:
        conversation, params = request.conversation, request.params
        memory: LocalMemory | None = conversation.memory
        if memory is None or (memory.params is not params and memory.params != params):
            tools = offered(params)
            history = PlainHistory(params.get("instructions"), tools, examples=self.options.examples)
            history.append(conversation.items)
            memory = conversation.memory = LocalMemory(params, history, _grammar(answer_schema(params)))
        memory.history.append(request.items)
        beginning = memory.history.beginning
        if not memory.prefix and beginning:
            memory.prefix = await self._shared_ids(beginning)
        return memory

    def _sampling(self, params: dict[str, Any]) -> dict[str, Any]:
        chat = request_to_chat({**params, "tools": [], "tool_choice": None, "text": None})
        asked = {RENAMED.get(name, name): value for name, value in chat.items() if name not in NOT_SAMPLING}
        options = self.options
        defaults = {"n_predict": options.max_output_tokens, "temperature": options.temperature, "top_p": options.top_p}
        return {**defaults, **asked, **self.settings.extra_body}

    def _read(
        self,
        request: Request,
        memory: LocalMemory,
        thread: Thread,
        new: list[int],
        fidelity: Fidelity,
        answer: Answer,
    ) -> Response:
        value = answer.value
        if not isinstance(value, dict) or not isinstance(value.get("content"), str):
            raise Failed("model_invalid_response", f"llama.cpp answered without content: {str(value)[:200]}")
        reason = "max_output_tokens" if value.get("stop_type") == "limit" else None
        text = value["content"]
        output = read_answer(text, request.params, call_id=new_id("call"), reason=reason, log_probs=[])
        memory.history.append_answer({"content": text}, output)
        usage = _usage(value, thread.length + len(new))
        response = Response(output, "incomplete" if reason else "completed", reason, usage, model=self.name)
        response.model_s, response.policy_version = answer.model_s, self._path.name
        self._take_tokens(request, memory, response, thread, new, fidelity, value)
        return response

    def _take_tokens(
        self,
        request: Request,
        memory: LocalMemory,
        response: Response,
        thread: Thread,
        new: list[int],
        fidelity: Fidelity,
        value: dict[str, Any],
    ) -> None:
        conversation = request.conversation
        chances = value.get("completion_probabilities") or []
        log_probs = [each.get("logprob") for each in chances]
        ids = value.get("tokens")
        ended = not memory.grammar
        if not ended and value.get("stop_type") == "eos" and isinstance(ids, list):
            # A finished grammar leaves only the end of text: the model did not choose that token
            ids, log_probs, chances = ids[:-1], log_probs[:-1], chances[:-1]
        tokens = checked(new, ids, log_probs, fidelity=fidelity)
        whole = value.get("tokens_evaluated") == thread.length + len(new) and not value.get("truncated")
        if tokens is None or not whole or [each.get("id") for each in chances] != tokens.generation_token_ids:
            conversation.thread, conversation.resumed = None, True
            self.without_tokens("llama.cpp gave ids and log-probabilities that do not belong together")
            return
        thread.add(tokens, ended=ended)
        conversation.thread = thread
        if self.settings.token_ids != "off":
            response.tokens = tokens

    async def _copy_prefix(self, slot: Slot, prefix: list[int], deadline: Deadline) -> None:
        """Let a slot begin with a prefix that was computed before; compute and keep it the first time."""
        key = hashlib.sha256(strict_json.dumps(prefix)).digest()
        if len(prefix) < SHORTEST_PREFIX or slot.prefix == key:
            return
        task = self._snapshots.get(key)
        if task is None:
            task = self._snapshots[key] = asyncio.create_task(self._compute_prefix(slot, prefix, key, deadline))
            slot.prefix = key
            await asyncio.shield(task)
            self._drop_snapshots()
            return
        name = await asyncio.shield(task)
        if name is not None:
            body = strict_json.dumps({"filename": name})
            await self._upstream.ask(f"//slots/{slot.number}?action=restore", body, deadline=deadline)
            slot.prefix = key

    async def _compute_prefix(self, slot: Slot, prefix: list[int], key: bytes, deadline: Deadline) -> str | None:
        name = f"{key.hex()[:32]}.bin"
        body = {
            "prompt": prefix,
            "n_predict": 0,
            "cache_prompt": True,
            "id_slot": slot.number,
            "response_fields": FIELDS,
        }
        try:
            await self._upstream.ask("//completion", strict_json.dumps(body), deadline=deadline)
            path = f"//slots/{slot.number}?action=save"
            await self._upstream.ask(path, strict_json.dumps({"filename": name}), deadline=deadline)
        except Failed:
            self._snapshots.pop(key, None)  # the next conversation computes it for itself
            return None
        return name

    def _drop_snapshots(self) -> None:
        while len(self._snapshots) > SNAPSHOTS:
            _, task = self._snapshots.popitem(last=False)
            if task.done() and (name := task.result()) is not None:
                Path(self._folder.name, name).unlink(missing_ok=True)


def _find_model(name: str) -> Path:
    if name.endswith(".gguf"):
        path = Path(name).expanduser()
        if not path.is_file():
            raise UsageError(f"model_interface.model: there is no file {name}")
        return path
    found = models.path_of(name)
    if found is None:
        raise UsageError(f"the model {name} is not on this machine; `trivium models pull {name}` fetches it")
    return found


def _import_llama() -> Any:
    try:
        import xllamacpp  # an extra: only this backend needs it
    except ImportError as error:
        missing = "libgomp" in str(error)  # a library of the system, which minimal images leave out
        help = "apt-get install libgomp1" if missing else "pip install 'trivium[local]'"
        raise UsageError(f"backend `local` needs the package xllamacpp ({error}): {help}") from error
    return xllamacpp


def _start_server(path: Path, options: LocalOptions, folder: str) -> Any:
    llama = _import_llama()
    params = llama.CommonParams()
    params.model.path = str(path)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.n_parallel, params.kv_unified = options.slots, False
    params.n_ctx = options.slots * options.context_tokens
    params.n_threads_http = options.slots + 2
    params.slot_save_path = folder + "/"
    params.endpoint_slots, params.use_jinja, params.warmup, params.verbosity = True, True, False, -1
    params.prefill_assistant = False  # an assistant message at the end is a finished one here
    params.cache_ram_mib, params.port = 0, 0
    return llama.Server(params)


def _grammar(schema: dict[str, Any] | None) -> dict[str, Any]:
    if schema is None:
        return {}
    try:
        return {"grammar": _import_llama().json_schema_to_grammar({**schema, "x-guidance": COMPACT})}
    except (RuntimeError, ValueError, TypeError) as error:
        raise UsageError(f"llama.cpp cannot hold an answer to these tools' schemas: {error}", param="tools") from error


def _usage(value: dict[str, Any], prompt: int) -> dict[str, Any]:
    made = len(value.get("tokens") or ())
    cached = (value.get("timings") or {}).get("cache_n", 0)
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + made,
    }
