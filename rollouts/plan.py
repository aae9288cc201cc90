"""What one collection is: where rows come from, who plays them, where lines go, and what may change before a resume is refused."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rollouts.settings import RolloutsSettings
from rollouts.summary import Summary, Tick
from wire.client import Client


@dataclass(frozen=True)
class Source:
    """One environment's share of the run.

    Attributes:
        name: The environment's name, as lines, tables and `X=3` in `--mix` call it.
        dataset: Its rows, JSON lines; None: only rows of other sources that name it.
        repeats: Rollouts per task; None: the run's.
        limit: Only the first so many rows; None: the run's.
        weight: Its share of what is started, against the other sources, while each has something left.
        agent_server: Name of the agent server in the client's addresses.
        resources_server: Name of the environment's server in the client's addresses, where sessions of rollouts that are cancelled or
            timed out are closed; None: the agent server's own clean-up has to do.
        environment: Plug-in name or dotted path of the environment class whose Task checks the rows; None: a foreign server checks.
        names_itself: Send `environment` in rows that do not name one, since the agent server knows several.
    """

    name: str
    dataset: Path | None
    repeats: int | None = None
    limit: int | None = None
    weight: float = 1.0
    agent_server: str = "agent_server"
    resources_server: str | None = None
    environment: str | None = None
    names_itself: bool = False


class Stop:
    """How a signal handler ends a run: once to stop and clean up, twice to stop at once."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        """Nothing more is started; rollouts in flight are cancelled and their sessions closed."""
        self.at_once = asyncio.Event()
        """Sessions are not waited for."""

    def request(self) -> None:
        """Ask to stop; the second time, at once."""
        (self.at_once if self.asked.is_set() else self.asked).set()


class Reporter(Protocol):
    """Hears what happens during a run; `rollouts.progress` has those for people."""

    def started(self, tick: Tick) -> None:
        """The run begins; the tick holds what earlier runs have done."""

    def ticked(self, tick: Tick) -> None:
        """A rollout ended."""

    def note(self, message: str) -> None:
        """Something a person should know now: an agent server is down, a threshold is reached."""

    def finished(self, summary: Summary) -> None:
        """The run is over."""


@dataclass
class Plan:
    """Everything `collect` needs.

    Attributes:
        sources: At least one; several make one run with rows of all of them. With several, a row whose `environment` or
            `agent_ref.name` is the name of a source is played by that one, and a row that names something else is refused.
        output: The rollouts file.
        settings: The `rollouts` section.
        fingerprint: What makes lines comparable, by name, JSON values only: environment and its options, agent and `max_steps`, model,
            sampling. Nested objects are compared field by field, so that a refusal names the first difference.
        code: Environment -> digest of its class's source, for those whose code is its user's.
        fresh: Start anew: clear the files of an earlier run.
        client: Has the addresses of the sources' servers; needed by `collect`, not by `check_inputs`.
        on_verdict: Called for each rollout that ends with one: the servers are of use.
        stop: Ends the run early.
        stop_by: Unix time; nothing is started that cannot end by then, and what is still in flight is cancelled.
    """

    sources: Sequence[Source]
    output: Path
    settings: RolloutsSettings
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)
    fresh: bool = False
    client: Client | None = None
    on_verdict: Callable[[], None] = lambda: None
    stop: Stop = field(default_factory=Stop)
    stop_by: float | None = None
