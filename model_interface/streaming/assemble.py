"""The chunks of a streamed chat completion, put together: Responses events on the way, the response and the whole completion at the end.

What `chat_to_response` makes of the unstreamed answer, this makes of the streamed one (a test compares them). One difference: under
`reasoning: auto` a `</think>` without its opening tag is found too late, since the text before it has been passed on.
"""

from collections.abc import Collection
from typing import Any

from model_interface.streaming.emit import Event, ResponsesEmitter
from model_interface.translate.answers import (
    CUT,
    INCOMPLETE,
    argument_text,
    finish_reason,
    logprobs_of,
    name_text,
    refusal_text,
    unique_id,
    usage_of,
)
from model_interface.translate.errors import UpstreamError, raise_if_error
from model_interface.translate.parameters import LOGPROBS
from model_interface.translate.reasoning import FIELDS, Reasoning, ThoughtSplitter, reasoning_field
from wire import strict_json


class ChatStreamAssembler:
    """Feed it every chunk, then `finish` it.

    Args:
        request: The Responses request; parameters that the response echoes, and whether log-probs are wanted.
        reasoning: Where thoughts are looked for.
        taken: Call ids that new ones must differ from.
        response_id: Id of the response.
    """

    def __init__(
        self,
        request: dict[str, Any],
        *,
        reasoning: Reasoning = "auto",
        taken: Collection[str] = (),
        response_id: str | None = None,
    ) -> None:
        self._emitter = ResponsesEmitter(request, response_id)
        self._splitter = ThoughtSplitter(reasoning)
        self._ids: set[str] = set()
        self._taken = taken
        self._calls: list[_StreamedCall] = []
        self._body: dict[str, Any] = {"object": "chat.completion"}
        self._raw: dict[str, list[str]] = {}  # message field -> pieces as they came
        self._finish: Any = None
        self._token_ids: list[int] | None = None
        self._logprobs: list[Any] | None = None
        self._wants_logprobs = request.get("top_logprobs") is not None or LOGPROBS in (request.get("include") or ())
        self._begun = self._fields = False

    @property
    def response(self) -> dict[str, Any]:
        """The finished Responses object, after `finish`; the very object of the last event."""
        return self._emitter.response

    @property
    def begun(self) -> bool:
        """Whether any event has been given out: after that the request cannot be asked again unseen."""
        return self._begun

    def feed(self, chunk: Any) -> list[Event]:
        """The events that one chunk causes.

        Raises:
            UpstreamError: the chunk is an error, or no chunk.
        """
        raise_if_error(chunk)
        if not isinstance(chunk, dict):
            raise UpstreamError(
                "model_invalid_response", f"the model server streamed {str(chunk)[:200]!r} where a chunk belongs"
            )
        for name in ("id", "created", "model", "usage", "prompt_token_ids", "timings", "system_fingerprint"):
            if chunk.get(name) is not None:
                self._body[name] = chunk[name]
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return []
        events = [] if self._begun else self._emitter.start(self._body.get("model"))
        self._begun = True
        return events + self._choice(choices[0])

    def finish(self, *, done: bool = False) -> list[Event]:
        """The events at the end of the stream.

        Args:
            done: The server sent `[DONE]`; without it a stream is whole if it gave a finish reason.

        Raises:
            UpstreamError: the stream broke off, or the server says that it failed.
        """
        if not self._begun or (self._finish is None and not done):
            said = "".join(self._raw.get("content", ()))[-200:]
            raise UpstreamError(
                "model_invalid_response", f"the model server's stream ended before the answer did: {said!r}"
            )
        reason = INCOMPLETE.get(finish_reason({"finish_reason": self._finish}))
        events = self._flush(cut=reason in CUT)
        for call in self._calls:
            events += self._announce(call)
        if not (self._emitter.output or reason):
            events += self._emitter.say("")
        model = self._body.get("model")
        return events + self._emitter.end(
            reason, usage_of(self._body.get("usage")), model if isinstance(model, str) else None
        )

    def fail(self, error: Any) -> list[Event]:
        """The events that tell a caller that the answer will not come."""
        return self._emitter.fail(error)

    def completion(self) -> dict[str, Any]:
        """The whole chat completion, token ids and log-probs included, as an unstreamed answer would have had it."""
        message: dict[str, Any] = {"role": "assistant", "content": None}
        message |= {name: "".join(pieces) for name, pieces in self._raw.items()}
        if self._calls:
            message["tool_calls"] = [call.raw() for call in self._calls]
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": self._finish}
        if self._token_ids is not None:
            choice["token_ids"] = self._token_ids
        if self._logprobs is not None:
            choice["logprobs"] = {"content": self._logprobs}
        return {**self._body, "choices": [choice]}

    def _choice(self, choice: dict[str, Any]) -> list[Event]:
        if choice.get("finish_reason") is not None:
            self._finish = choice["finish_reason"]
        if isinstance(choice.get("token_ids"), list):
            self._token_ids = (self._token_ids or []) + choice["token_ids"]
        scores = choice.get("logprobs")
        if isinstance(scores, dict) and isinstance(scores.get("content"), list):
            self._logprobs = (self._logprobs or []) + scores["content"]
        delta = choice.get("delta") or choice.get("message")
        return (
            self._delta(delta, logprobs_of(choice) if self._wants_logprobs else []) if isinstance(delta, dict) else []
        )

    def _delta(self, delta: dict[str, Any], logprobs: list[Any]) -> list[Event]:
        events: list[Event] = []
        thoughts = reasoning_field(delta)
        if thoughts:
            self._fields = True
            self._keep(next(name for name in FIELDS if delta.get(name)), thoughts)
            events += self._emitter.think(thoughts)
        events += self._content(delta.get("content"), logprobs)
        refusal = refusal_text(delta.get("refusal"))
        if refusal:
            self._keep("refusal", refusal)
            events += self._flush() + self._emitter.refuse(refusal)
        calls = delta.get("tool_calls")
        if not calls and isinstance(delta.get("function_call"), dict):
            calls = [{"index": 0, "function": delta["function_call"]}]
        for call in calls if isinstance(calls, list) else ():
            events += self._call(call)
        return events

    def _content(self, content: Any, logprobs: list[Any]) -> list[Event]:
        if isinstance(content, dict):
            content = [content]
        if isinstance(content, list):
            texts = [part.get("text") if isinstance(part, dict) else part for part in content]
            content = "".join(text for text in texts if isinstance(text, str))
        if not isinstance(content, str):
            return []
        self._keep("content", content)
        if not content:
            return []
        thoughts, text = ("", content) if self._fields else self._splitter.feed(content)
        events = self._emitter.think(thoughts) if thoughts else []
        return events + (self._emitter.say(text, logprobs) if text else [])

    def _flush(self, *, cut: bool = False) -> list[Event]:
        """What the splitter held back, now that no tag can come any more."""
        thoughts, text = self._splitter.close(cut=cut)
        self._splitter = ThoughtSplitter("off")
        events = self._emitter.think(thoughts) if thoughts else []
        return events + (self._emitter.say(text) if text else [])

    def _call(self, delta: Any) -> list[Event]:
        if not isinstance(delta, dict):
            raise UpstreamError(
                "model_invalid_response", f"the model server streamed a tool call of {str(delta)[:200]!r}"
            )
        events = self._flush()
        function = delta.get("function")
        function = function if isinstance(function, dict) else {}
        call = self._find(delta, function)
        if call is None:
            for each in self._calls:
                events += self._announce(each) + self._settle(each)
            call = _StreamedCall(delta.get("index"), delta.get("id"))
            self._calls.append(call)
        call.name_more(function.get("name"))
        arguments = function.get("arguments")
        text = "" if arguments is None else argument_text(arguments)
        if text:
            events += self._announce(call)
            call.pieces.append(text)
            if call.open:
                events += self._emitter.arguments(call.output_index, text)
        return events

    def _find(self, delta: dict[str, Any], function: dict[str, Any]) -> "_StreamedCall | None":
        """The call that a delta goes on with; servers leave out the index, or give 0 to all, and then a new id or name tells."""
        index, call_id = delta.get("index"), delta.get("id")
        same = [call for call in self._calls if index is None or call.index == index]
        if not same:
            return None
        last = same[-1]
        if call_id and last.call_id and call_id != last.call_id:
            return next((call for call in same if call.call_id == call_id), None)
        if not call_id and index is None and function.get("name") and last.pieces:
            return None  # neither index nor id, and a name again
        last.call_id = last.call_id or call_id
        return last

    def _settle(self, call: "_StreamedCall") -> list[Event]:
        """A new call has begun: one whose arguments are whole is over."""
        if not call.open or not call.whole:
            return []
        call.open = False
        return self._emitter.end_call(call.output_index)

    def _announce(self, call: "_StreamedCall") -> list[Event]:
        if call.output_index >= 0:
            return []
        call.output_index, events = self._emitter.call(unique_id(call.call_id, self._ids, self._taken), call.name)
        call.open = True
        return events

    def _keep(self, name: str, piece: str) -> None:
        self._raw.setdefault(name, []).append(piece)


class _StreamedCall:
    """A tool call as its deltas come in."""

    __slots__ = ("call_id", "index", "name", "open", "output_index", "pieces")

    def __init__(self, index: Any, call_id: Any) -> None:
        self.index = index
        self.call_id: str | None = call_id if isinstance(call_id, str) and call_id else None
        self.name = ""
        self.pieces: list[str] = []
        self.output_index = -1  # not announced yet: its name may still be growing
        self.open = False

    def name_more(self, piece: Any) -> None:
        """Servers give the name once, repeat it with each delta, or cut it in pieces; null in a later delta is no name."""
        if piece is not None and not isinstance(piece, str):
            piece = name_text(piece)
        if isinstance(piece, str) and piece and piece != self.name and self.output_index < 0:
            self.name += piece

    @property
    def whole(self) -> bool:
        try:
            return isinstance(strict_json.loads("".join(self.pieces)), dict)
        except strict_json.JSONError:
            return False

    def raw(self) -> dict[str, Any]:
        return {
            "id": self.call_id or "",
            "type": "function",
            "function": {"name": self.name, "arguments": "".join(self.pieces)},
        }
