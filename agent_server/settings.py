"""The `agent_server` section of a config."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from wire.config import Port


class AgentServerSettings(BaseModel):
    """Who plays, and the bounds of one rollout."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    agent: str = "tool_loop"
    """A module of `agent_server.agents`, or `my_package.module:Class`."""
    options: dict[str, Any] = {}
    """For the agent itself; each agent documents its own."""
    max_steps: int = Field(20, ge=1)
    """Model calls per rollout; the calls asked for by the last one are still run."""
    timeout_s: float = Field(600.0, gt=0)
    """Budget of a rollout whose caller names none in `X-Budget-S`; also the most that a caller may ask for."""
    token_ids: Literal["steps", "items"] = "steps"
    """`steps`: each step of the line holds the ids that it adds. `items`: the three token fields, whole prompt included, on the last
    output item of each model call, as NeMo Gym and NeMo RL read them."""
    max_rollouts: int = Field(4096, ge=1)
    """Rollouts in flight per process; one more is answered 503."""
    host: str = "127.0.0.1"
    """Where the server binds."""
    port: Port = 0
    """Where the server binds; 0 takes any free port."""
    url: str | None = None
    """Where others reach the server; by default host and port."""
    workers: int = Field(1, ge=1, le=64)
    """Processes; the agent server holds no state between requests except open agent sessions."""
