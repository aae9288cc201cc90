"""Which rollouts there are and how each stands: a few bytes per rollout, whatever the size of its lines.

A rollout's identity is assigned: (task, sample). Samples below a task's group size are its repeats; those above are extra ones that a
group policy may start.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from wire.errors import KINDS

NEW, OK, WAITING, SPENT, PERMANENT = range(5)
"""Never ended; has a verdict; failed and may be tried again; failed and will not be tried again in this run, for want of attempts; failed
for a cause that does not pass."""

OVER_LONG, MASKED = 1, 2
"""Of a rollout with a verdict: it was cut off for its length; its environment wants it left out of every mean."""
SERVER_LOST = 4
"""Of a failed one: a server of ours died under its last attempt, by its own doing or that of another that was there."""

_KIND_NAMES = (*KINDS, "other")
MOST_ATTEMPTS = 255  # counted; a byte


@dataclass(frozen=True, slots=True)
class Counts:
    """The rollouts of one group, or of many, as the sum rollouts + failures + not run = tasks x repeats counts them."""

    ok: int = 0
    failed: int = 0
    missing: int = 0
    extra: int = 0  # ended beyond what was asked for: hedged, or replaced members; apart from the sum

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.ok + other.ok, self.failed + other.failed, self.missing + other.missing, self.extra + other.extra
        )

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(
            self.ok - other.ok, self.failed - other.failed, self.missing - other.missing, self.extra - other.extra
        )

    @property
    def total(self) -> int:
        """Tasks x repeats."""
        return self.ok + self.failed + self.missing


class Keys:
    """State, attempts, last failure kind and reward of every rollout of a run.

    Args:
        tasks: Task indices are below this.
        samples: Sample indices are below this: the largest group size and the extra samples.
        rewards: Keep each reward as well, for records of groups.
        versions: Keep each policy version as well, where it is a whole number.
    """

    def __init__(self, tasks: int, samples: int, *, rewards: bool, versions: bool = False) -> None:
        self.tasks, self.samples = tasks, samples
        self._state = bytearray(tasks * samples)
        self._attempts = bytearray(tasks * samples)
        self._kind = bytearray(tasks * samples)
        self._flags = bytearray(tasks * samples)
        self._rewards = array("d", bytes(8 * tasks * samples if rewards else 0))
        self._versions = array("q", bytes(8 * tasks * samples if versions else 0))

    def __contains__(self, key: tuple[int, int]) -> bool:
        return 0 <= key[0] < self.tasks and 0 <= key[1] < self.samples

    @property
    def untouched(self) -> bool:
        """Whether no rollout has ended yet."""
        return self._state.count(NEW) == len(self._state)

    def state(self, task: int, sample: int) -> int:
        """One of the five states."""
        return self._state[task * self.samples + sample]

    def attempts(self, task: int, sample: int) -> int:
        """How many attempts failed."""
        return self._attempts[task * self.samples + sample]

    def reward(self, task: int, sample: int) -> float:
        """Of a rollout with a verdict; only where rewards are kept."""
        return self._rewards[task * self.samples + sample]

    def flags(self, task: int, sample: int) -> int:
        """`OVER_LONG`, `MASKED`, or `SERVER_LOST`."""
        return self._flags[task * self.samples + sample]

    def kind(self, task: int, sample: int) -> str:
        """Failure kind of the last failed attempt."""
        return _KIND_NAMES[self._kind[task * self.samples + sample]]

    def version_spread(self, task: int, samples: Iterable[int]) -> int:
        """How many policy versions lie between the oldest and the newest of these samples; 0 where versions are not kept."""
        known = [self._versions[task * self.samples + sample] for sample in samples] if self._versions else []
        return max(known) - min(known) if known and min(known) >= 0 else 0

    def succeed(self, task: int, sample: int, reward: float, flags: int = 0, version: int | None = None) -> None:
        """It has a verdict: for good."""
        at = task * self.samples + sample
        self._state[at] = OK
        self._flags[at] = flags
        if self._rewards:
            self._rewards[at] = reward
        if self._versions:
            self._versions[at] = -1 if version is None else version

    def fail(self, task: int, sample: int, kind: str, state: int, flags: int = 0) -> None:
        """Another attempt failed; a verdict that is there already stays."""
        at = task * self.samples + sample
        self._attempts[at] = min(MOST_ATTEMPTS, self._attempts[at] + 1)
        if self._state[at] != OK:
            self._state[at], self._flags[at] = state, flags
            self._kind[at] = _KIND_NAMES.index(kind) if kind in KINDS else len(KINDS)

    def settle(self, attempts: int, *, retry_permanent: bool) -> None:
        """Decide, at the start of a run, which failed rollouts have another attempt left."""
        for at, state in enumerate(self._state):
            if state in (WAITING, SPENT, PERMANENT):
                if state == PERMANENT and not retry_permanent:
                    continue
                self._state[at] = SPENT if self._attempts[at] >= attempts else WAITING

    def group(self, task: int) -> bytes:
        """The states of a task's samples, one byte each."""
        return bytes(self._state[task * self.samples : (task + 1) * self.samples])

    def counts(self, task: int, size: int, extra: int, *, over: bool = True) -> Counts:
        """How a group of `size`, for which `extra` samples more may stand in, has come out.

        What failed and may be tried again counts as failed when the run is `over`, as missing before.
        """
        states = self.group(task)[: size + extra]
        valid, new = states.count(OK), states.count(NEW) + (0 if over else states.count(WAITING))
        failed = len(states) - valid - new
        ok = min(valid, size)
        counted = min(failed, size - ok)
        return Counts(ok, counted, size - ok - counted, valid - ok + failed - counted)

    def failed_kinds(self, task: int, samples: int) -> Iterator[str]:
        """The last failure kind of each of the first samples that failed and has no verdict."""
        for sample, state in enumerate(self.group(task)[:samples]):
            if state in (WAITING, SPENT, PERMANENT):
                yield self.kind(task, sample)
