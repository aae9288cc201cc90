"""Plug-ins by short name or dotted path; a wrong name helps."""

import json
from pathlib import Path

import pytest

from wire import plugins
from wire.errors import UsageError


def test_a_dotted_path_names_any_class() -> None:
    """Anything on the Python path."""
    assert plugins.load("wire", "json:JSONDecoder", json.JSONDecoder) is json.JSONDecoder


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("clint", r"did you mean 'client'\? have: "),
        ("no_such_package.world:World", "no module 'no_such_package'"),
        ("json:Decoder", r"module json has no class 'Decoder'"),
        ("json:JSONEncoder", "is no JSONDecoder"),
    ],
)
def test_a_wrong_name_says_what_would_be_right(name: str, words: str) -> None:
    """The nearest name and all that exist."""
    with pytest.raises(UsageError, match=words):
        plugins.load("wire", name, json.JSONDecoder)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise RuntimeError('no data')", r"cannot be imported: RuntimeError: no data \(.*broken_world\.py:1\)"),
        ("import sys; sys.exit(0)", "cannot be imported: SystemExit: 0"),
        ("def", "cannot be imported: SyntaxError: invalid syntax"),
    ],
)
def test_a_module_that_fails_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    """Also one that leaves at its import: the command would end with status 0 and nothing done."""
    (tmp_path / "broken_world.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=words):
        plugins.load("wire", "broken_world:World", object)
