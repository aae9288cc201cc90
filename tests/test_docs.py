"""The README and the docs are true: what they show runs, what they name exists."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rollouts.cli import COMMANDS, command
from rollouts.export.formats import FORMATS
from tests.stack import ROOT, trivium
from wire import jsonl, plugins
from wire.rollout import RESERVED

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return [body for name, body in FENCE.findall(text) if name == language]


@pytest.fixture
def parcels(tmp_path: Path) -> Path:
    """The README's environment, written down file by file as it stands."""
    for body in [*blocks(README, "python"), *blocks(README, "yaml")]:
        name = re.match(r"# (\S+)\n", body)
        assert name is not None
        (tmp_path / name.group(1)).write_text(body)
    (tmp_path / "parcels.jsonl").write_text(blocks(README, "json")[-1])
    return tmp_path


def test_the_environment_of_the_readme_is_solvable(parcels: Path) -> None:
    """Its files as printed, played by its own solution: reward 1."""
    done = trivium(
        "collect", "parcels.yaml", "model_interface.backend=reference", "--output", "o.jsonl", cwd=parcels, path=parcels
    )
    assert done.returncode == 0, done.stderr
    assert [line["reward"] for _, line in jsonl.read(parcels / "o.jsonl")] == [1.0]


def test_the_test_of_the_readme_passes(parcels: Path) -> None:
    """With the constructor and method calls alone."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_parcels.py"]
    done = subprocess.run(
        command, cwd=parcels, env={"PYTHONPATH": f"{ROOT}:{parcels}"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_readmes_config_is_at_most_ten_lines() -> None:
    """So are those of the bundled environments."""
    for text in (
        *blocks(README, "yaml"),
        *(path.read_text() for path in (ROOT / "configs").glob("*.yaml") if path.stem != "base"),
    ):
        assert len([line for line in text.splitlines() if line.strip() and not line.startswith("#")]) <= 10, text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Relative links of every page."""
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_are_shown_exist(page: Path) -> None:
    """Every `trivium X` in a block or in backticks."""
    for name in re.findall(r"(?:^|`|/bin/|run --rm )trivium ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE):
        assert name in COMMANDS, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_options_that_are_shown_exist(page: Path) -> None:
    """Every `--option` of a `trivium` command line in a block."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for name, rest in re.findall(r"^(?:\.venv/bin/)?trivium ([a-z]+)\b([^\n#]*)", text, re.MULTILINE):
        known = {each for param in command(name).params for each in [*param.opts, *param.secondary_opts]}
        assert set(re.findall(r"(?<= )--[a-z][a-z-]*", rest)) <= known, (name, rest)


def test_the_page_on_export_names_every_format() -> None:
    """In its table, each once; and `parquet`, which is one of them by another name."""
    page = (ROOT / "docs/how-to/export.md").read_text(encoding="utf-8")
    table = page.partition("| format |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `([a-z-]+)` ", table, re.MULTILINE)) == sorted(FORMATS)
    options = {each for param in command("export").params for each in [*param.opts, *param.secondary_opts]}
    assert set(re.findall(r"`(--[a-z-]+)", page)) <= options


def test_the_page_on_rows_names_every_reserved_field() -> None:
    """A row with one of them is refused, so its maker must be able to read which they are."""
    page = (ROOT / "docs/reference/rows.md").read_text(encoding="utf-8")
    told = page.partition("cannot be a row's own:")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", told)) == RESERVED


@pytest.mark.parametrize(
    ("page", "package"), [("agents", "agent_server.agents"), ("backends", "model_interface.backends")]
)
def test_the_page_on_plug_ins_names_each(page: str, package: str) -> None:
    """In its table, or in the text."""
    text = (ROOT / f"docs/how-to/{page}.md").read_text(encoding="utf-8")
    assert [name for name in plugins.names(package) if f"`{name}`" not in text] == []


def test_the_readme_leads_to_every_page() -> None:
    """Of how-to and reference; a new page is linked when it is written."""
    linked = set(re.findall(r"\]\(([^)#\s]+)", README))
    pages = [*(ROOT / "docs/how-to").glob("*.md"), *(ROOT / "docs/reference").glob("*.md")]
    assert {str(page.relative_to(ROOT)) for page in pages} - linked == set()


def test_the_map_names_what_exists() -> None:
    """And every package is on it."""
    named = set(re.findall(r"^\| `(\w+)/`", README, re.MULTILINE)) | {"configs", "data"}
    assert {name for name in named if not (ROOT / name).is_dir()} == set()
    assert {"wire", "model_interface", "resources_server", "agent_server", "rollouts"} <= named


def test_the_reference_is_written_from_the_code() -> None:
    """docs/reference/config.md and failures.md."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/reference", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_every_bundled_environment_has_a_page_or_is_a_lesson() -> None:
    """`counter` and `warehouse` are explained by their code."""
    environments = {
        path.stem for path in (ROOT / "resources_server/environments").glob("*") if path.stem[0] not in "_."
    }
    pages = {path.stem for path in (ROOT / "docs/environments").glob("*.md")}
    assert environments - {"counter", "warehouse"} <= pages
