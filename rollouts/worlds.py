"""Environment classes by name, for what needs no server: judging lines again, checking rows. No server module is imported by us."""

import asyncio
import importlib
import inspect
from collections.abc import Mapping
from typing import Any

from wire import plugins
from wire.errors import Failed
from wire.responses import Response
from wire.rollout import Verdict


def environment(name: str, options: Mapping[str, Any] | None = None) -> Any:
    """The class that a config's `environment` stands for, with its options.

    Raises:
        UsageError: there is none, or it does not take these options.
    """
    face: Any = importlib.import_module("resources_server")
    found: Any = plugins.load("resources_server.environments", name, face.Environment)
    return found.bound(options)


def judge(world_class: Any, line: Mapping[str, Any], times: int = 1) -> Verdict:
    """The verdict of a class on a stored line: row, state, accepted calls and response; no server and no model.

    Args:
        world_class: The environment.
        line: Of a rollouts file, or what `/verify` answered.
        times: Ask the same world so often; the last answer counts.

    Raises:
        UsageError: the line does not fit the class.
        Failed: the verdict is no finite number, or `verify` raised.
    """
    verdicts: Any = importlib.import_module("resources_server.verdicts")
    world = world_class.restored(line, line.get("state") or {}, line.get("accepted_calls") or ())
    response = Response.model_validate(line.get("response") or {})
    try:
        for _ in range(times):
            found = world.verify(response)
            if inspect.isawaitable(found):
                found = asyncio.run(_awaited(found))
    except Failed:
        raise
    except Exception as error:
        raise verdicts.raised(error, f"{world_class.__name__}.verify", "verifier_error") from error
    verdict: Verdict = verdicts.checked(found)
    return verdict


async def _awaited(found: Any) -> Any:
    return await found
