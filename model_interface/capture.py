"""The record of each rollout's calls under `/rollouts/<id>/v1/…`: items, tokens, usage and times; and what a retry is answered from.

A program that knows nothing of us sends its whole history with every call. A call that begins with what an earlier one of the same rollout
said and was answered is taken as its continuation, so that its token ids go on exactly and the record grows by what is new.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from model_interface.settings import CaptureBounds
from wire import strict_json
from wire.errors import Gone, NotFound, Overloaded, UsageError
from wire.responses import Item, message_text

JSON = dict[str, Any]
PROMPT = ("instructions", "tools")  # parameters that are part of what the model reads
LONGEST_ID = 200


@dataclass(slots=True)
class Record:
    """One rollout's calls."""

    rollout_id: str
    calls: list[JSON] = field(default_factory=list)
    failures: list[JSON] = field(default_factory=list)
    closed: bool = False
    answers: dict[bytes, "asyncio.Future[JSON]"] = field(default_factory=dict)
    """Digest of a request to its Responses object, come or still to come."""
    tips: dict[bytes, str] = field(default_factory=dict)
    """Digest of everything said up to an answer, and that answer's id."""
    size: int = 0
    used_at: float = 0.0

    def json(self) -> JSON:
        """What `GET /rollouts/<id>` answers."""
        return {"rollout_id": self.rollout_id, "closed": self.closed, "calls": self.calls, "failures": self.failures}

    def continued(self, body: JSON) -> JSON:
        """The request as the continuation of the call that it goes on from; itself where it begins anew.

        Args:
            body: A Responses request; its `input` is a list of items.
        """
        if body.get("previous_response_id") is not None:
            return body
        items, found, at = body["input"], None, 0
        for index, digest in enumerate(_chain(body, items), 1):
            if digest in self.tips:
                found, at = self.tips[digest], index
        if found is None or at == len(items):
            return body
        return {**body, "previous_response_id": found, "input": items[at:]}

    def note_answer(self, body: JSON, response: JSON) -> None:
        """Remember what was said up to this answer. `body` is the whole request, before `continued`."""
        for digest in _chain(body, [*body["input"], *response["output"]]):
            last = digest
        if body["input"] or response["output"]:
            self.tips[last] = response["id"]

    def add(self, asked: JSON, response: JSON, *, started_at: float, seconds: float, dialect: str) -> int:
        """Write a call down; how many bytes it takes, about.

        Args:
            asked: The request as it was put to the backend: a continuation has only what is new.
            response: The Responses object.
        """
        own = response.get("trivium") or {}
        request = asked
        if asked.get("previous_response_id") is not None:
            request = {name: asked[name] for name in ("previous_response_id", "input")}
        call = {
            "request": request,
            "response": response,
            "tokens": own.get("tokens"),
            "usage": response.get("usage"),
            "started_at": started_at,
            "s": seconds,
            "dialect": dialect,
        }
        self.calls.append(call)
        return len(strict_json.dumps(call))


class Captures:
    """The records held: bounded in number, bytes and age; closed ones leave first."""

    def __init__(self, bounds: CaptureBounds) -> None:
        self._bounds = bounds
        self._records: OrderedDict[str, Record] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._records)

    def open(self, rollout_id: str) -> Record:
        """The record to add a call to.

        Raises:
            Gone: the rollout is closed.
            Overloaded: it has made more calls than a rollout may.
        """
        record = self._at(rollout_id)
        if record.closed:
            raise Gone(f"rollout {rollout_id} is closed; it takes no more calls")
        if len(record.calls) >= self._bounds.max_calls:
            raise Overloaded(f"rollout {rollout_id} has made {len(record.calls)} calls, which is the limit")
        return record

    def get(self, rollout_id: str) -> Record:
        """A record to read.

        Raises:
            NotFound: nothing was recorded, or it has been dropped.
        """
        record = self._records.get(rollout_id)
        if record is None:
            raise NotFound(f"nothing is recorded for rollout {rollout_id}")
        return record

    def close(self, rollout_id: str) -> Record:
        """Take no more calls for a rollout; one that never called is closed too."""
        record = self._at(rollout_id)
        record.closed = True
        record.answers.clear()
        record.tips.clear()
        return record

    def grew(self, record: Record, size: int) -> None:
        """A record has grown by so many bytes: keep within the bounds."""
        record.size += size
        if record.rollout_id in self._records:
            self.bytes += size
        self._bound(record)

    def _at(self, rollout_id: str) -> Record:
        if not 0 < len(rollout_id) <= LONGEST_ID:
            raise UsageError(f"a rollout's id has 1 to {LONGEST_ID} characters")
        now = time.monotonic()
        self._expire(now)
        record = self._records.get(rollout_id)
        if record is None:
            record = self._records[rollout_id] = Record(rollout_id)
            self._bound(record)
        record.used_at = now
        self._records.move_to_end(rollout_id)
        return record

    def _expire(self, now: float) -> None:
        while self._records:
            oldest = next(iter(self._records.values()))
            if oldest.used_at >= now - self._bounds.ttl_s:
                return
            self._drop(oldest)

    def _bound(self, newest: Record) -> None:
        while len(self._records) > self._bounds.max or self.bytes > self._bounds.max_bytes:
            others = (each for each in self._records.values() if each is not newest)
            oldest = next(others, None)
            if oldest is None:
                return
            closed = next((each for each in self._records.values() if each.closed and each is not newest), oldest)
            self._drop(closed)

    def _drop(self, record: Record) -> None:
        del self._records[record.rollout_id]
        self.bytes -= record.size


def request_digest(path: str, body: bytes) -> bytes:
    """What two sendings of one request have in common."""
    return hashlib.sha256(path.encode() + b"\0" + body).digest()


def _chain(body: JSON, items: list[Item]) -> list[bytes]:
    """A digest for each beginning of the items; equal where the same was said, whatever ids and thoughts came along."""
    state = hashlib.sha256(strict_json.dumps({name: body.get(name) for name in PROMPT}))
    digests = []
    for item in items:
        said = _said(item)
        if said is not None:
            state.update(strict_json.dumps(said))
        digests.append(state.digest())
    return digests


def _said(item: Item) -> list[Any] | None:
    kind = item.get("type", "message")
    if kind == "message":
        content = item.get("content")
        plain = isinstance(content, str) or all("text" in part for part in content or ())
        return [item.get("role"), message_text(item) if plain else content]
    if kind == "function_call":
        return [item.get("call_id"), item.get("name"), item.get("arguments")]
    if kind == "function_call_output":
        return [item.get("call_id"), item.get("output")]
    return None if kind == "reasoning" else [item]
