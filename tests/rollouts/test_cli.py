"""The command line: what is wrong with it is one line and exit status 2, before anything is started."""

from pathlib import Path
from time import monotonic

import pytest

from rollouts.cli import COMMANDS
from tests.rollouts.command import keys, lines, setting, trivium


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return setting(tmp_path)


def test_help_answers_within_a_second_and_names_every_command(folder: Path) -> None:
    """No command's module is imported for it."""
    began = monotonic()
    said = trivium("--help", folder=folder)
    assert monotonic() - began < 1
    assert said.status == 0
    assert all(f"  {name} " in said.out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(folder: Path, name: str) -> None:
    """The table's targets exist."""
    said = trivium(name, "--help", folder=folder)
    assert said.status == 0, said.err
    assert "Usage: trivium" in said.out


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["colect"], "did you mean 'collect'"),
        (["collect"], "Missing argument"),
        (["collect", "a=b"], "name a config"),
        (["collect", "nope.yaml"], "there is no config 'nope.yaml'"),
        (["collect", "c.yaml", "agent_server.max_stps=3"], "did you mean 'max_steps'"),
        (["collect", "c.yaml", "--set", "agent_server.max_stps=3"], "did you mean 'max_steps'"),
        (["collect", "c.yaml", "agent_servr.max_steps=3"], "agent_servr"),
        (["collect", "c.yaml", "--repeats", "many"], "'--repeats'"),
        (["collect", "c.yaml", "--repeats", "0"], "rollouts.repeats"),
        (["collect", "c.yaml", "--order", "sideways"], "rollouts.order"),
        (["collect", "c.yaml", "--unheard-of"], "--unheard-of"),
        (["collect", "c.yaml", "--input", "missing.jsonl"], "missing.jsonl"),
        (["collect", "c.yaml", "--mix", "wether=2"], "there is no environment 'wether' (have: counter)"),
        (["collect", "c.yaml", "--mix", "counter=lots"], "'lots' is no number"),
        (["collect", "c.yaml", "--stop-by", "soon"], "--stop-by soon: not a time"),
        (["collect", "c.yaml", "--agent-url", "localhost"], "--agent-url localhost"),
        (["collect", "c.yaml", "resources_server.environment=cuonter"], "did you mean 'counter'"),
        (["serve", "c.yaml", "wether_server"], "wether_server"),
        (["serve", "c.yaml", "agent_server"], "model_interface.url"),
        (["serve"], "Missing argument"),
        (["config", "c.yaml", "model_interface.backend=[1]"], "model_interface.backend"),
        (["models", "pul"], "pul"),
        (["version", "1"], "1"),
    ],
)
def test_wrong_usage_is_one_line(folder: Path, arguments: list[str], fragment: str) -> None:
    """Exit status 2, nothing on stdout, no traceback, nothing written."""
    said = trivium(*arguments, folder=folder)
    assert said.status == 2, said
    assert fragment in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not (folder / "results").exists()


def test_all_that_is_wrong_with_a_config_is_told_at_once(folder: Path) -> None:
    """Case G01: each with its file and path, within three seconds."""
    (folder / "wrong.yaml").write_text(
        "extends: base.yaml\nagent_server: {max_step: 9}\n"
        "model_interface: {base_url: '${policy_base_url}', api_key: '${oc.env:NO_SUCH_KEY}'}\nresources_server: {environment: counter}\n"
    )
    began = monotonic()
    said = trivium("collect", "wrong.yaml", "agent_server.max_stepps=3", folder=folder)
    assert monotonic() - began < 3
    assert said.status == 2
    for part in ("agent_server.max_step'", "'max_steps'", "policy_base_url", "NO_SUCH_KEY", "agent_server.max_stepps"):
        assert part in said.err
    assert "wrong.yaml" in said.err
    assert "Traceback" not in said.err


def test_config_shows_every_key_and_no_secret(folder: Path) -> None:
    """Defaults included; a key of the environment is resolved for the servers and masked for people."""
    key = "model_interface.api_key=${oc.env:SOME_KEY}"
    said = trivium("config", "c.yaml", key, "rollouts.repeats=7", folder=folder, SOME_KEY="s3cret")
    assert said.status == 0
    assert "s3cret" not in said.out + said.err
    assert "api_key: '***'" in said.out
    assert "repeats: 7" in said.out
    assert "max_output_bytes:" in said.out


