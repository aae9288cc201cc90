"""Token ids and log-probabilities of a conversation: the thread so far, what a step adds to it, and how faithful that is.

`exact`: this step's prompt begins with the previous step's prompt and generation, id for id, as the server itself says. `forked`: the
history was rewritten, a new segment starts. `retokenized`: the ids were made again from text, so that they may differ from what was
sampled. No ids at all is `absent`, which is said by there being no `Tokens`.
"""

from array import array
from dataclasses import dataclass
from typing import Any, Literal

from wire import strict_json

Fidelity = Literal["exact", "forked", "retokenized"]
ID_BYTES = 14  # an id as eight bytes and as JSON text, about

IDS = "Q"  # of an array: whole numbers from 0, 8 bytes each, where a list takes 36

_IN_IDS, _IN_NUMBERS = b"0123456789,", b"0123456789,.-+eE"  # of their JSON text


@dataclass(slots=True)
class Tokens:
    """The ids of one step; the three lists are all there, the last two equally long and finite."""

    prompt_token_ids: list[int]
    """`exact` after the first step: only the ids after the previous step's; else the whole prompt."""
    generation_token_ids: list[int]
    generation_log_probs: list[float]  # natural log, one per generated token
    fidelity: Fidelity
    ids: "array[int]"
    """Those of the prompt and of the generation, for the thread that they go on."""
    texts: tuple[bytes, bytes, bytes]
    """The three lists as JSON without the brackets."""

    @property
    def text(self) -> bytes:
        """The JSON object of the wire and of a line's step."""
        form = b'{"prompt_token_ids":[%b],"generation_token_ids":[%b],"generation_log_probs":[%b],"fidelity":"%b"}'
        return form % (*self.texts, self.fidelity.encode())


class Thread:
    """All ids of a conversation in order: prompt and generation of each step, as ids and as their JSON text.

    The text is kept in pieces, so that a server that takes tokens is sent them by joining, and one that gives the whole prompt back is
    checked by comparing bytes: a step's cost does not grow with the episode.
    """

    __slots__ = ("_ids", "ended", "key", "text")

    def __init__(self) -> None:
        self.key = object()
        """Tells this thread from one that was started anew; a step remembers to which it belongs."""
        self._ids = array(IDS)
        self.text: list[bytes] = []
        """`1,2,`, `3,`, …: joined, the ids as JSON without the brackets, and a comma at the end."""
        self.ended = True
        """Whether the last generation ended with the model's own end of turn, rather than where the server stopped it."""

    @property
    def length(self) -> int:
        """How many ids there are."""
        return len(self._ids)

    @property
    def ids(self) -> list[int]:
        """All of them, made anew: not on the path of a step."""
        return self._ids.tolist()

    @property
    def end(self) -> int | None:
        """The id that ended the model's turn; None where the server ended it."""
        return self._ids[-1] if self._ids and self.ended else None

    def add(self, tokens: Tokens, *, ended: bool = True) -> None:
        """Append the ids of a step, whose generation ended as `ended` says."""
        self.ended = ended
        self._ids += tokens.ids
        put(b"".join([each + b"," for each in tokens.texts[:2] if each]), self.text)

    def end_in(self, raw: bytes, start: int) -> int | None:
        """Where the ids' text, with a comma behind it, ends in `raw` if it stands at `start`; None if it does not."""
        for piece in self.text:
            if not raw.startswith(piece, start):
                return None
            start += len(piece)
        return start

    def cut(self, length: int) -> "Thread":
        """A new thread with the first `length` ids."""
        thread = Thread()
        thread._ids, thread.ended = self._ids[:length], self.ended
        if thread._ids:
            thread.text.append(ids_text(thread.ids))
        return thread


def put(piece: bytes, text: list[bytes]) -> None:
    """Add to a text that grows in pieces. Each is longer than the next: so they are few, and a byte is seldom copied."""
    start, size = len(text), len(piece)
    while start and len(text[start - 1]) <= size:
        start -= 1
        size += len(text[start])
    text[start:] = [b"".join((*text[start:], piece))]


def ids_text(ids: list[int]) -> bytes:
    """`1,2,3,`."""
    return strict_json.dumps(ids)[1:-1] + b","


def read_steps(steps: Any) -> Thread | None:
    """The thread of a conversation that is sent again with the ids of its steps, or None where they do not make a whole.

    A step without ids breaks the thread; one that is not `exact` starts it anew with its whole prompt.
    """
    if not isinstance(steps, list) or not steps:
        return None
    thread: Thread | None = None
    for number, step in enumerate(steps):
        tokens = read_tokens(step)
        if tokens is None:
            thread = None
            continue
        if number == 0 or tokens.fidelity != "exact":
            thread = Thread()
        if thread is not None:
            thread.add(tokens)
    return thread


def read_tokens(value: Any) -> Tokens | None:
    """A step's ids as the wire has them, or None where anything about them is wrong."""
    if not isinstance(value, dict) or value.get("fidelity") not in ("exact", "forked", "retokenized"):
        return None
    lists = [value.get(name) for name in ("prompt_token_ids", "generation_token_ids", "generation_log_probs")]
    return checked(*lists, fidelity=value["fidelity"])


def checked(prompt: Any, generation: Any, log_probs: Any, *, fidelity: Fidelity) -> Tokens | None:
    """`Tokens`, or None unless all three lists are there, the last two equally long, all ids whole and all log-probs finite."""
    if not (isinstance(prompt, list) and isinstance(generation, list) and isinstance(log_probs, list)):
        return None
    if len(generation) != len(log_probs):
        return None
    try:
        ids = array(IDS, prompt)
        ids.fromlist(generation)
        array("d", log_probs)  # a whole number may be too large for any float
        # trusted: what is written for NaN and infinities is found below, as are true and false
        text = strict_json.dumps((prompt, generation, log_probs), trusted=True)
        new, made, chances = text[2:-2].split(b"],[")
    except (TypeError, ValueError, OverflowError):
        return None
    if (new + made).translate(None, _IN_IDS) or chances.translate(None, _IN_NUMBERS):
        return None
    return Tokens(prompt, generation, log_probs, fidelity, ids, (new, made, chances))
