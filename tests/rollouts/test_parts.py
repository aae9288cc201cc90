"""Plug-ins are found and asked about their options before anything is started, and all that is wrong is told at once."""

from pathlib import Path

import pytest
import yaml

from rollouts import stack as stacks
from tests.rollouts.command import trivium
from wire.errors import UsageError


def refused(config: str, *overrides: str, starting: tuple[str, ...] = stacks.ROOMS) -> list[str]:
    """The problems that are told of a config."""
    with pytest.raises(UsageError) as caught:
        stacks.read([config], overrides, starting=starting)
    return str(caught.value).splitlines()


def test_misspelt_names_are_told_together_with_what_else_is_wrong() -> None:
    """A key, a value, an agent, a backend and an environment's option: five lines, each with its origin."""
    wrong = ["agent_server.agent=tool_lop", "agent_server.max_step=3", "rollouts.repeats=0"]
    told = refused("counter", *wrong, "model_interface.backend=scriptd", "resources_server.options.foo=1")
    assert len(told) == 5 and all(each.startswith("command line: ") for each in told)
    assert any("agent_server.agent: no agent is called 'tool_lop' (did you mean 'tool_loop'?" in each for each in told)
    assert any(
        "model_interface.backend: no backend is called 'scriptd' (did you mean 'scripted'?" in each for each in told
    )
    assert any("environment Counter has no option 'foo'" in each for each in told)


def test_options_of_all_three_rooms_are_told_together() -> None:
    """And what a backend of ours needs beside them."""
    options = [f"{room}.options.x=1" for room in stacks.ROOMS]
    told = refused("counter", "model_interface.backend=scripted", *options)
    assert [any(word in each for each in told) for word in ("model_interface.options.x", "agent_server.options.x")] == [
        True
    ] * 2
    assert len(told) == 3
    assert "model_interface.base_url is not set" in refused("counter", "model_interface.backend=chat")[0]


def test_each_of_several_environments_and_configs_is_asked(tmp_path: Path) -> None:
    """Under its own path and file."""
    worlds = {
        "a": {"environment": "countr", "repeats": 2},
        "b": {"environment": "counter", "options": {"y": 1}},
        "c": 5,
    }
    (tmp_path / "w.yaml").write_text(yaml.safe_dump({"extends": "base.yaml", "environments": worlds}))
    with pytest.raises(UsageError) as caught:
        stacks.read([str(tmp_path / "w.yaml"), "counter"], ["agent_server.agent=nope"], starting=stacks.ROOMS)
    told = str(caught.value).splitlines()
    assert sum("w.yaml: environments.a.environment: no environment is called 'countr'" in each for each in told) == 1
    assert sum("w.yaml: environment Counter has no option 'y'" in each for each in told) == 1
    assert sum("agent_server.agent: no agent is called 'nope'" in each for each in told) == 1
    assert len(told) == 4


@pytest.mark.parametrize(
    "text", ["resources_server: 5", "environments: [a]", "agent_server: {agent: 5}", "model_interface: x"]
)
def test_a_section_of_another_shape_is_still_one_line(tmp_path: Path, text: str) -> None:
    """What the section's model says of it, and no more."""
    (tmp_path / "w.yaml").write_text(f"{text}\n")
    assert len(refused(str(tmp_path / "w.yaml"))) == 1


def test_what_is_not_started_here_is_not_asked() -> None:
    """A machine that serves the agent need not have the backend."""
    wrong = ["model_interface.backend=not_here", "agent_server.agent=nope"]
    assert len(refused("counter", *wrong, starting=("agent_server",))) == 1
    assert stacks.read(["counter"], wrong).names


def test_a_backend_of_somebody_elses_is_found_and_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its constructor may load a model."""
    text = "from model_interface.backend import Backend\nclass Mine(Backend):\n    def __init__(self, *_):\n        raise RuntimeError\n"
    (tmp_path / "their_backend.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    assert stacks.read(["counter"], ["model_interface.backend=their_backend:Mine"], starting=stacks.ROOMS).names


@pytest.mark.parametrize("command", ["collect", "serve"])
def test_the_command_tells_all_at_once_and_starts_nothing(tmp_path: Path, command: str) -> None:
    """Case G01: exit status 2, and the log of no server."""
    said = trivium(
        command, "counter", "agent_server.agent=tool_lop", "model_interface.backend=scriptd", folder=tmp_path
    )
    assert said.status == 2 and "'tool_lop'" in said.err and "'scriptd'" in said.err and "Traceback" not in said.err
    assert len(said.err.splitlines()) == 2 and not list(tmp_path.iterdir())
