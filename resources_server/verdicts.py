"""What `verify` gave, made into the members of the reply, or into the failure that it is."""

import sys
import sysconfig
import traceback
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from resources_server.environment import Environment
from wire import strict_json
from wire.errors import Failed
from wire.rollout import Verdict

MAX_TEXT = 500  # characters of an exception's text in a message


class NotJudgedError(Failed):
    """A verifier failed. Its answer also has the world as it stands, so that the line can be judged again without a server."""

    def __init__(self, failed: Failed, world: Environment[Any]) -> None:
        super().__init__(failed.kind, str(failed), status=failed.status)
        self._world = world

    def body(self) -> dict[str, Any]:
        """The error, and `state` and `accepted_calls` beside it where they have a JSON form; the next verifier may look at both."""
        try:
            left = _left(self._world) | {"accepted_calls": [call.model_dump() for call in self._world.calls]}
            strict_json.dumps(left)
        except (strict_json.JSONError, ValueError):
            return super().body()
        return super().body() | left


def members(world: Environment[Any], found: Any) -> bytes:
    """`"reward":…,"metrics":…,"state":…`: what a verdict adds to its row, as JSON text without the braces.

    Raises:
        Failed: `invalid_reward`, or `unserialisable` for state that is no JSON.
    """
    verdict = checked(found)
    added: dict[str, Any] = {"reward": verdict.reward, "metrics": verdict.metrics}
    if verdict.reward_components is not None:
        added["reward_components"] = verdict.reward_components
    if verdict.reason is not None:
        added["reason"] = verdict.reason
    try:
        return strict_json.dumps(added | _left(world))[1:-1]
    except (strict_json.JSONError, ValueError) as error:
        name = type(world).__name__
        raise Failed("unserialisable", f"the state of {name} cannot be written as JSON: {error}") from None


def _left(world: Environment[Any]) -> dict[str, Any]:
    """What judging again needs: the state, and the calls where the verifier looked at them."""
    left: dict[str, Any] = {"state": world.state()}
    if augmentation := getattr(world, "augmentation", None):
        left["augmentation"] = augmentation()
    if world.calls_were_read:
        left["accepted_calls"] = [call.model_dump() for call in world.calls]
    return left


def checked(found: Any) -> Verdict:
    """The verdict, with finite numbers only.

    Raises:
        Failed: `invalid_reward`.
    """
    verdict = found if isinstance(found, Verdict) else _from_number(found)
    named = {"reward": verdict.reward, **verdict.metrics, **(verdict.reward_components or {})}
    for name, value in named.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
            raise Failed("invalid_reward", f"verify gave {name} = {value!r}; it should be a finite number")
    return verdict


def raised(error: BaseException, doing: str, kind: str) -> Failed:
    """The failure for an exception of the author's: its type and text, which the author needs and the model never sees.

    A `Failed` that the author raised on purpose (`judge_unavailable`, `sandbox_lost`) stays what it is.
    """
    if isinstance(error, Failed):
        return error
    if kind == "verifier_error" and isinstance(error, ValidationError) and error.title == Verdict.__name__:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        return Failed("invalid_reward", f"{doing}: {where}: {first['msg']}")
    text = _text(error)
    return Failed(kind, f"{doing} raised {type(error).__name__}" + (f": {text}" if text else "") + _place(error))


def _place(error: BaseException) -> str:
    """` (world.py:17)`: the last line of the author's that it came through, where there is one."""
    frames = [
        f"{Path(frame.filename).name}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if _is_theirs(frame.filename)
    ]
    return f" ({frames[-1]})" if frames else ""


def _is_theirs(filename: str) -> bool:
    ours = str(Path(__file__).parent)
    inside = filename.startswith(ours) and not filename.startswith(f"{ours}/environments")
    return not (inside or filename.startswith((sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<")))


def _text(error: BaseException) -> str:
    if isinstance(error, ValidationError):  # its own text would quote what it was given
        first = error.errors(include_input=False, include_url=False)[0]
        return f"{error.title}.{'.'.join(map(str, first['loc']))}: {first['msg']}"
    try:
        return str(error)[:MAX_TEXT]
    except Exception:  # noqa: BLE001 - an author's `__str__` may raise anything
        return "(its text cannot be had)"


def _finite(value: float) -> bool:
    """Also for whole numbers past every float, which `math.isfinite` raises for."""
    return -sys.float_info.max <= value <= sys.float_info.max


def _from_number(found: Any) -> Verdict:
    if isinstance(found, bool) or not isinstance(found, int | float) or not _finite(found):
        shown = f"a {type(found).__name__}" if isinstance(found, BaseModel) else repr(found)[:80]
        raise Failed("invalid_reward", f"verify gave {shown}; it should be a finite number or a Verdict")
    return Verdict(reward=float(found))
