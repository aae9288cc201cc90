"""The verdict: the change that a session left behind against the change that is right. Pure functions over both."""

from collections import Counter
from collections.abc import Sequence

from resources_server.environments.workplace.records import Change
from wire import strict_json
from wire.responses import Item

Changes = Counter[Change]


def nearest(made: Changes, right: Sequence[Changes]) -> Changes:
    """Of several right changes, the one that the made change comes closest to; the first of equals."""
    return min(right, key=lambda each: (made - each).total() + (each - made).total())


def reason(made: Changes, right: Changes) -> str:
    """The comparison in a sentence for people: it tells tables and kinds of change, not the right values."""
    if made == right:
        return "the net change is the right one" if right else "nothing was to be changed, and nothing was"
    parts = [f"{count} wrong ({kind})" for kind, count in _by_kind(made - right)]
    parts += [f"{count} missing ({kind})" for kind, count in _by_kind(right - made)]
    return "changes: " + ", ".join(parts)


def _by_kind(changes: Changes) -> list[tuple[str, int]]:
    """How many rows or cells of which table were created, updated or deleted."""
    found: Counter[str] = Counter()
    for change, count in changes.items():
        found[f"{change[0]} {change[1]}"] += count
    return sorted(found.items())


def refused(output: Sequence[Item]) -> int:
    """How many calls of an episode came to nothing but a sentence for the model: `{"error": …}`."""
    return sum(1 for item in output if item.get("type") == "function_call_output" and _is_error(item.get("output")))


def _is_error(output: object) -> bool:
    if not isinstance(output, str) or not output.lstrip().startswith('{"error"'):
        return False
    try:
        value = strict_json.loads(output)
    except strict_json.JSONError:
        return False
    return isinstance(value, dict) and value.keys() == {"error"}


def turns(output: Sequence[Item]) -> int:
    """How many answers of the model an episode has: runs of its own items between tools' outputs."""
    own = [item.get("type") != "function_call_output" for item in output]
    return sum(1 for place, mine in enumerate(own) if mine and (place == 0 or not own[place - 1]))
