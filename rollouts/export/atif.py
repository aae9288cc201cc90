"""ATIF, the agent trajectory interchange format that Harbor and NeMo Gym exchange: one trajectory object a line.

Source: Harbor's specification, schema version ATIF-v1.7. Steps count from 1; what the tools answered stands in the step that asked.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from rollouts.export.conversation import tools_of
from rollouts.export.reading import Episode, Line, Selection
from rollouts.export.tokens import TokensError, Turn, turns_of
from wire import strict_json
from wire.responses import message_text, user_items

SCHEMA_VERSION = "ATIF-v1.7"
LATEST = 253_402_300_799  # Unix seconds; the last that has a date of four digits
SOURCES = {"user": "user", "assistant": "agent"}  # every other role is the system's

Record = dict[str, Any]


def records(episode: Episode, selection: Selection) -> Iterator[Record]:
    """The episode as one trajectory, the reward in `extra`."""
    line = episode.line
    steps = [*_given(line), *_played(line)]
    for number, step in enumerate(steps, 1):
        step["step_id"] = number
    provenance = line.get("provenance") or {}
    agent = {
        "name": (line.get("agent_ref") or {}).get("name") or "trivium",
        "version": str(provenance.get("trivium") or "0"),
        "model_name": provenance.get("model") or line["response"].get("model"),
        "tool_definitions": tools_of(line) or None,
    }
    yield {
        "schema_version": SCHEMA_VERSION,
        "session_id": f"{provenance.get('run_id') or 'run'}-{episode.standing['group_id']}-{line.get('rollout_index') or 0}",
        "agent": _present(agent),
        "steps": steps,
        "final_metrics": _final(line, len(steps)),
        "extra": {
            "reward": float(line["reward"]),
            "reward_components": line.get("reward_components"),
            "outcome": line.get("outcome"),
            "metrics": line.get("metrics") or {},
            **episode.identity,
        },
    }


def _given(line: Line) -> Iterator[Record]:
    """What the model was shown before it said anything."""
    params = (line.get("task_input") or line).get("responses_create_params") or {}
    if params.get("instructions"):
        yield {"source": "system", "message": params["instructions"]}
    for item in user_items(params.get("input") or []):
        text = message_text(item) or str(item.get("output") or "")
        copied = {"is_copied_context": True} if item.get("role") == "assistant" else {}
        yield {"source": SOURCES.get(str(item.get("role")), "system"), "message": text, **copied}


def _played(line: Line) -> Iterator[Record]:
    """One step per model call, with its calls, their results, and its tokens where they are known."""
    told = line.get("steps") or []
    turns = _turns(line)
    for number, (made, results) in enumerate(_model_calls(line["response"].get("output") or [])):
        step = told[number] if number < len(told) else {}
        turn = turns[number] if number < len(turns) else None
        yield _present(
            {
                "source": "agent",
                "timestamp": _timestamp(step.get("started_at")),
                "message": "".join(message_text(item) for item in made if item.get("type", "message") == "message"),
                "reasoning_content": _reasoning(made),
                "tool_calls": [_call(item) for item in made if item.get("type") == "function_call"] or None,
                "observation": {"results": [_result(item) for item in results]} if results else None,
                "metrics": _metrics(step, turn),
                "llm_call_count": 1,
            }
        )


def _model_calls(items: list[dict[str, Any]]) -> Iterator[tuple[list[Record], list[Record]]]:
    """Items of each model call, with the outputs that answered it."""
    made: list[Record] = []
    results: list[Record] = []
    for item in items:
        if item.get("type") == "function_call_output":
            results.append(item)
            continue
        if results:
            yield made, results
            made, results = [], []
        made.append(item)
    if made or results:
        yield made, results


def _turns(line: Line) -> list[Turn | None]:
    try:
        return turns_of(line)
    except TokensError:
        return []


def _call(item: Record) -> Record:
    arguments = item.get("arguments") or "{}"
    try:
        arguments = strict_json.loads(arguments) if isinstance(arguments, str) else arguments
    except strict_json.JSONError:
        arguments = None
    told = {"tool_call_id": str(item.get("call_id") or ""), "function_name": str(item.get("name") or "")}
    if isinstance(arguments, dict):
        return {**told, "arguments": arguments}
    return {**told, "arguments": {}, "extra": {"arguments_as_written": item.get("arguments")}}


def _result(item: Record) -> Record:
    output = item.get("output")
    text = output if isinstance(output, str) else strict_json.dumps(output).decode()
    return {"source_call_id": str(item.get("call_id") or ""), "content": text}


def _reasoning(made: list[Record]) -> str | None:
    parts = [
        part.get("text") or ""
        for item in made
        if item.get("type") == "reasoning"
        for part in [*(item.get("content") or []), *(item.get("summary") or [])]
        if isinstance(part, dict)
    ]
    return "\n".join(parts) or None


def _metrics(step: Record, turn: Turn | None) -> Record | None:
    usage = step.get("usage") or {}
    return (
        _present(
            {
                "prompt_tokens": usage.get("input_tokens"),
                "completion_tokens": usage.get("output_tokens"),
                "cached_tokens": (usage.get("input_tokens_details") or {}).get("cached_tokens"),
                "prompt_token_ids": turn.prompt_ids if turn else None,
                "completion_token_ids": turn.generation_ids if turn else None,
                "logprobs": turn.log_probs if turn else None,
            }
        )
        or None
    )


def _final(line: Line, steps: int) -> Record:
    usage = line["response"].get("usage") or {}
    return _present(
        {
            "total_prompt_tokens": usage.get("input_tokens"),
            "total_completion_tokens": usage.get("output_tokens"),
            "total_cached_tokens": (usage.get("input_tokens_details") or {}).get("cached_tokens"),
            "total_steps": steps,
        }
    )


def _timestamp(seconds: Any) -> str | None:
    if not isinstance(seconds, int | float) or not 0 <= seconds <= LATEST:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _present(record: Record) -> Record:
    return {key: value for key, value in record.items() if value is not None}
