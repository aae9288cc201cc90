"""The `resources_server` section of the config: which world, where, and its bounds."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from wire.config import Port


class SessionsSettings(BaseModel):
    """Where sessions live, for how long and how many."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    url: str = "memory"
    """`memory`, or a SQLAlchemy URL (`sqlite:///sessions.db`, `postgresql://user:password@host/name`): sessions that outlive the
    process and that several workers may share."""
    ttl_s: float = Field(3600.0, gt=0)
    """A session that nobody used for so long is closed; one with a call in progress is not."""
    max: int = Field(20_000, gt=0)
    """Open sessions; a seed beyond it is answered 503."""
    max_bytes: int = Field(4 * 2**30, gt=0)
    """Held for open sessions: rows, calls and remembered replies as they came; a seed beyond it is answered 503."""


class AugmentSettings(BaseModel):
    """What may befall a task, each with its chance: of each tool for those about tools, of each task for the other two."""

    model_config = ConfigDict(extra="forbid")

    seed: int = 0
    """Another one deals the same troubles to other tasks."""
    renamed: float = Field(0.0, ge=0, le=1)
    """A tool has another name."""
    missing: float = Field(0.0, ge=0, le=1)
    """A tool that the reference solution does without is not there; only in environments that have one."""
    failing: float = Field(0.0, ge=0, le=1)
    """A tool fails at its first call and at each fourth after it, and says that the same call will go through."""
    slow: float = Field(0.0, ge=0, le=1)
    """A tool takes `slow_s` longer."""
    slow_s: float = Field(1.0, ge=0, le=60)
    """Seconds."""
    wording: float = Field(0.0, ge=0, le=1)
    """A tool is described in other words."""
    disturbed: float = Field(0.0, ge=0, le=1)
    """The first state is another, where the environment has `disturb`."""
    absent: float = Field(0.0, ge=0, le=1)
    """A setting that the task needs is absent at first, where the environment has `withhold`."""


class ResourcesServerSettings(BaseModel):
    """The section `resources_server`."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    environment: str | None = None
    """A bundled one's name (`counter`) or `my_package.world:MyWorld`. Needed, unless `environments` names several."""
    options: dict[str, Any] = {}
    """What the environment's class takes as its `Options`."""
    host: str = "127.0.0.1"
    """Address to bind."""
    port: Port = 0
    """Port to bind; 0 is any free one."""
    url: str | None = None
    """Where others reach this server; by default host and port."""
    workers: int = Field(1, ge=1)
    """Processes that share the port; more than one needs `sessions.url` to be a database."""
    tool_timeout_s: float = Field(60.0, gt=0)
    """For one tool call; then `tool_timeout`."""
    verify_timeout_s: float = Field(120.0, gt=0)
    """For one verdict; then `verifier_timeout`."""
    verify_in_process: bool = False
    """Verify in processes of their own, so that a verdict that never ends can be stopped; costs a start per process."""
    verify_processes: int = Field(2, ge=1)
    """How many such processes at most."""
    seed_timeout_s: float = Field(60.0, gt=0)
    """For putting a world in its first state; then `session_seed_failed`."""
    max_output_bytes: int = Field(100_000, ge=200)
    """Of one tool's output; the rest is cut off, with a mark that says so."""
    threads: int = Field(32, ge=1)
    """For sync tools, seed and verify of environments that may block; as many may in addition be stuck past their time-out."""
    sessions: SessionsSettings = SessionsSettings()
    augment: AugmentSettings | None = None
    """Troubles for tasks; none by default."""
    solutions: bool = False
    """Serve `/solution`, each task's own reference solution; the `reference` backend sets it."""
