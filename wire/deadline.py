"""One budget per rollout, handed from hop to hop as the seconds that are left."""

import math
import time

HEADER = "X-Budget-S"  # seconds left of the rollout's deadline, a decimal number


class Deadline:
    """A point in time that every wait is measured against.

    Args:
        seconds: From now; not negative.
    """

    __slots__ = ("_at",)

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + max(0.0, seconds)

    @classmethod
    def from_header(cls, value: str | bytes | None, default_s: float) -> "Deadline":
        """The caller's budget, or `default_s` where it named none or nonsense; never longer than the default."""
        try:
            seconds = float(value) if value else default_s
        except ValueError:
            seconds = default_s
        if not math.isfinite(seconds):
            seconds = default_s
        return cls(min(seconds, default_s))

    def left(self) -> float:
        """Seconds until then; 0 when it has passed."""
        return max(0.0, self._at - time.monotonic())

    @property
    def expired(self) -> bool:
        """Whether it has passed."""
        return time.monotonic() >= self._at

    def header(self) -> str:
        """The value of `X-Budget-S` for a call made now."""
        return f"{self.left():.3f}"

    def within(self, seconds: float) -> "Deadline":
        """The nearer of this deadline and `seconds` from now."""
        return Deadline(min(seconds, self.left()))
