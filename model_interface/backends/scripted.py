"""Plays a file of turns: for tests and demos without a model. Where the file has none left it answers "done".

options:
  turns: a list, or the path of a .json, .jsonl or .yaml file. A turn is a text (the final answer), a list of Responses items, or an
    object {text?, reasoning?, calls?: [{name, arguments, call_id?}], incomplete?: "max_output_tokens", failure?: kind of failure,
    usage?}. Turn i answers the i-th model call of a conversation.
  tokens: true makes up token ids and log-probabilities, the same for the same text (ids are its bytes; log-probs -0.5).
  delay_s: seconds that each turn takes.
"""

import asyncio
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from model_interface.backend import Backend, Request, Response, read_options
from model_interface.backends._play import call_item, message_item
from model_interface.settings import ModelInterfaceSettings
from model_interface.tokens import Fidelity, Thread, Tokens, checked
from wire import jsonl, strict_json
from wire.errors import KINDS, Failed, UsageError
from wire.metrics import Metrics
from wire.responses import Item

DONE = "done"
LOG_PROB = -0.5  # of every made-up token
REASONS = ("max_output_tokens", "content_filter", "context_window")


class Options(BaseModel):
    """`model_interface.options` of this backend."""

    model_config = ConfigDict(extra="forbid")

    turns: list[Any] | str = []
    """Turns, or the file that holds them."""
    tokens: bool = False
    """Make up token ids and log-probabilities."""
    delay_s: float = Field(0.0, ge=0, le=3600)
    """Seconds that each turn takes."""


class Scripted(Backend):
    """A model that says what it was told to say."""

    def __init__(
        self, settings: ModelInterfaceSettings, urls: dict[str, str], token: str | None, metrics: Metrics
    ) -> None:
        """Read and check the turns."""
        super().__init__(settings, urls, token, metrics)
        self._options = read_options(Options, settings)
        turns = self._options.turns
        self._turns = read_turns(Path(turns)) if isinstance(turns, str) else turns
        for number, turn in enumerate(self._turns):
            _check(turn, number)

    async def respond(self, request: Request) -> Response:
        """The turn whose number is the conversation's; "done" where there is none."""
        if self._options.delay_s:
            await asyncio.sleep(self._options.delay_s)
        number = model_turns(request)
        turn = self._turns[number] if number < len(self._turns) else DONE
        response = _play(turn, number)
        response.model = self.settings.model or "scripted"
        if self._options.tokens and self.settings.token_ids != "off":
            response.tokens = _make_up_tokens(request, response)
        else:
            self.without_tokens("the scripted backend makes none without options.tokens")
        return response


def read_turns(path: Path) -> list[Any]:
    """The turns in a file.

    Raises:
        UsageError: it cannot be read, or is no list of turns.
    """
    if path.suffix == ".jsonl":
        return [_line(path, number, line) for number, line in jsonl.read_lines(path)]
    try:
        text = path.read_bytes()
        value = strict_json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (OSError, strict_json.JSONError, yaml.YAMLError) as error:
        raise UsageError(f"cannot read the turns in {path}: {error}") from error
    if not isinstance(value, list):
        raise UsageError(f"{path} holds no list of turns")
    return value


def model_turns(request: Request) -> int:
    """How many turns of the model come before this one.

    A conversation that was sent whole has no steps: its turns are counted by the runs of items that a model made.
    """
    turns, inside = 0, False
    for item in request.history:
        made = item.get("type") in ("function_call", "reasoning") or item.get("role") == "assistant"
        turns += made and not inside
        inside = made
    return max(turns, request.conversation.turn)


def _line(path: Path, number: int, line: bytes) -> Any:
    try:
        return strict_json.loads(line)
    except strict_json.JSONError as error:
        raise UsageError(f"{path}:{number}: {error}") from error


def _check(turn: Any, number: int) -> None:
    if isinstance(turn, str) or (isinstance(turn, list) and all(isinstance(item, dict) for item in turn)):
        return
    where = f"turn {number} of model_interface.options.turns"
    if not isinstance(turn, dict):
        raise UsageError(f"{where} is {turn!r}; a turn is a text, a list of items or an object with text or calls")
    unknown = sorted(turn.keys() - {"text", "reasoning", "calls", "incomplete", "failure", "message", "usage"})
    if unknown:
        raise UsageError(f"{where} has the unknown key {unknown[0]!r}")
    if "failure" in turn and turn["failure"] not in KINDS:
        raise UsageError(f"{where}: there is no failure kind {turn['failure']!r} (known: {', '.join(KINDS)})")
    if "incomplete" in turn and turn["incomplete"] not in REASONS:
        raise UsageError(f"{where}: incomplete is {turn['incomplete']!r}; known: {', '.join(REASONS)}")
    for call in turn.get("calls") or []:
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            raise UsageError(f"{where}: a call is {{name, arguments, call_id?}}, not {call!r}")


def _play(turn: Any, number: int) -> Response:
    if isinstance(turn, str):
        return Response([message_item(turn)])
    if isinstance(turn, list):
        return Response([dict(item) for item in turn])
    if "failure" in turn:
        raise Failed(turn["failure"], turn.get("message") or f"turn {number} of the script fails so")
    items: list[Item] = []
    if turn.get("reasoning"):
        items.append(
            {
                "type": "reasoning",
                "id": f"rs_{number}",
                "summary": [{"type": "summary_text", "text": turn["reasoning"]}],
            }
        )
    if turn.get("text") is not None:
        items.append(message_item(turn["text"]))
    for index, call in enumerate(turn.get("calls") or []):
        items.append(
            call_item(call["name"], call.get("arguments", {}), call.get("call_id") or f"call_{number}_{index}")
        )
    reason = turn.get("incomplete")
    return Response(items, "incomplete" if reason else "completed", reason, turn.get("usage"))


def _make_up_tokens(request: Request, response: Response) -> Tokens:
    conversation = request.conversation
    new = conversation.thread is None
    thread = Thread() if conversation.thread is None else conversation.thread
    prompt = list(strict_json.dumps(request.history if new else request.items))
    generation = list(strict_json.dumps(response.output))
    fidelity: Fidelity = "forked" if new and not conversation.first else "exact"
    tokens = checked(prompt, generation, [LOG_PROB] * len(generation), fidelity=fidelity)
    assert tokens is not None
    thread.add(tokens)
    conversation.thread = thread
    return tokens
