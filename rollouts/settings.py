"""The `rollouts` section of a config: what is collected, how much at once, and when to give up."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Choice = Literal["keep", "mark", "drop"]


class GroupSettings(BaseModel):
    """What becomes of the repeats of one task, taken together."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    policy: Literal["strict", "partial", "refill", "hedge"] = "strict"
    """strict: a group counts when every member is valid. partial: with at least `min_valid` of them. refill: a member that failed for
    good is replaced by another sample. hedge: `extra` samples more are started; the first `repeats` that end count, the rest are
    cancelled."""
    min_valid: int = Field(default=2, ge=1, le=1000)
    """partial: fewest valid members of a group that counts; never more than `repeats` is asked for."""
    extra: int = Field(default=1, ge=1, le=100)
    """hedge: samples started beside the `repeats`. refill: most replacements in one group."""
    over_long: Choice = "keep"
    """Members cut off by the token limit or the context window. mark: named in the group's record. drop: they do not count."""
    equal_reward: Choice = "keep"
    """Groups whose valid members all have the same reward. mark: named in the group's record. drop: nobody in it counts."""
    stale: Choice = "keep"
    """Groups with a member more than `max_policy_lag` policy versions behind the group's newest. mark or drop, as above."""
    max_policy_lag: int = Field(default=1, ge=0, le=1_000_000)
    """Policy versions; only where they are whole numbers."""


class RolloutsSettings(BaseModel):
    """Rows in, scored lines out."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    dataset: str | None = None
    """Path of the rows, JSON lines."""
    output: str | None = None
    """Path of the rollouts file; `<stem>_failures.jsonl`, `<stem>_groups.jsonl` and `<stem>_run.json` stand beside it."""
    repeats: int = Field(default=1, ge=1, le=10_000)
    """Rollouts of each task: the size of its group."""
    limit: int | None = Field(default=None, ge=1)
    """Only the first so many rows are read; lines after them are not looked at."""
    concurrency: int = Field(default=16, ge=1, le=100_000)
    """Rollouts in flight, exactly, while there are so many left."""
    order: Literal["task", "repeat"] = "task"
    """task: all repeats of a task one after the other, so that groups finish early. repeat: every task once, then again."""
    longest_first: bool = True
    """Start the tasks first that took longest in the lines that the output already holds, or in `earlier`."""
    earlier: str | None = None
    """Path of another run's rollouts file over the same rows, to learn from it which tasks take long."""
    timeout_s: float = Field(default=600.0, gt=0, le=604_800)
    """Seconds for one rollout, handed down from hop to hop."""
    grace_s: float = Field(default=15.0, ge=0, le=3600)
    """Seconds past `timeout_s` in which the agent server may still answer (score, close); then the watchdog ends the rollout."""
    attempts: int = Field(default=3, ge=1, le=100)
    """Tries of a rollout as a whole, each in a new session, earlier runs included; only for causes that pass."""
    retry_wait_s: float = Field(default=1.0, ge=0, le=600)
    """Before the second attempt; doubles with each, with jitter; other rollouts use the slot meanwhile."""
    retry_permanent: bool = False
    """A resumed run also tries rollouts again whose cause was permanent: the verifier was mended, the model accepts the request now."""
    agent_wait_s: float = Field(default=15.0, ge=0, le=3600)
    """For an agent server that refuses connections to come back; then everything left fails at once."""
    max_failures: int | None = Field(default=None, ge=0)
    """Stop after so many failed rollouts (0 as 1); what is in flight is finished and written."""
    max_filtered_share: float = Field(default=0.5, ge=0, le=1)
    """Of the last 200 attempts (4 x concurrency, where that is more), at most this share is thrown away and run again; beyond it
    failures are masked instead."""
    max_failure_share: float = Field(default=0.9, gt=0, le=1)
    """Of as many attempts; when more of them failed, the run stops and says why."""
    groups: GroupSettings = GroupSettings()
