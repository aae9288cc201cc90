"""How tests collect: a plan over rows that are given as objects, and what is on disk afterwards."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rollouts.collect import collect
from rollouts.plan import Plan, Reporter, Source, Stop
from rollouts.progress import Quiet
from rollouts.settings import RolloutsSettings
from rollouts.summary import Summary
from wire.client import Client

Row = dict[str, Any]


class Noted(Quiet):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.ticks: list[Any] = []
        self.told = asyncio.Event()
        self.reached = asyncio.Event()
        self.waited_for: int | None = None

    def started(self, tick: Any) -> None:
        self.ticks.append(tick)

    def ticked(self, tick: Any) -> None:
        self.ticks.append(tick)
        if self.waited_for is not None and tick.done >= self.waited_for:
            self.reached.set()

    async def until_done(self, rollouts: int) -> None:
        """Wait until so many have ended."""
        self.waited_for = rollouts
        if self.ticks[-1].done < rollouts:
            await self.reached.wait()

    def note(self, message: str) -> None:
        self.notes.append(message)
        self.told.set()


def row(number: int, **fields: Any) -> Row:
    """A row that is like no other."""
    return {"number": number, "responses_create_params": {"input": f"task {number}"}, **fields}


def write(path: Path, rows: Sequence[Any]) -> Path:
    """A data set."""
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def lines(path: Path) -> list[Row]:
    """The objects in a file; none if it is missing."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def keys(path: Path) -> list[tuple[int, int]]:
    """Identities in a file, sorted."""
    return sorted((each["task_index"], each["rollout_index"]) for each in lines(path))


class Runs:
    """Collects into one output again and again.

    Args:
        folder: Where the data set and the output are.
        url: Of the agent server.
    """

    def __init__(self, folder: Path, url: str) -> None:
        self.dataset, self.output = folder / "rows.jsonl", folder / "out.jsonl"
        self.failures, self.groups = folder / "out_failures.jsonl", folder / "out_groups.jsonl"
        self.url = url
        self.heard = self.next_heard = Noted()

    def plan(self, rows: Sequence[Any] | None = None, **settings: Any) -> Plan:
        """A plan over these rows, or over those that are there."""
        if rows is not None:
            write(self.dataset, rows)
        fresh = settings.pop("fresh", False)
        fingerprint = settings.pop("fingerprint", {"environment": "scripted"})
        stop_by = settings.pop("stop_by", None)
        sources = settings.pop("sources", None) or [Source("scripted", self.dataset, resources_server="agent_server")]
        chosen = RolloutsSettings.model_validate({"retry_wait_s": 0, "grace_s": 0, "timeout_s": 20, **settings})
        return Plan(sources, self.output, chosen, fingerprint, fresh=fresh, stop=Stop(), stop_by=stop_by)

    async def collect(self, rows: Sequence[Any] | None = None, **settings: Any) -> Summary:
        """Run such a plan to its end."""
        return await self.run(self.plan(rows, **settings))

    def rewrite(self, changed: Sequence[Row]) -> None:
        """Replace the rollouts that are there."""
        write(self.output, changed)

    async def run(self, plan: Plan, reporter: Reporter | None = None) -> Summary:
        """Run a plan to its end."""
        self.heard = self.next_heard
        self.next_heard = Noted()
        async with Client({"agent_server": self.url}) as client:
            plan.client = client
            return await collect(plan, reporter or self.heard)
