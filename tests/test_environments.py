"""What every environment owes the platform, checked on each bundled one: they are found, not listed."""

import inspect
import itertools
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from resources_server import Call, Environment, Game, Response, ToolError, Verdict
from rollouts import sources
from rollouts import stack as stacks
from rollouts.check import served
from rollouts.check.served import sample
from wire import jsonl, plugins, strict_json
from wire.rollout import check_row
from wire.testing import one_server

ROOT = Path(__file__).parent.parent
PACKAGE = "resources_server.environments"
ROWS = 40  # of each data set; all of a large one would only take longer
CHECKED = 2  # by all probes


def bundled() -> list[str]:
    return plugins.names(PACKAGE)


def environment(name: str) -> type[Environment[Any]]:
    config = yaml.safe_load((ROOT / "configs" / f"{name}.yaml").read_text())
    return plugins.load(PACKAGE, name, Environment).bound(config["resources_server"].get("options") or {})


def rows(name: str) -> Iterator[dict[str, Any]]:
    config = yaml.safe_load((ROOT / "configs" / f"{name}.yaml").read_text())
    return itertools.islice((row for _, row in jsonl.read(ROOT / config["rollouts"]["dataset"])), ROWS)


async def settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def seeded(cls: type[Environment[Any]], row: dict[str, Any]) -> Environment[Any]:
    world = cls.of_row(row)
    await settled(world.seed())
    return world


async def play(world: Environment[Any], solution: list[Call] | str) -> Response:
    """The reference solution, by the way a model's calls take."""
    if isinstance(solution, str):
        return Response(output=[{"type": "message", "role": "assistant", "content": solution}])
    for call in solution:
        tool = type(world).step_tool if call.name == "act" and isinstance(world, Game) else type(world).tools[call.name]
        try:
            await settled(tool.bind(world)(**tool.check(strict_json.dumps(call.arguments))))
        except ToolError as error:
            pytest.fail(f"the reference solution was refused: {call}: {error}")
    return Response(output=[{"type": "message", "role": "assistant", "content": "done"}])


async def reward(world: Environment[Any], response: Response) -> float:
    found = await settled(world.verify(response))
    return found.reward if isinstance(found, Verdict) else float(found)


@pytest.mark.parametrize("name", bundled())
def test_a_config_of_ten_lines_and_rows_that_fit(name: str) -> None:
    """`trivium collect NAME` works: a config by its name, and a data set whose every row has what the class asks for."""
    text = (ROOT / "configs" / f"{name}.yaml").read_text()
    assert len([line for line in text.splitlines() if line.strip() and not line.startswith("#")]) <= 10
    assert yaml.safe_load(text)["extends"] == "base.yaml"
    found = list(rows(name))
    assert len(found) >= 5
    for row in found:
        assert check_row(row) is None
        environment(name).of_row(row)


@pytest.mark.parametrize("name", bundled())
def test_tools_are_told_in_full(name: str) -> None:
    """The model gets a description of each tool and of each argument, in a schema that is valid."""
    for tool in environment(name).tools.values():
        schema = tool.definition["parameters"]
        jsonschema.Draft202012Validator.check_schema(schema)
        for argument, described in schema["properties"].items():
            assert described.get("description"), f"{name}: {tool.name}: describe {argument!r} under Args:"


@pytest.mark.parametrize("name", bundled())
def test_a_class_says_what_it_is(name: str) -> None:
    """A docstring for people, a version for comparisons."""
    cls = plugins.load(PACKAGE, name, Environment)
    assert inspect.getdoc(inspect.getmodule(cls))
    assert cls.version


@pytest.mark.parametrize("name", bundled())
async def test_the_same_row_makes_the_same_world_twice(name: str) -> None:
    """Seeding depends on the row and on nothing else; two worlds share no state."""
    cls = environment(name)
    for row in itertools.islice(rows(name), 5):
        first, second = await seeded(cls, row), await seeded(cls, row)
        assert first == second and first.state() == second.state()


@pytest.mark.parametrize("name", bundled())
async def test_the_reference_solution_scores_the_most_and_nothing_scores_less(name: str) -> None:
    """Each task is solvable. A class without `solution()` says so by not having one."""
    cls = environment(name)
    if cls.solution is Environment.solution:
        pytest.skip(f"{name} has no solution()")
    for row in rows(name):
        world = await seeded(cls, row)
        assert await reward(world, await play(world, await settled(world.solution()))) >= 1.0, row.get("task_id")


@pytest.mark.parametrize("name", bundled())
async def test_a_stored_state_gives_the_same_verdict(name: str) -> None:
    """The state goes through JSON and another process: nothing that the verdict needs may be outside the fields."""
    cls = environment(name)
    if cls.solution is Environment.solution:
        pytest.skip(f"{name} has no solution()")
    for row in itertools.islice(rows(name), 10):
        world = await seeded(cls, row)
        response = await play(world, await settled(world.solution()))
        stored = cls.restored(row, strict_json.loads(strict_json.dumps(world.state())), world.calls)
        assert stored.state() == world.state()
        assert await settled(stored.verify(response)) == await settled(world.verify(response))
        assert await settled(world.verify(response)) == await settled(world.verify(response))


@pytest.mark.timeout(400)  # programs run in sandboxes, hundreds of them
@pytest.mark.parametrize("name", bundled())
async def test_it_is_fit_to_train_on(name: str) -> None:
    """`trivium check NAME` finds no fault: the card of each, on two rows; more are tried by the command."""
    stack = stacks.read([name], ["resources_server.solutions=true"])
    world = stack.environments[0]
    app = import_module("resources_server.app").build(world.config, {}, "token", "resources_server")
    sampled = sample(sources.find(str(world.dataset), str(ROOT / "configs" / f"{name}.yaml")), CHECKED)
    async with one_server(app) as url:
        card = await served.card(world, url, "token", sampled)
    assert card.fit, card.as_markdown()
