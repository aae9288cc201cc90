"""From a row to the resources server that has its world. Pure."""

import difflib
from collections.abc import Iterable
from typing import Any

from wire.errors import Unprocessable

RESOURCES = "resources_server"


def resources_servers(servers: Iterable[str]) -> dict[str, str]:
    """Environment name to server name, of the resources servers among `servers`; the only one may have the name ""."""
    return {name.partition(".")[2]: name for name in servers if name == RESOURCES or name.startswith(RESOURCES + ".")}


def server_of(row: dict[str, Any], servers: dict[str, str]) -> str:
    """The resources server for a row: by `environment`, else by `agent_ref.name`, else the only one.

    Raises:
        Unprocessable: there are several and the row names none of them.
    """
    if len(servers) == 1:
        return next(iter(servers.values()))
    agent_ref = row.get("agent_ref")
    reference = agent_ref.get("name") if isinstance(agent_ref, dict) else None
    for name in (row.get("environment"), reference):
        if isinstance(name, str) and name in servers:
            return servers[name]
    wanted = row.get("environment") or reference
    close = difflib.get_close_matches(str(wanted), servers, 1)
    hint = f", did you mean {close[0]!r}?" if close else ""
    raise Unprocessable(
        f"row: no environment is called {wanted!r}{hint} (have: {', '.join(sorted(servers)) or 'none'}); "
        "name one in field 'environment' or 'agent_ref.name'",
        param="environment",
    )
