"""The bearer token of a stack: who makes it, and where it comes from."""

import os
import secrets
from pathlib import Path

from wire.errors import UsageError

VARIABLE, FILE_VARIABLE = "TRIVIUM_TOKEN", "TRIVIUM_TOKEN_FILE"
BITS = 256


def given() -> str | None:
    """The token that the environment names: `TRIVIUM_TOKEN`, or the file that `TRIVIUM_TOKEN_FILE` names.

    Raises:
        UsageError: the file cannot be read or is empty.
    """
    if token := os.environ.get(VARIABLE, "").strip():
        return token
    if not (path := os.environ.get(FILE_VARIABLE)):
        return None
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{FILE_VARIABLE}={path}: {getattr(error, 'strerror', None) or error}") from error
    if not token:
        raise UsageError(f"{FILE_VARIABLE}={path}: the file is empty")
    return token


def for_stack(auth: str) -> str | None:
    """The token of servers that we start: the given one, else a new one; None with `auth: none`."""
    if auth == "none":
        return None
    return given() or secrets.token_urlsafe(BITS // 8)
