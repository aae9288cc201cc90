"""`trivium new`: what it writes works untouched."""

import subprocess
import sys
from pathlib import Path

import pytest

from rollouts.commands.new import contents
from tests.rollouts.command import environment, trivium

EXAMPLE_LINES = 46  # of the whole environment in the guide's example


@pytest.mark.parametrize("kind", ["tools", "game", "answer"])
def test_a_new_environment_is_fit_and_its_test_passes(tmp_path: Path, kind: str) -> None:
    """`trivium new demo && trivium check configs/demo.yaml` in an empty folder."""
    made = trivium("new", "demo", "--kind", kind, folder=tmp_path)
    assert made.status == 0, made.err
    checked = trivium("check", "configs/demo.yaml", "--rows", "3", "--json", "card.json", folder=tmp_path)
    assert checked.status == 0, checked.out + checked.err
    assert (tmp_path / "card.json").read_bytes().startswith(b'[{"fit":true')
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_demo.py"], cwd=tmp_path, env=environment(), check=False
    )
    assert tested.returncode == 0


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """Not even one of the files: then none is written."""
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "demo.yaml").write_text("mine")
    said = trivium("new", "demo", folder=tmp_path)
    assert said.status == 2 and "configs/demo.yaml exists already" in said.err
    assert not (tmp_path / "demo.py").exists()


def test_what_runs_write_is_ignored_by_git(tmp_path: Path) -> None:
    """A folder without a .gitignore gets one that names the default output; one that is there stays, and stops nothing."""
    assert trivium("new", "demo", folder=tmp_path).status == 0
    assert {"/results/", "/runs/"} <= set((tmp_path / ".gitignore").read_text().splitlines())
    (tmp_path / ".gitignore").write_text("mine\n")
    assert trivium("new", "other", folder=tmp_path).status == 0
    assert (tmp_path / ".gitignore").read_text() == "mine\n"


@pytest.mark.parametrize("name", ["Demo", "my-world", "../x", "json", "counter", "class", "task", ""])
def test_a_bad_name_is_refused(tmp_path: Path, name: str) -> None:
    """One that could not be imported, or that would hide another."""
    said = trivium("new", name, folder=tmp_path)
    assert said.status == 2 and said.err.startswith("trivium: ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["tools", "game", "answer"])
def test_a_new_environment_is_no_longer_than_the_example(kind: str) -> None:
    """And its config has at most ten lines."""
    files = contents("demo", kind)
    assert len(files["demo.py"].splitlines()) <= EXAMPLE_LINES
    assert len(files["configs/demo.yaml"].splitlines()) <= 10
