"""Which rollout is started next: in the order asked for, sources mixed by weight, failed ones again after a wait.

Nothing here waits or starts anything; the collector asks whenever a slot is free.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, isqrt

from rollouts.keys import NEW, OK, PERMANENT, SERVER_LOST, SPENT, WAITING, Keys
from rollouts.settings import GroupSettings

Key = tuple[int, int]
"""(task, sample)."""

LATEST_S = 60.0  # for which what is new goes before those under which a server died

_LEAST_WEIGHT = 1e-9  # a source of weight 0 starts when the others have nothing left


@dataclass
class Part:
    """What one source gives to the schedule."""

    tasks: Sequence[int]
    size: int  # rollouts per task
    weight: float = 1.0
    taken: int = 0


class Schedule:
    """The rollouts that are still to be started.

    Args:
        keys: How each stands.
        parts: Of every source.
        part_of: The part that a task belongs to.
        groups: Policy, and how many extra samples it may start.
        attempts: Tries that each rollout has.
        by_task: All samples of a task one after the other; else every task once before any twice.
    """

    def __init__(
        self,
        keys: Keys,
        parts: Sequence[Part],
        part_of: Callable[[int], int],
        groups: GroupSettings,
        *,
        attempts: int,
        by_task: bool = True,
    ) -> None:
        self._keys, self._parts, self._part_of, self._groups = keys, parts, part_of, groups
        self._attempts, self._by_task = attempts, by_task
        self._feeds = {index: self._feed(part) for index, part in enumerate(parts)}
        self._later: list[tuple[float, int, Key]] = []
        self._order = 0
        self._apart = _Apart()
        self._alone: deque[Key] = deque()  # last attempts of suspects: after all others, one at a time
        self._is_alone = False  # one of those is in flight
        self._out = 0  # taken and not ended
        self._replaced: dict[int, int] = {}  # task -> extra samples that were called for; only where some were

    def size(self, task: int) -> int:
        """Rollouts of the task that were asked for."""
        return self._parts[self._part_of(task)].size

    @property
    def extra(self) -> int:
        """Samples that a group may have beyond its size."""
        return extra_samples(self._groups)

    def take(self, now: float, fits: Callable[[int], bool] = lambda _: True) -> Key | None:
        """The next rollout to start; None when there is none at this moment.

        Args:
            now: Seconds on the clock of `again`.
            fits: Whether a task can end in time; one that cannot is not asked about again.
        """
        if self._is_alone:
            return None
        key = self._next(now, fits)
        if key is None and not self._out and not self._later and not self._apart:
            key = self._next_alone(fits)
        self._out += key is not None
        return key

    def _next(self, now: float, fits: Callable[[int], bool]) -> Key | None:
        if self._apart.since < now - LATEST_S and (key := self._next_apart(fits)) is not None:
            return key
        while self._later and self._later[0][0] <= now:
            key = heapq.heappop(self._later)[2]
            if self._open(key) and fits(key[0]) and self._may_start(key, now):
                return key
        while self._feeds:
            index = min(
                self._feeds,
                key=lambda each: (self._parts[each].taken + 1) / max(self._parts[each].weight, _LEAST_WEIGHT),
            )
            for key in self._feeds[index]:
                if self._open(key) and fits(key[0]) and self._may_start(key, now):
                    self._parts[index].taken += 1
                    return key
            del self._feeds[index]
        if self._later and self._later[0][0] <= now:  # called for while the feeds ran out
            return self._next(now, fits)
        return self._next_apart(fits)

    def _next_apart(self, fits: Callable[[int], bool]) -> Key | None:
        while self._apart.free:
            key = self._apart.next()
            if self._open(key) and fits(key[0]):
                return self._apart.enter(key)
        return None

    def again(self, key: Key, at: float) -> None:
        """Give the rollout out again, not before `at`."""
        self._order += 1
        heapq.heappush(self._later, (at, self._order, key))

    def ended(self, key: Key) -> None:
        """A rollout that was taken is not in flight any more, whatever came of it."""
        self._out -= 1
        self._is_alone = False
        self._apart.leave(key, survived=not self._lost(key))

    def next_at(self) -> float | None:
        """When the next rollout that waits may start; None when none waits."""
        return self._later[0][0] if self._later and not self._is_alone else None

    def replace(self, task: int) -> None:
        """Call for extra samples in place of members that failed for good, where the policy is to refill."""
        if self._groups.policy != "refill":
            return
        states = self._keys.group(task)[: self.size(task) + self.extra]
        used = self._used(task, states)
        wanted = min(self.extra, states.count(SPENT) + states.count(PERMANENT))
        for sample in range(used, wanted):
            self.again((task, self.size(task) + sample), 0.0)
        if wanted > used:
            self._replaced[task] = wanted

    def closed(self, task: int) -> bool:
        """Whether nothing more of a group will be run."""
        size = self.size(task)
        states = self._keys.group(task)[: size + self.extra]
        if states.count(OK) >= size:
            return True
        if self._groups.policy == "refill":
            used = self._used(task, states)
            if min(self.extra, states.count(SPENT) + states.count(PERMANENT)) > used:
                return False
            states = states[: size + used]
        return NEW not in states and WAITING not in states

    def _used(self, task: int, states: bytes) -> int:
        """Extra samples called for so far, earlier runs included; they are numbered from the group's size up."""
        size = self.size(task)
        started = [at + 1 - size for at in range(size, len(states)) if states[at] != NEW]
        return max(self._replaced.get(task, 0), *started, 0)

    def _next_alone(self, fits: Callable[[int], bool]) -> Key | None:
        while self._alone:
            key = self._alone.popleft()
            if self._open(key) and fits(key[0]):
                self._is_alone = True
                return key
        return None

    def _may_start(self, key: Key, now: float) -> bool:
        """Whether a rollout starts now; one that may have killed a server waits until it does little harm, and then none.

        When a server dies again under its last attempt, it fails for good: nothing else is in flight then, so it is its own doing.
        """
        if not self._lost(key):
            return True
        if self._keys.attempts(*key) + 1 >= self._attempts:
            self._alone.append(key)
            return False
        self._apart.wait(key, now)
        return False

    def _lost(self, key: Key) -> bool:
        return self._keys.state(*key) in (WAITING, SPENT) and self._keys.flags(*key) == SERVER_LOST

    def _open(self, key: Key) -> bool:
        """Whether a rollout still has to be run: it has not ended for good, and its group has not enough."""
        states = self._keys.group(key[0])
        size = self.size(key[0])
        return states[key[1]] in (NEW, WAITING) and states[: size + self.extra].count(OK) < size

    def _feed(self, part: Part) -> Iterator[Key]:
        hedged = self.extra if self._groups.policy == "hedge" else 0
        if self._by_task:
            for task in part.tasks:
                for sample in range(part.size + hedged):
                    yield task, sample
                yield from self._left_extras(task, part.size)
        else:
            for sample in range(part.size + hedged):
                for task in part.tasks:
                    yield task, sample
            for task in part.tasks:
                yield from self._left_extras(task, part.size)

    def _left_extras(self, task: int, size: int) -> Iterator[Key]:
        """Replacements that an earlier run did not get to."""
        if self._groups.policy == "refill":
            for sample in range(size, size + self.extra):
                if self._keys.state(task, sample) == WAITING and self._replaced.get(task, 0) <= sample - size:
                    yield task, sample
            self.replace(task)