def test_folders_of_the_output_are_made(folder: Path) -> None:
    """Case D01, first input; and the options that are short for config keys."""
    said = trivium("collect", "c.yaml", "--output", "new/deep/out.jsonl", "--repeats", 2, "--limit", 1, folder=folder)
    assert said.status == 0, said.err
    assert sorted(keys(folder / "new/deep/out.jsonl")) == [(0, 0), (0, 1)]
    assert "2 ok, 0 failed, 0 missing" in said.out
    assert "new/deep/out.jsonl" in said.out


@pytest.mark.parametrize("output", ["/proc/nope/out.jsonl", "folder/"])
def test_an_output_that_cannot_be_written_is_refused_first(folder: Path, output: str) -> None:
    """Case D01: before any server is started."""
    (folder / "folder").mkdir()
    said = trivium("collect", "c.yaml", "--output", output, folder=folder)
    assert said.status == 2, said
    assert said.err.count("\n") == 1
    assert output.rstrip("/") in said.err


def test_bad_input_leaves_the_output_alone(folder: Path) -> None:
    """Case D01, last input: also with --fresh."""
    kept = b'{"task_index": 0}\n' * 3
    (folder / "keep.jsonl").write_bytes(kept)
    said = trivium("collect", "c.yaml", "--input", "no.jsonl", "--output", "keep.jsonl", "--fresh", folder=folder)
    assert said.status == 2
    assert "no.jsonl" in said.err
    assert (folder / "keep.jsonl").read_bytes() == kept


def test_proxies_of_the_environment_never_see_our_calls(folder: Path) -> None:
    """Case B10: a proxy that nobody runs would fail every call."""
    proxy = "http://127.0.0.1:9"
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"), proxy)
    said = trivium("collect", "c.yaml", "--output", "o.jsonl", folder=folder, **proxies)
    assert said.status == 0, said.err
    assert len(lines(folder / "o.jsonl")) == 2


def test_a_world_of_the_working_folder_is_found_by_its_dotted_path(folder: Path) -> None:
    """As for `python -m`, without setting PYTHONPATH."""
    (folder / "my_worlds.py").write_text(
        "from resources_server import Environment, Task\n\n\nclass Echo(Environment[Task]):\n"
        "    def verify(self, response):\n        return float(response.text == 'done')\n"
    )
    said = trivium(
        "collect", "c.yaml", "resources_server.environment=my_worlds:Echo", "--output", "o.jsonl", folder=folder
    )
    assert said.status == 0, said.err
    assert [each["reward"] for each in lines(folder / "o.jsonl")] == [1.0, 1.0]


def test_two_configs_make_one_run(folder: Path) -> None:
    """One resources server each; rows say which is meant by the file they come from."""
    (folder / "other.jsonl").write_text(
        '{"responses_create_params": {"input": "Do nothing."}, "stock": {"nut": 1}, "order": {}}\n'
    )
    text = (folder / "c.yaml").read_text()
    (folder / "w.yaml").write_text(text.replace("counter", "warehouse").replace("rows.jsonl", "other.jsonl"))
    said = trivium(
        "collect", "c.yaml", "w.yaml", "--mix", "counter=2,warehouse=1", "--output", "o.jsonl", folder=folder
    )
    assert said.status == 0, said.err
    played = sorted(each["environment_ref"]["name"] for each in lines(folder / "o.jsonl"))
    assert played == ["counter", "counter", "warehouse"]


def test_two_configs_that_disagree_are_refused_by_key(folder: Path) -> None:
    """One stack has one agent; the command line decides. Of bounds the largest holds."""
    text = (folder / "c.yaml").read_text()
    other = text.replace("counter", "warehouse") + "agent_server: {agent: single_turn, max_steps: 31}\n"
    (folder / "w.yaml").write_text(other)
    said = trivium("collect", "c.yaml", "w.yaml", folder=folder)
    assert said.status == 2
    assert "c.yaml and w.yaml differ in agent_server.agent" in said.err
    decided = trivium("config", "c.yaml", "w.yaml", "agent_server.agent=tool_loop", folder=folder)
    assert decided.status == 0
    assert "max_steps: 31" in decided.out
