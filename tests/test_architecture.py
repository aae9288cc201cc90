"""Who may import whom. A line that breaks this belongs in another room."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("wire", "model_interface", "resources_server", "agent_server", "rollouts")
PLUGIN_FOLDERS = ("resources_server.environments", "model_interface.backends", "agent_server.agents")
OPEN_TO_ENVIRONMENTS = {"environments", "grading", "sandbox", "game", "tool"}  # and the classes of the face
MODULES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, at its top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module or ""
            yield from (f"{node.module}.{each.name}" for each in node.names)


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_itself_and_wire(path: Path) -> None:
    """Servers meet over HTTP; `wire` knows none of them."""
    room = path.relative_to(ROOT).parts[0]
    foreign = {name.partition(".")[0] for name in imported(path)} & set(ROOMS) - {room}
    assert foreign <= ({"wire"} if room != "wire" else set())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_plugins_are_loaded_by_name_only(path: Path) -> None:
    """Nobody imports an environment, an agent or a backend but the package it is made of."""
    own = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in PLUGIN_FOLDERS:
        names = {name for name in imported(path) if name.startswith(folder + ".")}
        if within(own, folder):
            plugin = ".".join(own.split(".")[: folder.count(".") + 2])
            shared = {
                name for name in names if name[len(folder) + 1 :].startswith("_")
            }  # private helpers of the folder
            names = {name for name in names - shared if not within(name, plugin)}
        assert not names, f"{own} imports {sorted(names)}"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "resources_server/environments").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_an_environment_sees_the_face_of_its_room(path: Path) -> None:
    """What the bundled environments need is what an author's own can have: the face, the verdicts, the sandbox."""
    for name in imported(path):
        if within(name, "resources_server"):
            inside = name.split(".")[1:2]
            assert not inside or inside[0] in OPEN_TO_ENVIRONMENTS or inside[0][0].isupper(), name


def test_no_import_cycles() -> None:
    """Modules of one room can be read in an order."""
    graph = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in MODULES}
    edges = {
        name: {each for each in imported(path) if each in graph and each != name and not within(name, each)}
        for name, path in graph.items()
    }
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join((*above, name))
        if name not in done:
            for each in edges[name]:
                visit(each, (*above, name))
            done.add(name)

    for name in edges:
        visit(name, ())
