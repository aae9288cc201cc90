"""From a config to tasks: the servers that it takes, and what is asked of them, in order."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollouts import sources, worlds
from rollouts import stack as stacks
from rollouts.check.world import World
from rollouts.launcher import launched
from rollouts.stack import AGENT, MODEL, RESOURCES, Stack
from rollouts.tasks import invent, sift, table, templates
from rollouts.tasks.model import Model
from rollouts.tasks.proof import flaw
from rollouts.token import for_stack
from wire import jsonl
from wire.client import Client
from wire.errors import UsageError

Row = dict[str, Any]


@dataclass(frozen=True)
class Order:
    """What is asked for.

    Attributes:
        count: Rows to draw from templates; 0 for none.
        given: Rows to start from instead.
        results: A table that another program made of a seeds table, and the column of its prompts.
        reword: Rewordings of each row.
        propose: New tasks to ask a model for.
        solves: Independent solves that a proposed task is put to.
        rollouts: Rollouts of the given rows, to keep those whose pass rate is within `rates`.
    """

    count: int = 0
    seed: int = 0
    given: Path | None = None
    results: tuple[Path, str] | None = None
    reword: int = 0
    propose: int = 0
    solves: int = 3
    rollouts: Path | None = None
    rates: tuple[float, float] = (0.05, 0.95)


@dataclass
class Made:
    """Tasks, and how many did not become one, by reason."""

    rows: list[Row] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)

    def take(self, found: Row | str) -> None:
        """A task, or the sentence that says why there is none."""
        (self.dropped if isinstance(found, str) else self.rows).append(found)  # type: ignore[arg-type]


async def make(config: str, overrides: Sequence[str], order: Order, report: Callable[[str], None]) -> Made:
    """The tasks.

    Raises:
        UsageError: config, environment or order is wrong.
    """
    stack = stacks.read([config], [*overrides, f"{RESOURCES}.solutions=true"])
    if len(stack.environments) != 1:
        raise UsageError(f"{config}: tasks are made for one environment at a time")
    settings = stack.environments[0].settings
    cls = worlds.environment(str(settings["environment"]), settings.get("options"))
    made = Made()
    for found in _started(stack, cls, order):
        made.take(found)
    if order.rollouts is not None:
        made.rows = sift.between(made.rows, sift.pass_rates(order.rollouts), *order.rates)
        report(f"{len(made.rows)} have a pass rate from {order.rates[0]:g} to {order.rates[1]:g}")
    async with _servers(stack, cls, order) as (world, model):
        made = await _proven(world, made)
        report(f"{len(made.rows)} hold up when their solution is carried out")
        if model is not None:
            await _invented(world, model, order, made)
    made.rows = sift.distinct(made.rows)
    return made


def _started(stack: Stack, cls: Any, order: Order) -> list[Row | str]:
    if order.results is not None:
        return list(table.read(*order.results))
    if order.given is not None:
        return [row for _, row in jsonl.read(order.given)]
    if order.count:
        return list(templates.drawn(cls, order.count, order.seed))
    (source,) = sources.sources(stack, given=None, mix=None, away=False)
    assert source.dataset is not None
    return [row for _, row in jsonl.read(source.dataset)]


async def _proven(world: World, made: Made) -> Made:
    found = Made(dropped=made.dropped)
    for row in made.rows:
        found.take(await flaw(world, row) or row)
    return found


async def _invented(world: World, model: Model, order: Order, made: Made) -> None:
    originals = list(made.rows)
    if order.propose and not originals:
        raise UsageError("a model proposes tasks after examples, and there are none")
    for row in originals:
        for number in range(order.reword):
            made.take(await invent.reworded(model, world, row, number))
    for number in range(order.propose):
        made.take(await invent.proposed(model, world, originals, number, order.solves))


@asynccontextmanager
async def _servers(stack: Stack, cls: Any, order: Order) -> AsyncIterator[tuple[World, Model | None]]:
    """The resources server; the others where a model is wanted."""
    wanted = [RESOURCES, *([MODEL] if order.reword or order.propose else []), *([AGENT] if order.propose else [])]
    token = for_stack("token")
    async with AsyncExitStack() as held:
        running = await held.enter_async_context(launched(stack.servers(wanted), token=token))
        url = running.urls[stack.environments[0].server]
        world = await held.enter_async_context(World(url, token, cls))
        client = await held.enter_async_context(Client(running.urls, token=token))
        yield world, Model(client) if len(wanted) > 1 else None
