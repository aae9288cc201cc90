"""From a stack to what a collection needs of it: whose rows, in what mix, and what makes its lines comparable."""

import hashlib
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rollouts.plan import Source
from rollouts.stack import AGENT, MODEL, Environment, Stack
from wire.config import bundled, masked
from wire.errors import UsageError

OF_THE_MODEL = ("backend", "model", "extra_body", "options", "tool_calls", "reasoning")  # what changes its answers
OF_THE_AGENT = ("agent", "options", "max_steps")


def sources(stack: Stack, *, given: Path | None, mix: str | None, away: bool) -> list[Source]:
    """One source per environment.

    Args:
        stack: Whose environments.
        given: Rows to play in place of the environments' own; with several environments each row names the one it means.
        mix: `a=3,b=1`, weights by environment.
        away: The servers are run by somebody else: where their sessions are closed is not known.
    """
    weights = _weights(mix, [each.name for each in stack.environments])
    several = len(stack.environments) > 1
    return [
        Source(
            name=each.name,
            dataset=_rows_of(each, given, first=index == 0),
            repeats=each.repeats if several else None,
            limit=each.limit if several else None,
            weight=weights.get(each.name, each.share),
            resources_server=None if away else each.server,
            environment=str(each.settings["environment"]) if each.settings.get("environment") else None,
            names_itself=several,
        )
        for index, each in enumerate(stack.environments)
    ]


def fingerprint(stack: Stack) -> dict[str, Any]:
    """What lines of one run have in common: environments and their options, agent, model and sampling; no time-outs, ports or paths."""
    worlds = {each.name: _some(each.settings, ("environment", "options")) for each in stack.environments}
    return {
        "environments": worlds,
        AGENT: _some(stack.section(AGENT), OF_THE_AGENT),
        MODEL: _some(stack.section(MODEL), OF_THE_MODEL),
    }


def code(stack: Stack) -> dict[str, str]:
    """Environment -> digest of the file that its class is in, where it is named as `module:Class`; none where it cannot be found here."""
    named = {each.name: str(each.settings.get("environment") or "") for each in stack.environments}
    found = {name: _source_of(place.partition(":")[0]) for name, place in named.items() if ":" in place}
    return {name: hashlib.sha256(text).hexdigest()[:16] for name, text in found.items() if text is not None}


def _source_of(module: str) -> bytes | None:
    try:
        spec = importlib.util.find_spec(module)
        return Path(spec.origin).read_bytes() if spec is not None and spec.origin else None
    except (ImportError, ValueError, OSError):
        return None


def find(path: str, config: str) -> Path:
    """A data set's file as a config names it: from the working folder, beside the config, or among those that are shipped."""
    places = [Path(path), Path(config).parent / path, bundled(*Path(path).parts)]
    return next((each for each in places if not Path(path).is_absolute() and each.is_file()), Path(path))


def _rows_of(environment: Environment, given: Path | None, *, first: bool) -> Path | None:
    if given is not None:
        return given if first else None
    if environment.dataset:
        return find(environment.dataset, environment.config.source)
    shipped = bundled("data", str(environment.settings.get("environment")), "example.jsonl")
    if shipped.is_file():
        return shipped
    raise UsageError(
        f"{environment.config.source}: no rows for {environment.name}: give --input FILE, or set rollouts.dataset"
    )


def _weights(mix: str | None, known: Sequence[str]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for part in filter(None, (mix or "").split(",")):
        name, _, text = part.partition("=")
        if name not in known:
            raise UsageError(f"--mix {mix}: there is no environment {name!r} (have: {', '.join(known)})")
        try:
            weights[name] = float(text)
        except ValueError:
            raise UsageError(f"--mix {mix}: {text!r} is no number; write {name}=3") from None
        if not 0 < weights[name] < float("inf"):
            raise UsageError(f"--mix {mix}: a weight is a number above 0")
    return weights


def _some(section: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    found = {key: section[key] for key in keys if section.get(key) not in (None, {}, [])}
    return dict(masked(found))
