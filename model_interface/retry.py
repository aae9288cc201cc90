"""When an upstream call may be tried again, and after how long: pure functions, no clock and no socket of their own."""

import email.utils
import math
import random
import re
from datetime import UTC, datetime

FIRST_WAIT_S = 0.5  # bound of the jitter before the second try; doubles each time
LONGEST_WAIT_S = 5.0  # our own waits never pass this; an upstream's Retry-After may, within the budget
SHORTEST_WAIT_S = 0.1  # the floor under the jitter, so that many callers never hammer at once
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
RETRIED_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""Statuses after which the same request may go better. Sampling again is safe: no answer of the first try was used."""


def wait_s(tries: int, retry_after: str | None, *, now: datetime | None = None, jitter: float | None = None) -> float:
    """Seconds to wait before the next try.

    Args:
        tries: How many have failed so far, at least 1.
        retry_after: The upstream's header, seconds or a date; nonsense, zero and the past count as absent.
        now: For tests; the current time otherwise.
        jitter: For tests; a random number in 0..1 otherwise.
    """
    asked = retry_after_s(retry_after, now or datetime.now(UTC))
    share = random.random() if jitter is None else jitter
    if asked:
        return asked + SHORTEST_WAIT_S * share
    bound = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (min(tries, 16) - 1))
    return SHORTEST_WAIT_S + (bound - SHORTEST_WAIT_S) * share


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """Seconds that a `Retry-After` header asks for, or None where it asks for nothing that makes sense."""
    if not value:
        return None
    seconds = float(value) if _SECONDS.fullmatch(value.strip()) else _until(value, now)
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _until(date: str, now: datetime) -> float:
    try:
        then = email.utils.parsedate_to_datetime(date)
    except (ValueError, OverflowError):  # a year past all reckoning
        return 0.0
    if then.tzinfo is None:  # RFC 9110: an HTTP date is in GMT
        then = then.replace(tzinfo=UTC)
    return (then - now).total_seconds()
