"""Tool schemas beside the lines that used them: each set stands once in `<stem>_tools.jsonl`, and a line names it by its digest.

The schemas of one environment are the same in every line and would be most of its bytes.
"""

import hashlib
from pathlib import Path
from typing import Any

from wire import jsonl, strict_json

Line = dict[str, Any]
FIELD = "tools_sha256"


def path_of(rollouts: Path) -> Path:
    """Where the tool schemas of a rollouts file stand; a failures file shares them."""
    stem = rollouts.stem.removesuffix("_failures")
    return rollouts.with_name(f"{stem}_tools.jsonl")


def take(line: Line) -> list[Any] | None:
    """Take the schemas out of a line's response and leave their digest; None where it has none."""
    response = line.get("response")
    tools = response.pop("tools", None) if isinstance(response, dict) else None
    if not tools:
        return None
    line[FIELD] = hashlib.sha256(strict_json.dumps(tools, trusted=True)).hexdigest()
    return list(tools)


def give_back(line: Line, known: dict[str, list[Any]]) -> Line:
    """The line as it was before `take`, where its schemas are known."""
    tools, response = known.get(str(line.get(FIELD))), line.get("response")
    if tools is None or not isinstance(response, dict):
        return line
    return {**line, "response": {**response, "tools": tools}}


def read(rollouts: Path) -> dict[str, list[Any]]:
    """Digest to schemas, of one rollouts file; empty where there is no such file. A torn last line is left out."""
    return {str(record[FIELD]): record["tools"] for _, record in jsonl.read_whole(path_of(rollouts)) if FIELD in record}
