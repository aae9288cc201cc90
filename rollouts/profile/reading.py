"""Lines of one or more runs as figures, in one pass each; what failed for good is counted from the failures file beside."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollouts.lines import refuse_foreign
from wire import jsonl
from wire.figures import SOLVED, Figures, environment_of, task_of

Key = tuple[str, str]  # environment, model


@dataclass
class Profile:
    """Figures by environment and model, in order of first sight."""

    paths: list[Path]
    threshold: float = SOLVED
    by_key: dict[Key, Figures] = field(default_factory=dict)

    def add(self, line: dict[str, Any], source: str) -> None:
        """One line; `source` names the model where the line does not."""
        key = key_of(line, source)
        figures = self.by_key.get(key)
        if figures is None:
            figures = self.by_key[key] = Figures(self.threshold)
        figures.add(line)

    @property
    def environments(self) -> list[str]:
        """Names, in order of first sight."""
        return list(dict.fromkeys(environment for environment, _ in self.by_key))

    def models(self, environment: str) -> dict[str, Figures]:
        """Figures of each model in one environment."""
        return {model: figures for (name, model), figures in self.by_key.items() if name == environment}


def read(paths: Iterable[Path], threshold: float = SOLVED) -> Profile:
    """Profile rollouts files; each one's `_failures.jsonl` is read with it.

    Raises:
        UsageError: a file cannot be read or a line is no JSON object; the message names `file:line`.
    """
    profile = Profile(list(paths), threshold)
    for path in profile.paths:
        done: set[tuple[Any, ...]] = set()
        for number, line in jsonl.read(path):
            refuse_foreign(f"{path}:{number}", line)
            done.add(_rollout(line))
            profile.add(line, path.stem)
        for line in failed_for_good(path, done):
            profile.add(line, path.stem)
    return profile


def failed_for_good(path: Path, done: set[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """The last failed attempt of each rollout that never got a verdict, without what it played."""
    failures = path.with_name(f"{path.stem}_failures.jsonl")
    if not failures.exists():
        return
    last: dict[tuple[Any, ...], dict[str, Any]] = {}
    for _, line in jsonl.read(failures):
        if _rollout(line) not in done:
            last[_rollout(line)] = {key: value for key, value in line.items() if key not in {"response", "steps"}}
    yield from last.values()


def key_of(line: dict[str, Any], source: str) -> Key:
    """Environment and model of a line, as far as it says."""
    model = (line.get("provenance") or {}).get("model") or (line.get("response") or {}).get("model") or source
    return environment_of(line) or "-", str(model)


def _rollout(line: dict[str, Any]) -> tuple[Any, ...]:
    return environment_of(line), task_of(line), line.get("rollout_index", line.get("_ng_rollout_index"))
