"""The options of an agent, checked when the server starts."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from wire.config import booleans_for_numbers
from wire.errors import UsageError

OptionsT = TypeVar("OptionsT", bound=BaseModel)


def read(model: type[OptionsT], options: dict[str, Any], agent: str) -> OptionsT:
    """The options of one agent.

    Raises:
        UsageError: names each that is wrong, and what there is.
    """
    try:
        found = model.model_validate(options)
        problems = [f"agent_server.options.{each}" for each in booleans_for_numbers(found, options)]
    except ValidationError as error:
        problems = [f"agent_server.options.{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    if problems:
        have = ", ".join(model.model_fields) or "none"
        raise UsageError(f"{'; '.join(problems)} (options of {agent}: {have})")
    return found


class NoOptions(BaseModel, extra="forbid"):
    """For an agent that has none."""
