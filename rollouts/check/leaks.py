"""Ground truth that the model is shown.

A field of the row is *truth* where the verdict on the finished episode changes with it alone. It leaks where something that the model is
shown holds its value, and holds another value when the row has another: what merely lies in the world does not change with the truth.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wire import strict_json

RARE = 5  # characters of a text from which it stands for itself


def holds(text: str, value: Any) -> bool:
    """Whether a text shown to the model has the value in it: as a word or number, or as a part of its JSON."""
    if isinstance(value, Mapping | list):
        return _within(_parsed(text), value) or _compact(value) in _squeezed(text)
    if isinstance(value, str) and len(value) > 40:
        return value in text or strict_json.dumps(value).decode()[1:-1] in text
    written = str(value).lower() if isinstance(value, bool) else str(value)
    return bool(written.strip()) and re.search(rf"(?<![\w.-]){re.escape(written)}(?![\w]|\.\d)", text) is not None


def tellable(value: Any) -> bool:
    """Whether a value says enough to be looked for: not empty, not null, no bare flag."""
    return value not in (None, "", [], {}) and not isinstance(value, bool)


def values(field: Any) -> list[Any]:
    """What to look for of a field: itself, and what it is made of when that is one thing or calls with arguments."""
    if isinstance(field, str) and isinstance(inner := _parsed(field), Mapping | list):
        return [field, *values(inner)]
    if isinstance(field, list) and len(field) == 1:
        return [field, *values(field[0])]
    return [field]


def names(row: Mapping[str, Any], most: int) -> list[Any]:
    """Short texts and numbers in a row's own fields, by which its world may know things: arguments for a curious caller."""
    fields = {key: value for key, value in row.items() if key not in ("responses_create_params", "task_id")}
    found = [each for each in _leaves(fields) if not isinstance(each, bool) and len(str(each)) <= 60]
    return list(dict.fromkeys(found))[:most]


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield key
            yield from _leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, str | int):
        yield value


def leaked(before: Sequence[str], after: Sequence[str], one: Any, other: Any) -> int | None:
    """The first place in which a text shows `one`, and `other` in its stead when the row's field is `other`; None where none does.

    A value that cannot be met by chance may be shown in another place then: who asks for the wrong thing is shown nothing.
    """
    pairs = list(zip(before, after, strict=False))
    gone = [place for place, (first, second) in enumerate(pairs) if holds(first, one) and not holds(second, one)]
    come = [place for place, (first, second) in enumerate(pairs) if holds(second, other) and not holds(first, other)]
    if _rare(one) and _rare(other):
        return gone[0] if gone and come else None
    return next((place for place in gone if place in come), None)


def _rare(value: Any) -> bool:
    """Whether nothing else is likely to look like it."""
    return isinstance(value, Mapping | list) or (isinstance(value, str) and len(value) >= RARE)


def another(value: Any, others: Sequence[Any]) -> Any:
    """A value that another row has in this field, else one made up in its likeness; None where neither can be had."""
    for each in others:
        if each != value and type(each) is type(value):
            return each
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str) and value:
        return value[::-1] if value != value[::-1] else value + "x"
    return None


def _parsed(text: str) -> Any:
    try:
        return strict_json.loads(text)
    except strict_json.JSONError:
        return None


def _within(tree: Any, value: Any) -> bool:
    if tree == value:
        return True
    if isinstance(tree, Mapping):
        return any(_within(each, value) for each in tree.values())
    return isinstance(tree, list) and any(_within(each, value) for each in tree)


def _compact(value: Any) -> str:
    return _squeezed(strict_json.dumps(value).decode())


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text.replace("'", '"'))
