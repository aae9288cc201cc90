"""The code of the authoring guide runs as it is printed."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.resources_server.conftest import Serve

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "write-an-environment.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def names_in(marker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the block that has `marker` defines."""
    (block,) = [each for each in BLOCKS if marker in each]
    (tmp_path / "catalogue.txt").write_text("one\ntwo\n")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": __name__}
    exec(compile(block, str(GUIDE), "exec"), names)
    return names


async def test_the_office(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A toolkit's tool and state."""
    async with serve(names_in("class Office", tmp_path, monkeypatch)["Office"]) as world:
        await world.post("/seed_session", {})
        assert (await world.post("/mail_send", {"to": "ana"})).text == "sent"
        done = (await world.post("/verify", {"response": {"output": []}})).json
        assert (done["reward"], done["state"]) == (1.0, {"mail": {"sent": ["ana"]}})


def test_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options and what is shared."""
    library = names_in("class Library", tmp_path, monkeypatch)["Library"]
    assert library.shared == ["one", "two"]
    (tmp_path / "other.txt").write_text("three\n")
    assert library.bound({"catalogue": "other.txt"}).of_row({}).shared == ["three"]


async def test_the_game(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Played over HTTP."""
    async with serve(names_in("class Guess(", tmp_path, monkeypatch)["Guess"]) as world:
        await world.post("/reset", {"secret": 7})
        assert (await world.post("/step", {"action": 3})).json["observation"] == "higher"
        assert (await world.post("/step", {"action": 7})).json["terminated"] is True


def test_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It passes."""
    names_in("def test_an_order", tmp_path, monkeypatch)["test_an_order_is_reserved_exactly"]()


async def test_what_needs_a_loop_of_its_own(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sandbox opens when the server starts; a program that ends well is worth 1."""
    async with serve(names_in("class Runs", tmp_path, monkeypatch)["Runs"]) as world:
        said = [{"type": "message", "role": "assistant", "content": text} for text in ("print(1)", "1 / 0")]
        found = [(await world.post("/verify", {"response": {"output": [each]}}, session=None)).json for each in said]
    assert [each["reward"] for each in found] == [1.0, 0.0]
