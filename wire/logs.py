"""One JSON line per event on standard error: a rollout's id bound to it, secrets masked."""

import contextvars
import logging
import re
import sys
import time
from typing import Any

from wire import strict_json

SHOWN_OF_ID = 8  # characters: enough to find a rollout's lines, too few to use its session

_rollout: contextvars.ContextVar[str | None] = contextvars.ContextVar("rollout", default=None)

SECRET = re.compile(
    r"(?i)(bearer\s+|api[_-]?key[\"']?\s*[:=]\s*[\"']?|authorization[\"']?\s*[:=]\s*[\"']?|sk-|://[^/\s:@]+:)([^\s\"',@]{4,})"
)


def bind(session_id: str | None) -> None:
    """Name the session that a request is for: whatever is logged while it is handled carries the beginning of its id."""
    _rollout.set(session_id and session_id[:SHOWN_OF_ID])


def masked(text: str) -> str:
    """The text with keys, bearer tokens and passwords in URLs replaced by `***`."""
    return SECRET.sub(r"\1***", text)


class JSONFormatter(logging.Formatter):
    """`{"t", "level", "logger", "server", "event", …}`; fields passed as `extra={"fields": {...}}` are added."""

    def __init__(self, server: str) -> None:
        super().__init__()
        self.server = server

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON."""
        event: dict[str, Any] = {
            "t": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "server": self.server,
            "event": masked(record.getMessage()),
        }
        if (bound := _rollout.get()) is not None:
            event["rollout"] = bound
        event |= getattr(record, "fields", {})
        if record.exc_info:
            event["trace"] = masked(self.formatException(record.exc_info))
        return strict_json.dumps(event).decode()


def set_up(server: str, level: str = "INFO") -> None:
    """Log JSON lines to standard error for this process; once, at its start."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormatter(server))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("uvicorn.access").disabled = True
