"""From a config to its environments' cards: rows are read, resources servers started, each environment examined."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rollouts import sources, worlds
from rollouts import stack as stacks
from rollouts.check.card import Card
from rollouts.check.examine import AUGMENTED, examine
from rollouts.check.world import World
from rollouts.launcher import launched
from rollouts.stack import RESOURCES, Environment, Stack
from rollouts.token import for_stack
from wire import jsonl
from wire.errors import UsageError


async def cards(
    configs: Sequence[str],
    overrides: Sequence[str] = (),
    *,
    rows: int,
    given: Path | None = None,
    only: Sequence[str] = (),
) -> list[Card]:
    """One card for each environment of the configs.

    Args:
        configs: Files or bundled names; each is a stack of its own.
        overrides: `key=value` pairs.
        rows: Of each data set, at most; spread over all of it.
        given: Rows in place of the configs' own.
        only: Probes to make; all by default.

    Raises:
        UsageError: a config, an environment or a row is wrong.
    """
    return [each for config in configs for each in await _cards(config, overrides, rows=rows, given=given, only=only)]


async def _cards(
    config: str, overrides: Sequence[str], *, rows: int, given: Path | None, only: Sequence[str]
) -> list[Card]:
    """The environments' cards, then those of the augmented ones under augmentation."""
    stack = stacks.read([config], [*overrides, f"{RESOURCES}.solutions=true"])
    read = sources.sources(stack, given=given, mix=None, away=False)
    samples = {each.name: sample(each.dataset, rows) for each in read}
    augmented = {each.name: each.settings["augment"] for each in stack.environments if each.settings.get("augment")}
    for each in stack.environments:
        each.settings["augment"] = None  # the very dict that its server gets
    found = await _launched(stack, stack.environments, samples, only)
    if not augmented:
        return found
    for each in stack.environments:
        each.settings["augment"] = augmented.get(each.name)
    again = [each for each in stack.environments if each.name in augmented]
    return found + await _launched(stack, again, samples, only or AUGMENTED)


async def _launched(
    stack: Stack, chosen: Sequence[Environment], samples: Mapping[str, list[dict[str, Any]]], only: Sequence[str]
) -> list[Card]:
    token = for_stack("token")  # whatever the config says: the probes try to do without it
    async with launched(stack.servers([each.server for each in chosen]), token=token) as running:
        return [await card(each, running.urls[each.server], token, samples[each.name], only) for each in chosen]


async def card(
    environment: Environment, url: str, token: str | None, rows: Sequence[dict[str, Any]], only: Sequence[str] = ()
) -> Card:
    """The card of an environment whose server runs already."""
    cls = worlds.environment(str(environment.settings["environment"]), environment.settings.get("options"))
    async with World(url, token, cls, augmented=bool(environment.settings.get("augment"))) as world:
        return await examine(world, rows, only=only)


def sample(dataset: Path | None, count: int) -> list[dict[str, Any]]:
    """So many rows, spread over the data set.

    Raises:
        UsageError: there are none.
    """
    found = [row for _, row in itertools.islice(jsonl.read(dataset), 100_000)] if dataset is not None else []
    if not found:
        raise UsageError(f"no rows to try in {dataset}")
    count = min(count, len(found))
    return [found[index * len(found) // count] for index in range(count)]
