"""A stack that plays for a trainer: resources and agent servers as child processes, the model interface in this process.

It is a context manager for the background loop; what it plays is written down line by line, like any other collection.
"""

import asyncio
import importlib
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollouts import fingerprint, lines
from rollouts import token as tokens
from rollouts.attempt import Player, Timing
from rollouts.gate import Gate
from rollouts.journal import Journal
from rollouts.launcher import Running, launched
from rollouts.lines import Identity, Line
from rollouts.served import served
from rollouts.settings import RolloutsSettings
from rollouts.sources import fingerprint as facts
from rollouts.stack import MODEL, Stack
from rollouts.trainers.tasks import Tasks
from wire.app import App
from wire.client import Client

CONNECTIONS = 1024  # rollouts of one batch at once, about


@dataclass(frozen=True)
class Part:
    """One rollout that is asked for."""

    task: int
    sample: int  # among those of its task in this batch
    size: int  # of its group


class Stage:
    """Plays batches of rollouts; made by `staged`."""

    def __init__(self, stack: Stack, client: Client, journal: Journal, running: Running) -> None:
        self._settings = stack.config.section("rollouts", RolloutsSettings)
        self._client, self._journal, self._running = client, journal, running
        self._gate = Gate(client, "agent_server", self._settings.agent_wait_s, lambda _: None)
        self._run = fingerprint.Run(
            facts(stack), sorted(each.name for each in stack.environments), uuid.uuid4().hex[:12]
        )
        self.live = 0
        """Rollouts that have not ended."""

    def pids(self) -> dict[str, list[int]]:
        """Server name -> process ids of those that were started."""
        return self._running.pids

    async def play(self, tasks: Tasks, parts: Sequence[Part], version: str, mode: str = "") -> list[Line]:
        """The lines of a batch, in its order; failures that pass are tried again, and none is raised.

        Args:
            tasks: What `parts` count in.
            parts: What to play, all at once.
            version: Of the policy; lines of one group share it with their run id, so that no group spans two policies.
            mode: What else tells groups of one policy apart: `eval-`.
        """
        self.live += len(parts)
        async with asyncio.TaskGroup() as group:
            playing = [group.create_task(self._rollout(tasks, part, version, mode)) for part in parts]
        return [each.result() for each in playing]

    async def _rollout(self, tasks: Tasks, part: Part, version: str, mode: str) -> Line:
        try:
            for attempt in range(1, self._settings.attempts + 1):
                line = await self._attempt(tasks, part, (version, mode), attempt)
                if not lines.failed(line) or not lines.retryable(line):
                    break
            return line
        finally:
            self.live -= 1

    async def _attempt(self, tasks: Tasks, part: Part, policy: tuple[str, str], attempt: int) -> Line:
        version, mode = policy
        source, timing = tasks.rows.source(part.task), Timing()
        player = Player(self._client, source, self._gate, self._settings.timeout_s, self._settings.grace_s)
        line = await player.play(tasks.rows.read(part.task), timing)
        told = line.get("provenance") or {}
        line["provenance"] = {**told, "policy_version": told.get("policy_version") or version}
        identity = Identity(
            task_index=part.task,
            rollout_index=part.sample,
            attempt=attempt,
            group_size=part.size,
            environment=source.name,
            agent=source.agent_server,
            run_id=f"{self._run.run_id}-{mode}{version}",
            config_sha256=self._run.config_sha256,
            started_at=timing.started_at,
            duration_s=timing.seconds,
        )
        text = lines.stamp(line, identity)
        (self._journal.failure if lines.failed(line) else self._journal.rollout)(text)
        return line


@asynccontextmanager
async def staged(stack: Stack, policy: Any | None, output: Path) -> AsyncIterator[Stage]:
    """Servers that run until the block ends.

    Args:
        stack: What configs describe.
        policy: The model interface is served here, with the `trainer` backend and this; None: as the config says.
        output: The rollouts file; what it holds is kept.

    Raises:
        UsageError: the config is wrong, or the output cannot be written.
        StartFailed: a server did not come up.
    """
    token = tokens.for_stack(stack.config.auth)
    servers = [each for each in stack.servers() if policy is None or each.name != MODEL]
    async with AsyncExitStack() as held:
        journal = Journal(output)
        held.callback(journal.close)
        journal.begin(fresh=False)
        elsewhere = stack.elsewhere(servers) if policy is None else {}
        if policy is not None:
            elsewhere = {MODEL: await held.enter_async_context(served(MODEL, _model_interface(stack, policy, token)))}
        running = await held.enter_async_context(launched(servers, token=token, elsewhere=elsewhere))
        client = await held.enter_async_context(Client(running.urls, token=token, connections=CONNECTIONS))
        yield Stage(stack, client, journal, running)


def _model_interface(stack: Stack, policy: Any, token: str | None) -> App:
    """By name: the collector's package imports no server's modules."""
    room: Any = importlib.import_module("model_interface.app")
    settings: Any = importlib.import_module("model_interface.settings")
    section = stack.config.section(MODEL, settings.ModelInterfaceSettings)
    own = {"backend": "trainer", "options": {"policy": policy}, "model": policy.name, "token_ids": "required"}
    app: App = room.model_interface(section.model_copy(update=own), token=token)
    return app


def with_output(stack: Stack, output: Path | None) -> Path:
    """Where the lines of a training go."""
    named = stack.section("rollouts").get("output")
    return output or Path(str(named or f"results/{Path(stack.config.source).stem}-training.jsonl"))
