"""A moment as people write it on a command line: `23:30`, `2026-11-29T23:30`, `+90m`, or Unix seconds."""

import re
from datetime import datetime, timedelta

from wire.errors import UsageError

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_AHEAD = re.compile(r"\+(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_UNIX = re.compile(r"\d{9,}(\.\d+)?")


def parse(text: str, now: datetime) -> float:
    """Unix time; a bare clock time is the next such moment, a date without a zone is in `now`'s zone.

    Raises:
        UsageError: it is none of the forms.
    """
    if _UNIX.fullmatch(text):
        return float(text)
    if (ahead := _AHEAD.fullmatch(text)) and any(ahead.groups()):
        hours, minutes, seconds = (int(part or 0) for part in ahead.groups())
        return (now + timedelta(hours=hours, minutes=minutes, seconds=seconds)).timestamp()
    try:
        if clock := _CLOCK.fullmatch(text):
            hours, minutes, seconds = (int(part or 0) for part in clock.groups())
            moment = now.replace(hour=hours, minute=minutes, second=seconds, microsecond=0)
            return (moment if moment > now else moment + timedelta(days=1)).timestamp()
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--stop-by {text}: not a time; write 23:30, 2026-11-29T23:30, +90m or Unix seconds") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)).timestamp()
