"""The typed session messages of NVIDIA NeMo Gym 0.7, beside our flat ones. Pure.

Seed: `{resources_session_id, episode_id, task_id, task_data}` -> `{resources_session_id, resources_tools?}` and nothing else. Close:
`{resources_session_id, episode_id}` -> `{resources_session_id}`. A data row may be materialised: `{task_id, task_input: {…}}`.
"""

from typing import Any

from wire import strict_json
from wire.errors import UsageError

SESSION = "resources_session_id"


def typed_session(body: dict[str, Any]) -> str | None:
    """The session that a typed message names; None for a flat one.

    Raises:
        UsageError: It names none that can be used.
    """
    named = body.get(SESSION)
    if named is not None and (not isinstance(named, str) or not 0 < len(named) <= 256):
        raise UsageError(f"field {SESSION!r} should be a string of 1 to 256 characters", param=SESSION)
    return named


def row_of(body: dict[str, Any]) -> dict[str, Any]:
    """The data set row in a seed message of either form: what the task's fields are read from."""
    inside = body.get("task_data") if SESSION in body else body.get("task_input")
    if not isinstance(inside, dict):
        return body
    deeper = inside.get("task_data")
    return {**inside, **deeper} if isinstance(deeper, dict) else inside


def seed_reply(session_id: str, flat: bytes) -> bytes:
    """The typed reply that says what the flat one says, as far as it may: where the tools are over MCP, not what they are."""
    seeded = strict_json.loads(flat)
    reply: dict[str, Any] = {SESSION: session_id}
    if seeded["tools"]:
        headers = {"X-Session-Id": session_id}
        name = seeded["environment"]["name"]
        reply["resources_tools"] = {"server_name": name, "url_path": "/mcp", "transport": "http", "headers": headers}
    return strict_json.dumps(reply)