class _Apart:
    """Rollouts under which a server died and that have attempts to spare: one of them may be what kills it.

    What is new goes first, for a while: it loses nothing by them then, and shows that the server is of use.
    They run a few at a time, so that it takes few of the others along to their last attempt, where each runs alone. With n of them, batches
    of about the square root of n take the fewest rounds of both kinds together; where they end well there is room for twice as many.
    """

    def __init__(self) -> None:
        self._waiting: deque[Key] = deque()
        self._in_flight: set[Key] = set()
        self._few = self._room = 0
        self.since = inf  # when the first of those that wait came

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def free(self) -> bool:
        """Whether the next one may start."""
        return bool(self._waiting) and len(self._in_flight) < self._room

    def wait(self, key: Key, now: float) -> None:
        """One more."""
        self.since = min(self.since, now)
        self._waiting.append(key)
        self._few = max(self._few, isqrt(self._together))
        self._room = max(self._room, self._few)

    def next(self) -> Key:
        """The one that has waited longest."""
        key = self._waiting.popleft()
        if not self._waiting:
            self.since = inf
        return key

    def enter(self, key: Key) -> Key:
        """It starts."""
        self._in_flight.add(key)
        return key

    def leave(self, key: Key, *, survived: bool) -> None:
        """It has ended, if it was one of these."""
        if key in self._in_flight:
            self._in_flight.remove(key)
            if survived and self._together:
                self._room = min(self._room + 1, 2 * self._few)
            else:
                self._few = self._room = isqrt(self._together)

    @property
    def _together(self) -> int:
        return len(self._waiting) + len(self._in_flight)


def extra_samples(groups: GroupSettings) -> int:
    """Samples that a group may have beyond its size."""
    return groups.extra if groups.policy in ("hedge", "refill") else 0


def longest_first(tasks: Sequence[int], seconds: Sequence[float]) -> Sequence[int]:
    """Tasks by how long they took before (0: not known, taken for the mean of the others), the longest first."""
    known = [seconds[task] for task in tasks if seconds[task] > 0]
    if not known:
        return tasks
    mean = sum(known) / len(known)
    return sorted(tasks, key=lambda task: -(seconds[task] or mean))
