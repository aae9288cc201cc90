"""Configuration: three layers, and every mistake told at once with its file and path."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from wire import config
from wire.errors import UsageError


class Agent(BaseModel):
    model_config = ConfigDict(extra="forbid")
    max_steps: int = 20


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid")
    base_url: str = ""
    api_key: str | None = None
    headers: dict[str, str] = {}


SECTIONS: dict[str, type[BaseModel]] = {"agent_server": Agent, "model_interface": Model}


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_later_layers_win(tmp_path: Path) -> None:
    """base < file < command line."""
    write(tmp_path, "mine.yaml", "agent_server: {max_steps: 1}\nmodel_interface: {base_url: http://a, api_key: k}\n")
    path = write(tmp_path, "run.yaml", "extends: mine.yaml\nagent_server: {max_steps: 2}\n")
    loaded = config.load(path, ["model_interface.base_url=http://b"], SECTIONS)
    assert loaded.section("agent_server", Agent).max_steps == 2
    assert loaded.section("model_interface", Model) == Model(base_url="http://b", api_key="k")


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """Unknown key, wrong kind, undefined reference, unset variable, unknown section: one message, five lines."""
    path = write(
        tmp_path,
        "bad.yaml",
        "agent_server: {max_step: 9, max_steps: many}\n"
        "model_interface: {base_url: '${policy_base_url}', api_key: '${oc.env:TRIVIUM_NOT_SET}'}\n"
        "agentserver: {}\n",
    )
    with pytest.raises(UsageError) as caught:
        config.load(path, [], SECTIONS)
    lines = str(caught.value).splitlines()
    assert len(lines) == 5, lines
    assert all("bad.yaml" in line for line in lines)
    for words in ("did you mean 'max_steps'", "agent_server.max_steps is 'many'", "policy_base_url", "TRIVIUM_NOT_SET"):
        assert any(words in line for line in lines)


def test_a_misspelt_override_is_refused(tmp_path: Path) -> None:
    """A setting that would silently not apply is worse than an error."""
    path = write(tmp_path, "ok.yaml", "agent_server: {max_steps: 3}\n")
    with pytest.raises(UsageError, match=r"command line: .*'agent_server.max_stps' \(did you mean 'max_steps'\?\)"):
        config.load(path, ["agent_server.max_stps=3"], SECTIONS)


def test_a_boolean_is_no_number(tmp_path: Path) -> None:
    """`max_steps=true` would be 1: refused with its file, also inside lists, mappings and what an environment has of its own."""

    class Room(BaseModel):
        port: config.Port = 0
        waits: list[float] = []
        bounds: dict[str, int] = {}
        flag: bool = False
        either: int | bool = 0
        anything: dict[str, object] = {}

    rooms: dict[str, type[BaseModel]] = {"room": Room, "resources_server": Room, **SECTIONS}
    good = "room: {flag: true, either: true, anything: {a: true}}\n"
    assert config.load(write(tmp_path, "good.yaml", good), [], rooms).section("room", Room).either is True
    bad = "room: {port: true, waits: [1, false], bounds: {a: true}}\nenvironments: {w: {repeats: true, share: true, port: 1}}\n"
    with pytest.raises(UsageError) as refused:
        config.load(write(tmp_path, "bad.yaml", bad), ["agent_server.max_steps=true"], rooms)
    told = str(refused.value).splitlines()
    assert f"{tmp_path / 'bad.yaml'}: room.port is True: a number is wanted" in told
    assert "command line: agent_server.max_steps is True: a number is wanted" in told
    wrong = ["environments.w.repeats", "environments.w.share", "room.bounds.a", "room.port", "room.waits.1"]
    assert [each for each in wrong if any(f": {each} is " in line for line in told)] == wrong


def test_a_section_made_in_code_is_checked_like_a_file() -> None:
    """A server checks what it is sent."""
    with pytest.raises(UsageError, match=r"agent_server\.max_steps is True: a number is wanted"):
        config.Config("x", {"agent_server": {"max_steps": True}}).section("agent_server", Agent)


def test_an_environment_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    """By name; not with a traceback."""
    path = write(tmp_path, "c.yaml", "environments: {w: 5}\n")
    with pytest.raises(UsageError, match=r"c\.yaml: environments\.w is a mapping of a resources server's keys, not 5"):
        config.load(path, [], {"resources_server": Agent})


def test_a_yaml_error_names_the_line(tmp_path: Path) -> None:
    """A person needs file and line."""
    with pytest.raises(UsageError, match=r"torn\.yaml:\d"):
        config.load(write(tmp_path, "torn.yaml", "a: 1\nb: [1\n"), [], SECTIONS)


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    """The parser would let the second win; the settings of the first would silently not apply."""
    path = write(tmp_path, "twice.yaml", "agent_server: {max_steps: 3}\nagent_server: {agent: x}\n")
    with pytest.raises(UsageError, match=r"twice\.yaml:2: .*'agent_server' stands twice"):
        config.load(path, [], SECTIONS)


def test_no_key_is_in_what_is_said_of_a_wrong_value(tmp_path: Path) -> None:
    """Of a URL that is refused for the key in it, the key is not shown."""

    class Room(BaseModel):
        url: int = 0
        headers: dict[str, str] = {}

    for text in ("url: 'http://user:sk-1@h/v1'", "url: 'http://sk-1@h/v1'", "headers: {X: [sk-1]}"):
        with pytest.raises(UsageError) as refused:
            config.load(write(tmp_path, "c.yaml", f"room: {{{text}}}\n"), [], {"room": Room})
        assert "sk-1" not in str(refused.value)


def test_files_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    """A circle ends."""
    write(tmp_path, "a.yaml", "extends: b.yaml\n")
    with pytest.raises(UsageError, match="circle"):
        config.load(write(tmp_path, "b.yaml", "extends: a.yaml\n"), [], SECTIONS)


def test_an_unknown_config_is_said_to_be_missing() -> None:
    """One line, the bundled ones listed."""
    with pytest.raises(UsageError, match=r"there is no config 'nope\.yaml'"):
        config.load("nope.yaml", [], SECTIONS)


def test_secrets_are_masked() -> None:
    """Keys, headers and passwords inside URLs; token counts and bounds are not secrets."""
    shown = config.masked(
        {
            "api_key": "sk-1",
            "headers": {"X": "y"},
            "url": "postgresql://u:pw@h/db",
            "token_ids": "auto",
            "max_output_tokens": 5,
        }
    )
    assert shown == {
        "api_key": "***",
        "headers": {"X": "***"},
        "url": "postgresql://u:***@h/db",
        "token_ids": "auto",
        "max_output_tokens": 5,
    }
