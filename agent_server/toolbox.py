"""The tools of one rollout: what the model is shown, what it may call, and what it is told about a call that cannot be made.

Pure: nothing here sends anything. A name is compared as text before any URL is formed from it.
"""

import difflib
import re
from collections.abc import Iterable
from typing import Any

from wire import strict_json
from wire.rollout import NOT_TOOLS

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # OpenAI's rule for function names
LISTED_TOOLS = 40  # names in a sentence about an unknown tool
QUOTED_NAME = 100  # characters of a mangled name in a sentence; the record keeps all of it

Definition = dict[str, Any]


class BadCall(ValueError):
    """The model's call cannot be made; the message is for the model."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class Toolbox:
    """What the model may call in one rollout.

    Args:
        declared: The tools that the environment named when it was seeded; None where it names none (NeMo Gym's servers do not).
        row: The `tools` of the row, which narrow the environment's where it named some; None where the row has none.
        parallel: Names of tools whose calls in one turn may run together.
    """

    __slots__ = ("definitions", "names", "parallel")

    def __init__(
        self, declared: list[Definition] | None, row: list[Definition] | None, parallel: Iterable[str] = ()
    ) -> None:
        self.definitions: list[Definition] = row if row is not None else declared or []
        offered = _names(self.definitions)
        known = offered if declared is None else set(_names(declared))
        self.names = [name for name in offered if name in known and name not in NOT_TOOLS and TOOL_NAME.fullmatch(name)]
        self.parallel = frozenset(parallel)

    def check(self, name: Any, arguments: Any) -> bytes:
        """The body to post to the tool: the model's own argument text, once it is known to be a JSON object.

        Raises:
            BadCall: the tool does not exist here, or the arguments are not a JSON object.
        """
        if name not in self.names:
            raise BadCall("unknown_tool", self._unknown(str(name)))
        try:
            value = strict_json.loads(arguments if isinstance(arguments, str) else strict_json.dumps(arguments))
            body = arguments.encode() if isinstance(arguments, str) else strict_json.dumps(arguments)
        except (strict_json.JSONError, UnicodeEncodeError) as error:
            raise BadCall("invalid_arguments", f"the arguments of {name} are not valid JSON: {error}") from None
        if not isinstance(value, dict):
            raise BadCall("invalid_arguments", f"the arguments of {name} must be a JSON object, not {_noun(value)}")
        return body

    def _unknown(self, name: str) -> str:
        shown = name if len(name) <= QUOTED_NAME else name[:QUOTED_NAME] + "…"
        if not self.names:
            return f"there is no tool {shown!r}; there are no tools here, answer in text"
        close = difflib.get_close_matches(name[:QUOTED_NAME], self.names, 1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        more = "" if len(self.names) <= LISTED_TOOLS else f" and {len(self.names) - LISTED_TOOLS} more"
        return f"there is no tool {shown!r}{hint} The tools are: {', '.join(self.names[:LISTED_TOOLS])}{more}"


def told(message: str) -> str:
    """A sentence for the model, in the shape of a tool's own refusals."""
    return strict_json.dumps({"error": [message]}).decode()


def _names(definitions: list[Definition]) -> list[str]:
    return [name for name in map(_name, definitions) if isinstance(name, str)]


def _name(definition: Definition) -> Any:
    """Of a function tool, in the form of the Responses API or, as some rows have it, of Chat Completions."""
    if definition.get("type", "function") != "function":
        return None
    inner = definition.get("function")
    return definition.get("name", inner.get("name") if isinstance(inner, dict) else None)


def _noun(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    names = {list: "a list", str: "a string", int: "a number", float: "a number"}
    return names.get(type(value), "another value")
