"""Plug-ins by short name or dotted path; a wrong name helps."""

import json

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
