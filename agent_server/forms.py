"""What may be posted to `/run`: a flat row, a materialised one, or NeMo Gym 0.7's typed episode; and the answer in the same form. Pure."""

from dataclasses import dataclass
from typing import Any

from wire import strict_json
from wire.errors import KINDS, Unprocessable
from wire.rollout import check_row, flat_row

REASON_CHARACTERS = 2000  # NeMo Gym refuses a longer failure_reason
INNER = (
    "_ng_",
    "ng_trajectory",
    "ng_model_call_capture",
    "ng_perf",
)  # beginnings of names not allowed in a typed result


@dataclass(frozen=True)
class Posted:
    """A rollout that was asked for."""

    row: dict[str, Any]
    """Flat: what the environment and the line get."""
    episode_id: dict[str, Any] | None = None
    """{rollout_id, attempt}, where the typed form was used."""
    task_id: dict[str, Any] | None = None
    """{taskset, task_id}, where the typed form was used."""

    @property
    def typed(self) -> bool:
        """Whether the answer is to be typed too."""
        return self.episode_id is not None

    def answer(self, line: dict[str, Any]) -> dict[str, Any]:
        """A rollout line in the form of the request."""
        if not self.typed:
            return line
        answer: dict[str, Any] = {"episode_id": self.episode_id, "task_id": self.task_id}
        if line["failure"] is not None:
            return {**answer, "failure": _typed_failure(line["failure"])}
        return {**answer, "result": {key: value for key, value in line.items() if not key.startswith(INNER)}}


def read(body: bytes) -> Posted:
    """What was posted.

    Raises:
        JSONError: it is not JSON.
        Unprocessable: it is none of the forms; the message names the field.
    """
    given = strict_json.loads(body)
    if not isinstance(given, dict):
        raise Unprocessable(f"a row is a JSON object, not a {type(given).__name__}")
    if "episode_id" in given and isinstance(given.get("task"), dict):
        return _typed(given)
    return Posted(check(flat_row(given)))


def check(row: dict[str, Any]) -> dict[str, Any]:
    """The row itself, if it is one.

    Raises:
        Unprocessable: it is not; the message names the field.
    """
    wrong = check_row(row)
    if wrong:
        raise Unprocessable(f"row: {wrong}")
    tools = row["responses_create_params"].get("tools")
    if tools is not None and not (isinstance(tools, list) and all(isinstance(each, dict) for each in tools)):
        raise Unprocessable("row: field 'responses_create_params.tools' is no list of tool definitions")
    return row


def _typed(given: dict[str, Any]) -> Posted:
    episode_id, task = given["episode_id"], given["task"]
    if not isinstance(episode_id, dict) or not isinstance(episode_id.get("rollout_id"), str):
        raise Unprocessable("field 'episode_id' is {rollout_id, attempt}", param="episode_id")
    if not isinstance(task.get("task_id"), dict) or not isinstance(task.get("task_input"), dict):
        raise Unprocessable("field 'task' is {task_id: {taskset, task_id}, task_input: {…}}", param="task")
    return Posted(check(flat_row(task)), episode_id, task["task_id"])


def _typed_failure(failure: dict[str, Any]) -> dict[str, Any]:
    return {
        "failure_reason": failure["message"][:REASON_CHARACTERS],
        "terminal": not failure["retryable"],
        "failure_kind": failure["kind"],
        "stage": KINDS[failure["kind"]].ng_stage,
    }
