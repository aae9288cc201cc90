"""One episode: its record as it happens, and what is left of it at the end."""

from dataclasses import dataclass
from typing import Any

from wire.responses import Item, add_usage

OURS = "trivium"  # the key under which the model interface tells what the Responses API has no field for


@dataclass(frozen=True)
class Episode:
    """What was played: everything that a verdict or a trainer needs."""

    response: dict[str, Any]
    """One Responses object: all items of the episode in order, usage summed, the status of the last model call."""
    steps: list[dict[str, Any]]
    """One per model call: {started_at, model_s, tool_s, usage, tokens, calls: [{name, s, status}]}."""
    outcome: str
    """One of `wire.rollout.OUTCOMES`."""


class Transcript:
    """Grows by one entry per model call and one per tool call; nothing in it is ever rewritten."""

    __slots__ = ("_echo", "_usage", "ends", "items", "last", "model", "steps")

    def __init__(self) -> None:
        self.items: list[Item] = []
        """Every item of the episode, the model's own as it made them."""
        self.steps: list[dict[str, Any]] = []
        """As in the rollout line."""
        self.ends: list[int | None] = []
        """Per step, the index in `items` of the last item that the model made in it; None where it made none."""
        self.model: dict[str, Any] = {}
        """Who answered last: model, backend, policy_version, as far as the model interface says."""
        self.last: dict[str, Any] = {}
        """The last model call's Responses object, with the items of that call alone."""
        self._echo: dict[str, Any] = {}  # the first reply: it alone repeats the request's parameters, tools among them
        self._usage: dict[str, Any] | None = None

    def add_reply(self, reply: dict[str, Any], started_at: float, model_s: float) -> list[Item]:
        """Record one model call; returns the items that it made."""
        told = reply.pop(OURS, None)
        told = told if isinstance(told, dict) else {}
        made: list[Item] = reply["output"]
        self.items += made
        self.ends.append(len(self.items) - 1 if made else None)
        usage = reply.get("usage") if isinstance(reply.get("usage"), dict) else None
        self._usage = add_usage(self._usage, usage)
        self.last = reply
        self._echo = self._echo or reply
        self.model = {key: told.get(key) for key in ("model", "backend", "policy_version")}
        self.model["model"] = self.model["model"] or reply.get("model")
        self.steps.append(
            {
                "started_at": started_at,
                "model_s": model_s,
                "tool_s": 0.0,
                "usage": usage,
                "tokens": told.get("tokens"),
                "calls": [],
            }
        )
        return made

    def add_call(self, name: Any, seconds: float, status: str) -> dict[str, Any]:
        """Record one tool call of the last step."""
        call = {"name": name, "s": seconds, "status": status}
        self.steps[-1]["calls"].append(call)
        return call

    def response(self) -> dict[str, Any]:
        """One Responses object for the whole episode: the last reply with all items and the sum of usage."""
        empty = {"object": "response", "status": "incomplete", "incomplete_details": None}
        merged = {**self._echo, **(self.last or empty), "output": self.items, "usage": self._usage}
        merged.pop("previous_response_id", None)
        return merged

    def episode(self, outcome: str) -> Episode:
        """The episode as recorded so far, with its outcome."""
        return Episode(self.response(), self.steps, outcome)
