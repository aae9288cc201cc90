"""Positional arguments that several commands share: configs and `key=value` pairs, in any order."""

import re
from collections.abc import Iterable, Sequence

_OVERRIDE = re.compile(r"[\w.+-]+=", re.ASCII)  # a path may hold an equals sign too, after a slash or a space


def split(arguments: Iterable[str], also: Sequence[str] | None = None) -> tuple[list[str], list[str]]:
    """What is no override, and the overrides: first the bare ones, then those of `--set`."""
    listed = list(arguments)
    overrides = [each for each in listed if _OVERRIDE.match(each)]
    return [each for each in listed if each not in overrides], [*overrides, *(also or [])]
