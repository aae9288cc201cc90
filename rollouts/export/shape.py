"""What a line must look like for exports to read it: only the parts that they look into, and no more of each than they need.

`collect` takes any line whose figures can be added up; another maker's agent may have written the rest.
"""

import sys
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

QUOTED_CHARACTERS = 40  # of a wrong value, in a message
MOST_NAMED = 3  # faults of one line in its message


def _key(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str | None):
        raise ValueError("should be a whole number or a text")
    return value


def _finite(value: Any) -> Any:
    if not -sys.float_info.max <= value <= sys.float_info.max:
        raise ValueError("should be a finite number")
    return value


Key = Annotated[Any, AfterValidator(_key)]
Parts = list[dict[str, Any]] | None


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Part(_Shape):
    type: str | None = None
    text: str | None = None


class _Item(_Shape):
    type: str = "message"
    role: str | None = None
    name: str | None = None
    arguments: Any = None
    call_id: str | None = None
    content: Annotated[str | list[_Part] | None, Field(union_mode="left_to_right")] = None
    summary: list[_Part] | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.type == "message" and (self.role is None or self.content is None):
            raise ValueError("should have role and content, being a message")
        if self.type == "reasoning" and isinstance(self.content, str):
            raise ValueError("should have its content as a list of parts, being reasoning")
        if self.type == "function_call" and self.name is None:  # "" is what a model called without one
            raise ValueError("should have a name, being a function_call")
        if self.type == "function_call" and not isinstance(self.arguments, str | dict | None):
            raise ValueError("should have arguments as the text of a JSON object, being a function_call")
        return self


class _Usage(_Shape):
    input_tokens_details: dict[str, Any] | None = None


class _Response(_Shape):
    output: list[_Item] | None = None
    tools: Parts = None
    usage: _Usage | None = None


class _Params(_Shape):
    input: Annotated[str | list[_Item] | None, Field(union_mode="left_to_right")] = None
    instructions: str | None = None
    tools: Parts = None


class _Input(_Shape):
    responses_create_params: _Params | None = None


class _Step(_Shape):
    usage: _Usage | None = None


class _Line(_Shape):
    reward: Annotated[Any, AfterValidator(_finite)]  # a number, as `unfit` has seen
    response: _Response
    responses_create_params: _Params | None = None
    task_input: _Input | None = None
    steps: list[_Step] | None = None
    task_index: Key = None
    rollout_index: Key = None
    group_size: int | None = Field(None, ge=0)
    outcome: str | None = None
    metrics: dict[str, Any] | None = None
    reward_components: dict[str, Any] | None = None
    provenance: dict[str, Any] | None = None
    agent_ref: dict[str, Any] | None = None
    instance_config: dict[str, Any] | None = None


def fault_of(line: dict[str, Any]) -> str | None:
    """What cannot be read in a line, and what would be right; None where all can."""
    try:
        _Line.model_validate(line)
    except ValidationError as error:
        wrong = [each for each in error.errors() if "str" not in each["loc"] or isinstance(each["input"], int | dict)]
        named = [_described(each["loc"], each["input"], each["msg"]) for each in wrong or error.errors()]
        more = f"; and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
        return "; ".join(named[:MOST_NAMED]) + more
    return None


def _described(place: tuple[int | str, ...], value: Any, message: str) -> str:
    named = [
        each for each in place if each != "str" and not str(each).startswith("list[")
    ]  # what pydantic tried is left out
    where = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in named).removeprefix(".")
    right = message.removeprefix("Value error, ").removeprefix("Input ")
    right = right.replace("a valid dictionary or instance of", "an object:").replace("a valid dictionary", "an object")
    return f"{where} is {_shown(value)}: {right.partition(': _')[0].replace('an object:', 'an object')}"


def _shown(value: Any) -> str:
    return repr(value)[:QUOTED_CHARACTERS]
