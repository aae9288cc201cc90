"""Rows for the trainers that know NeMo Gym: NeMo RL and veRL."""

from collections.abc import Iterator
from typing import Any

from rollouts.export.conversation import prompt_of
from rollouts.export.reading import Episode, Line, NotExported, Selection
from rollouts.export.samples import samples_of
from rollouts.export.tokens import turns_of
from wire import strict_json
from wire.responses import TOKEN_FIELDS
from wire.rollout import RESERVED

Record = dict[str, Any]


def nemo_rl(episode: Episode, selection: Selection) -> Iterator[Record]:
    """The rollout as NeMo RL's Gym environment post-processes it: the three token fields, whole prompt included, on the last output
    item of each model call; `reward_components` that sum to the reward; numeric metrics at the top."""
    samples = samples_of(episode.line, selection)
    if samples.reason:
        raise NotExported(samples.reason)
    line = episode.line
    numbers = {name: value for name, value in (line.get("metrics") or {}).items() if name not in line}
    kept = {name: value for name, value in line.items() if name not in {"steps", "state", "accepted_calls", "metrics"}}
    yield {
        **kept,
        **numbers,
        "response": {**line["response"], "output": with_token_fields(line)},
        "reward": float(line["reward"]),
        "instance_config": {**(line.get("instance_config") or {}), "mask_sample": False},
        **episode.standing,
        "sampling": episode.sampling,
    }


def with_token_fields(line: Line) -> list[dict[str, Any]]:
    """Output items with the token fields on the last item that each model call made."""
    items = [dict(item) for item in line["response"].get("output") or []]
    if any(item.get("generation_token_ids") is not None for item in items):
        return items
    ends = _ends(items)
    for turn, end in zip(turns_of(line), ends, strict=False):
        if turn is not None:
            fields = dict(zip(TOKEN_FIELDS, (turn.prompt_ids, turn.generation_ids, turn.log_probs), strict=True))
            items[end] |= fields
    return items


def _ends(items: list[dict[str, Any]]) -> list[int]:
    """Index of the last item of each model call: calls are parted by what the tools answered."""
    ends: list[int] = []
    inside = False
    for index, item in enumerate(items):
        made = item.get("type") != "function_call_output" and item.get("role") not in {"user", "system", "developer"}
        if made and inside:
            ends[-1] = index
        elif made:
            ends.append(index)
        inside = made
    return ends


def verl(episode: Episode, selection: Selection) -> Iterator[Record]:
    """A row of a veRL data set: the prompt as role and content, what rewards it, and which agent plays it.

    What differs from row to row is JSON text, since its reader makes one struct of every object: keys of other rows would come in, as null.
    """
    line = episode.line
    truth = {
        name: value
        for name, value in line.items()
        if name not in _OURS and not name.startswith("_ng_") and name != "responses_create_params"
    }
    yield {
        "data_source": episode.identity["environment"],
        "prompt": prompt_of(line),
        "ability": episode.identity["environment"],
        "reward_model": {"style": "rule", "ground_truth": _text(truth)},
        "agent_ref": line.get("agent_ref") or {},
        "responses_create_params": _text((line.get("task_input") or line).get("responses_create_params") or {}),
        "extra_info": {
            "index": line.get("task_index", line.get("_ng_task_index")),
            **episode.identity,
            **episode.standing,
            "reward": float(line["reward"]),
            "split": "train",
        },
    }


def _text(value: Any) -> str:
    return strict_json.dumps(value).decode()


_OURS = RESERVED | {"environment", "agent_ref", "task_index", "rollout_index", "attempt", "group_size"}
