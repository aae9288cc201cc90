"""Which tasks stay: no two alike, neither too easy nor too hard; and which of them are for validation."""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rollouts.tasks.prompts import prompt_of, truth_of
from wire import jsonl, strict_json
from wire.figures import SOLVED

Row = dict[str, Any]


def distinct(rows: Iterable[Row]) -> list[Row]:
    """The rows without those that ask the same (but for case, spaces and punctuation) and have exactly the same truth."""
    found: dict[tuple[str, bytes], Row] = {}
    for row in rows:
        found.setdefault((normal(prompt_of(row)), _canonical(truth_of(row))), row)
    return list(found.values())


def normal(text: str) -> str:
    """The text with what does not change its meaning taken out."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


def pass_rates(rollouts: Path) -> dict[str, float]:
    """Share of solved rollouts by task: its `task_id`, else its prompt and truth."""
    rewards: dict[str, list[float]] = defaultdict(list)
    for _, line in jsonl.read(rollouts):
        if line.get("reward") is not None:
            rewards[key_of(line)].append(float(line["reward"] >= SOLVED))
    return {key: sum(each) / len(each) for key, each in rewards.items()}


def between(rows: Iterable[Row], rates: Mapping[str, float], least: float, most: float) -> list[Row]:
    """The rows whose pass rate is known and within bounds."""
    return [row for row in rows if least <= rates.get(key_of(row), -1.0) <= most]


def key_of(row: Mapping[str, Any]) -> str:
    """What a task is known by in a rollouts file."""
    if (given := row.get("task_id")) is not None:
        return str(given)
    return hashlib.sha256(_canonical(row["responses_create_params"]["input"])).hexdigest()


def split(rows: Sequence[Row], share: float) -> tuple[list[Row], list[Row]]:
    """Training and validation rows, with no template in both; about `share` of the templates, at least one, is for validation."""
    names = sorted({template_of(row) for row in rows}, key=lambda name: hashlib.sha256(name.encode()).digest())
    held_out = set(names[: max(1, round(share * len(names)))]) if len(names) > 1 else set()
    train = [row for row in rows if template_of(row) not in held_out]
    return train, [row for row in rows if template_of(row) in held_out]


def template_of(row: Mapping[str, Any]) -> str:
    """The row's template: as it says, else its task id without the number at the end."""
    return str(row.get("template") or re.sub(r"[-_]?\d+$", "", str(row.get("task_id") or key_of(row))))


def _canonical(value: Any) -> bytes:
    return strict_json.dumps(_sorted(value))


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value
