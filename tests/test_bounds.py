"""Nothing waits or grows for ever: every bound of every section has a finite default, and cannot be set to infinity."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from rollouts.stack import sections

BOUND = (
    "timeout",
    "ttl",
    "max",
    "attempts",
    "concurrency",
    "wait",
    "grace",
    "threads",
    "processes",
    "workers",
    "extra",
)
UNSET = {
    "rollouts.max_failures": "a run that fails too much is stopped by max_failure_share",
    "model_interface.extra_body": "fields, no number",
}


def fields(model: type[BaseModel], path: str) -> Iterator[tuple[str, type[BaseModel], str, FieldInfo]]:
    """Path, model, name and field of every key, those of nested sections included."""
    for name, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True)
        if isinstance(default, BaseModel):
            yield from fields(type(default), f"{path}.{name}")
        else:
            yield f"{path}.{name}", model, name, field


FIELDS = [each for name, model in sections().items() for each in fields(model, name)]
NUMBERS = [each for each in FIELDS if type(each[3].get_default()) in (int, float)]
BOUNDS = [each for each in FIELDS if any(part in BOUND for part in each[2].split("_")) and each[0] not in UNSET]


def test_the_bounds_that_everyone_relies_on_are_among_them() -> None:
    """The walk finds what it is for."""
    found = {path for path, *_ in BOUNDS}
    assert found >= {
        "rollouts.timeout_s",
        "rollouts.attempts",
        "agent_server.max_steps",
        "agent_server.timeout_s",
        "agent_server.max_rollouts",
        "resources_server.tool_timeout_s",
        "resources_server.verify_timeout_s",
        "resources_server.seed_timeout_s",
        "resources_server.sessions.ttl_s",
        "resources_server.sessions.max",
        "resources_server.sessions.max_bytes",
        "resources_server.max_output_bytes",
        "model_interface.timeout_s",
        "model_interface.attempts",
        "model_interface.concurrency",
        "model_interface.conversations.max_bytes",
        "model_interface.captures.max",
    }


@pytest.mark.parametrize(("path", "field"), [(path, field) for path, _, _, field in BOUNDS])
def test_a_bound_is_finite_by_default(path: str, field: FieldInfo) -> None:
    """No time-out is None, none is infinite."""
    default: Any = field.get_default()
    assert isinstance(default, int | float) and math.isfinite(default) and default >= 0, path


@pytest.mark.parametrize(("path", "model", "name"), [(path, model, name) for path, model, name, _ in NUMBERS])
@pytest.mark.parametrize("endless", [math.inf, -math.inf, math.nan])
def test_no_number_can_be_set_to_infinity(path: str, model: type[BaseModel], name: str, endless: float) -> None:
    """A config that says `.inf` is refused at start."""
    with pytest.raises(ValidationError):
        model.model_validate({name: endless})
