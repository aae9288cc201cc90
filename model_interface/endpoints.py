"""The replicas of one model: how many calls each takes at once, which one the next call goes to, and which are down.

Concurrency adapts (AIMD, as TCP does): it starts at the configured bound, halves when an endpoint pushes back (429, time-out, overload)
and grows by one per round of answers. Source: Chiu and Jain, 1989.
"""

import asyncio
import contextlib
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from functools import partial

from wire.metrics import Metrics

HISTORY = 256  # changes of a limit that are kept for /metrics
PINS = 100_000  # rollouts whose replica is remembered
FIRST_PAUSE_S = 1.0  # a dead endpoint is left alone this long; doubles up to the longest
LONGEST_PAUSE_S = 30.0
SHOWN_CHANGES = 32  # latest changes of a limit that /metrics shows per endpoint


class Limiter:
    """How many calls may be in flight at once, adapted to what the endpoint bears.

    Args:
        ceiling: Never more than this.
    """

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.limit = float(ceiling)
        self.in_flight = 0
        self.peak = 0
        self.history: deque[tuple[float, float]] = deque([(time.time(), self.limit)], HISTORY)
        self.changed: Callable[[], None] | None = None  # called after each change of the limit
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._shrunk_at = 0.0

    @property
    def waiting(self) -> int:
        """Calls that wait for a place."""
        return len(self._waiting)

    def take(self) -> bool:
        """Take a place if one is free now."""
        if self.in_flight >= int(self.limit) or self._waiting:
            return False
        self.in_flight += 1
        if self.in_flight > self.peak:
            self.peak = self.in_flight
        return True

    async def acquire(self) -> None:
        """Take a place, waiting for one in the order of asking."""
        if self.take():
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            self._abandon(place)
            raise

    def release(self) -> None:
        """Give the place back and wake who waits."""
        self.in_flight -= 1
        self._wake()

    def grow(self) -> None:
        """An answer came: one place more for each round of answers."""
        if self.limit < self.ceiling:
            before = int(self.limit)
            self.limit = min(self.ceiling, self.limit + 1.0 / max(1.0, self.limit))
            if int(self.limit) > before:
                self._note()
                self._wake()

    def shrink(self, sent_at: float) -> None:
        """The endpoint pushed back: half the places; answers to calls sent before the last halving count once.

        Args:
            sent_at: `time.monotonic()` when the call was sent.
        """
        if sent_at <= self._shrunk_at:
            return
        self._shrunk_at = time.monotonic()
        self.limit = max(1.0, min(self.limit, float(max(1, self.in_flight))) / 2)
        self._note()

    def _note(self) -> None:
        self.history.append((time.time(), self.limit))
        if self.changed is not None:
            self.changed()

    def _wake(self) -> None:
        while self._waiting and self.in_flight < int(self.limit):
            place = self._waiting.popleft()
            if not place.done():
                self.in_flight += 1
                place.set_result(None)

    def _abandon(self, place: "asyncio.Future[None]") -> None:
        if place.done() and not place.cancelled():
            self.release()
        else:
            with contextlib.suppress(ValueError):
                self._waiting.remove(place)


class Endpoint:
    """One replica: its address, its limit and whether it is thought to be up."""

    def __init__(self, url: str, ceiling: int) -> None:
        self.url = url
        self.limiter = Limiter(ceiling)
        self.failed_in_a_row = 0
        self._down_until = 0.0

    @property
    def healthy(self) -> bool:
        """Whether calls may go there: it answers, or its pause is over and one may try."""
        return time.monotonic() >= self._down_until

    @property
    def load(self) -> float:
        """Calls in flight and waiting, per place."""
        return (self.limiter.in_flight + self.limiter.waiting) / max(1.0, self.limiter.limit)

    def up(self) -> None:
        """It answered, whatever it said."""
        if self.failed_in_a_row:
            self.failed_in_a_row, self._down_until = 0, 0.0

    def down(self) -> None:
        """It could not be reached: leave it alone for a while."""
        self.failed_in_a_row += 1
        pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (min(self.failed_in_a_row, 16) - 1))
        self._down_until = time.monotonic() + pause


class Endpoints:
    """All replicas of one model.

    Args:
        urls: Normalised base URLs, at least one.
        ceiling: Calls in flight per endpoint at most.
    """

    def __init__(self, urls: Iterable[str], ceiling: int) -> None:
        self.all = [Endpoint(url, ceiling) for url in urls]
        self._pins: OrderedDict[str, Endpoint] = OrderedDict()
        self._next = 0

    def pick(self, pin: str | None, avoid: "set[Endpoint] | frozenset[Endpoint]" = frozenset()) -> Endpoint:
        """The endpoint for the next try.

        Args:
            pin: A rollout; it stays with its replica, whose prefix cache knows it, while that is healthy.
            avoid: Endpoints that failed this very call; used only where there is no other.
        """
        if len(self.all) == 1:
            return self.all[0]
        pinned = self._pins.get(pin) if pin else None
        if pinned and pinned.healthy and pinned not in avoid:
            self._pins.move_to_end(str(pin))
            return pinned
        chosen = self._least_loaded(avoid)
        if pin:
            self._remember(pin, chosen)
        return chosen

    def register(self, metrics: Metrics) -> None:
        """Show each endpoint's calls in flight, limit and health in `/metrics`, and how the limit came about."""
        for endpoint in self.all:
            for name in ("in_flight", "peak", "waiting", "limit"):
                metrics.gauge(f"upstream_{name}", partial(getattr, endpoint.limiter, name), endpoint=endpoint.url)
            metrics.gauge("upstream_healthy", partial(getattr, endpoint, "healthy"), endpoint=endpoint.url)
            endpoint.limiter.changed = partial(_show_history, endpoint, metrics)

    def _least_loaded(self, avoid: "set[Endpoint] | frozenset[Endpoint]") -> Endpoint:
        self._next = (self._next + 1) % len(self.all)
        turned = self.all[self._next :] + self.all[: self._next]  # equal loads take turns
        usable = [each for each in turned if each.healthy and each not in avoid]
        usable = usable or [each for each in turned if each not in avoid] or turned
        return min(usable, key=lambda each: each.load)

    def _remember(self, pin: str, endpoint: Endpoint) -> None:
        self._pins[pin] = endpoint
        self._pins.move_to_end(pin)
        if len(self._pins) > PINS:
            self._pins.popitem(last=False)


def _show_history(endpoint: Endpoint, metrics: Metrics) -> None:
    """The latest changes of the limit, `-1` the last: their values and times."""
    history = endpoint.limiter.history
    for back in range(1, min(len(history), SHOWN_CHANGES) + 1):
        labels = {"endpoint": endpoint.url, "change": f"-{back}"}
        metrics.gauge("upstream_limit_history", partial(_entry, history, back, 1), **labels)
        metrics.gauge("upstream_limit_changed_at_seconds", partial(_entry, history, back, 0), **labels)


def _entry(history: "deque[tuple[float, float]]", back: int, field: int) -> float:
    return history[-back][field]
