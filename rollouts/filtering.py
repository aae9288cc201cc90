"""Mask or filter: whether a failed attempt is thrown away and run again, or stays as a masked member of its group.

A cause that passes is filtered, one that does not is masked. A run in which too much would be filtered masks instead, so that a broken
service cannot keep it busy for ever; one in which nearly everything fails stops.
"""

from collections import deque

WINDOW = 200  # attempts that the two shares are taken over
_OK, _MASKED, _FILTERED = range(3)


class Filter:
    """The last attempts of a run, and what they allow.

    Args:
        max_filtered_share: Of the window, at most this share is filtered. A window that is not full yet counts as if it were.
        max_failure_share: More failures than this share of a full window end the run.
        window: Attempts looked back on.
    """

    def __init__(self, max_filtered_share: float, max_failure_share: float, window: int = WINDOW) -> None:
        self._max_filtered = max_filtered_share * window
        self._max_failed = max_failure_share * window
        self._window = window
        self._ends: deque[int] = deque()
        self._counts = [0, 0, 0]

    def ok(self) -> None:
        """An attempt ended with a verdict."""
        self._add(_OK)

    def failed(self, *, may_filter: bool) -> bool:
        """An attempt failed. True when it is to be run again, False when it is masked.

        Args:
            may_filter: Its cause passes and attempts are left.
        """
        filtered = may_filter and self._counts[_FILTERED] + 1 <= self._max_filtered
        self._add(_FILTERED if filtered else _MASKED)
        return filtered

    def too_many(self) -> str | None:
        """Why the run should stop; None while it may go on."""
        failed = self._counts[_MASKED] + self._counts[_FILTERED]
        if len(self._ends) < self._window or failed <= self._max_failed:
            return None
        return f"{failed} of the last {self._window} attempts failed (rollouts.max_failure_share={self._max_failed / self._window:g})"

    def _add(self, end: int) -> None:
        self._ends.append(end)
        self._counts[end] += 1
        if len(self._ends) > self._window:
            self._counts[self._ends.popleft()] -= 1
