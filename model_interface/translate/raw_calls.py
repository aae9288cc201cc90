"""Tool calls in a body that no JSON parser takes, made readable: the one place where an answer is looked at as text.

A server that parses a model's arguments itself sends on whatever the model wrote, be it an integer of 5,000 digits or 300 levels of
brackets. Parsers have bounds for these, and would throw the whole answer away for it. What the model got wrong is for the model to hear of,
so such arguments become the JSON string of their own text, byte for byte, as which any other server would have sent them.
"""

import re

from wire import strict_json

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_TEXTUAL = frozenset({b'"arguments"', b'"name"'})  # members of a call that are text by right
_VALUE = re.compile(rb"\s*:\s*(?=[{\[\-0-9])")
_NUMBER = re.compile(rb"[-+.0-9eE]+")


def calls_as_text(body: bytes) -> bytes:
    """The body with every `arguments` and `name` that is an object, a list or a number written as the string of its text.

    It takes time in proportion to the body, whatever the nesting. A body that was cut off, or is no JSON for another reason, comes back
    as it was.
    """
    pieces: list[bytes] = []
    done = at = 0
    while (token := _TOKEN.search(body, at)) is not None:
        at = token.end()
        value = _VALUE.match(body, at) if token.group() in _TEXTUAL else None
        end = _end(body, value.end()) if value is not None else None
        if value is None:
            continue
        if end is None:  # cut off
            break
        try:
            text = body[value.end() : end].decode()
        except UnicodeDecodeError:
            break
        pieces += [body[done : value.end()], strict_json.dumps(text)]
        done = at = end
    return b"".join([*pieces, body[done:]])


def _end(body: bytes, start: int) -> int | None:
    """Where the value that begins at `start` ends; None where the body ends before it."""
    if body[start : start + 1] not in (b"{", b"["):
        number = _NUMBER.match(body, start)
        return number.end() if number is not None else None
    depth = 0
    for token in _TOKEN.finditer(body, start):
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token.group(), 0)
        if depth == 0:
            return token.end()
    return None
