"""From configs to servers and sources: names, addresses, what several configs make together."""

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollouts import moment, sources, token
from rollouts import stack as stacks
from rollouts.commands.arguments import split
from rollouts.discovery import announced, directory
from rollouts.stack import AGENT, MODEL, RESOURCES
from wire.client import Client
from wire.deadline import Deadline
from wire.errors import UsageError


def written(folder: Path, name: str, **content: Any) -> str:
    path = folder / name
    path.write_text(yaml.safe_dump({"extends": "base.yaml", **content}))
    return str(path)


@pytest.fixture
def several(tmp_path: Path) -> str:
    """Two environments in one config."""
    worlds = {
        "easy": {"environment": "counter", "dataset": "easy.jsonl", "limit": 3, "share": 2.0},
        "warehouse": {"tool_timeout_s": 5.0},
    }
    return written(tmp_path, "two.yaml", resources_server={"tool_timeout_s": 9.0, "port": 0}, environments=worlds)


def test_one_environment_makes_three_servers() -> None:
    """The end of the chain first."""
    stack = stacks.read(["counter"])
    assert stack.names == [RESOURCES, MODEL, AGENT]
    assert [each.room for each in stack.servers()] == [RESOURCES, MODEL, AGENT]


def test_several_environments_have_a_server_each(several: str) -> None:
    """An entry says what differs from `resources_server`; its name is the environment where it names none."""
    stack = stacks.read([several])
    assert stack.names == ["resources_server.easy", "resources_server.warehouse", MODEL, AGENT]
    easy, warehouse = (each.config["resources_server"] for each in stack.servers([RESOURCES]))
    assert (easy["environment"], easy["tool_timeout_s"]) == ("counter", 9.0)
    assert (warehouse["environment"], warehouse["tool_timeout_s"]) == ("warehouse", 5.0)


def test_sources_follow_environments(several: str) -> None:
    """Limits and shares are each environment's own; --mix wins over a share."""
    easy, warehouse = sources.sources(stacks.read([several]), given=None, mix="warehouse=5", away=False)
    assert (easy.name, easy.limit, easy.weight, easy.resources_server) == ("easy", 3, 2.0, "resources_server.easy")
    assert (warehouse.weight, warehouse.limit, warehouse.names_itself) == (5.0, None, True)
    assert warehouse.dataset is not None
    assert warehouse.dataset.name == "example.jsonl"


def test_rows_are_found_beside_the_config(tmp_path: Path) -> None:
    """Wherever the command is called."""
    (tmp_path / "mine.jsonl").write_text("{}\n")
    config = written(
        tmp_path, "c.yaml", resources_server={"environment": "counter"}, rollouts={"dataset": "mine.jsonl"}
    )
    (source,) = sources.sources(stacks.read([config]), given=None, mix=None, away=True)
    assert source.dataset == tmp_path / "mine.jsonl"
    assert source.resources_server is None


def test_two_files_with_one_environment_are_told_apart_by_their_names(tmp_path: Path) -> None:
    """Each keeps its own rows."""
    files = [written(tmp_path, f"{name}.yaml", resources_server={"environment": "counter"}) for name in ("a", "b")]
    assert [each.name for each in stacks.read(files).environments] == ["a", "b"]


def test_reference_asks_for_solutions_and_nothing_else_does() -> None:
    """They are ground truth: served only where the backend plays them."""
    for backend, served in (("reference", True), ("scripted", False)):
        stack = stacks.read(["counter"], [f"model_interface.backend={backend}"])
        assert stack.environments[0].settings["solutions"] is served


def test_the_fingerprint_holds_what_changes_results_and_no_secret() -> None:
    """Ports, time-outs and keys may change between two halves of a run."""
    base = ["model_interface.api_key=k1", "model_interface.extra_body={api_key: k2, seed: 1}"]
    first = sources.fingerprint(stacks.read(["counter"], base))
    other = ["model_interface.port=1", "rollouts.concurrency=2", "agent_server.timeout_s=5", "auth=none"]
    assert sources.fingerprint(stacks.read(["counter"], [*base, *other])) == first
    assert sources.fingerprint(stacks.read(["counter"], [*base, "agent_server.max_steps=2"])) != first
    assert "k1" not in str(first)
    assert "k2" not in str(first)


def test_who_is_served_elsewhere_must_be_told_to_the_agent() -> None:
    """And to nobody else."""
    stack = stacks.read(["counter"], ["resources_server.url=http://r:1"])
    with pytest.raises(
        UsageError, match=r"agent_server calls model_interface, not served here: .*model_interface\.url="
    ):
        stack.elsewhere(stack.servers([AGENT]))
    assert stack.elsewhere(stack.servers([MODEL])) == {RESOURCES: "http://r:1"}
    told = stacks.read(["counter"], ["resources_server.port=1234", "model_interface.url=http://m:2"])
    assert told.elsewhere(told.servers([AGENT])) == {RESOURCES: "http://127.0.0.1:1234", MODEL: "http://m:2"}


@pytest.mark.parametrize(
    ("arguments", "configs", "overrides"),
    [
        (["a.yaml", "x.y=1", "b"], ["a.yaml", "b"], ["x.y=1"]),
        (["runs/lr=1/a.yaml"], ["runs/lr=1/a.yaml"], []),
        (["a", "k="], ["a"], ["k="]),
        (["a", "environments.my-world.limit=2"], ["a"], ["environments.my-world.limit=2"]),
    ],
)
def test_overrides_are_told_from_paths(arguments: list[str], configs: list[str], overrides: list[str]) -> None:
    """A path may hold an equals sign behind a slash."""
    assert split(arguments) == (configs, overrides)


NOW = datetime(2026, 11, 29, 22, 0, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    ("text", "ahead_s"),
    [
        ("23:30", 5400),
        ("21:00", 23 * 3600),
        ("22:00:10", 10),
        ("+90m", 5400),
        ("+1h30m", 5400),
        ("+45s", 45),
        ("2026-11-29T22:30", 1800),
        ("2026-11-29T22:30+00:00", 5400),
        (f"{NOW.timestamp() + 7:.0f}", 7),
    ],
)
def test_moments(text: str, ahead_s: float) -> None:
    """Clock times are the next such moment; a date without a zone is in ours."""
    assert moment.parse(text, NOW) - NOW.timestamp() == ahead_s


@pytest.mark.parametrize("text", ["soon", "25:00", "+", "12", "2026-13-01"])
def test_what_is_no_moment(text: str) -> None:
    """Named as it was written."""
    with pytest.raises(UsageError, match="--stop-by"):
        moment.parse(text, NOW)


def test_where_the_token_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable, else the file, else a new one of at least 128 random bits for each start; none with auth: none."""
    monkeypatch.delenv("TRIVIUM_TOKEN", raising=False)
    monkeypatch.delenv("TRIVIUM_TOKEN_FILE", raising=False)
    made = {token.for_stack("token") for _ in range(4)}
    assert len(made) == 4
    assert all(each is not None and len(each) >= 32 for each in made)
    assert token.for_stack("none") is None
    (tmp_path / "token").write_text("from-file\n")
    monkeypatch.setenv("TRIVIUM_TOKEN_FILE", str(tmp_path / "token"))
    assert token.for_stack("token") == "from-file"
    monkeypatch.setenv("TRIVIUM_TOKEN", "from-variable")
    assert token.for_stack("token") == "from-variable"
    monkeypatch.delenv("TRIVIUM_TOKEN")
    (tmp_path / "token").write_text("")
    with pytest.raises(UsageError, match="the file is empty"):
        token.given()


async def test_nemo_gym_clients_find_the_servers() -> None:
    """A JSON string of YAML, with hosts and ports and without secrets."""
    stack = stacks.read(["counter"], ["model_interface.api_key=s3cret"])
    urls = {RESOURCES: "http://127.0.0.1:1", MODEL: "http://127.0.0.1:2", AGENT: "http://agents:3"}
    async with announced(stack, urls, port=0) as url, Client({"head": url}) as client:
        reply = await client.get("head", "/global_config_dict_yaml", deadline=Deadline(5))
    found = yaml.safe_load(json.loads(reply.body))
    assert found == directory(stack, urls)
    assert found["counter"]["resources_servers"]["counter"] == {"host": "127.0.0.1", "port": 1, "entrypoint": "app.py"}
    agent = found["counter_agent"]["responses_api_agents"]["tool_loop"]
    assert (agent["host"], agent["port"]) == ("agents", 3)
    assert found["policy_model"]["responses_api_models"]["local"]["port"] == 2
    assert b"s3cret" not in reply.body


def test_a_longer_rollout_is_let_through_by_the_agent_server() -> None:
    """Raising `rollouts.timeout_s` alone is enough: the server that caps budgets is started with it."""
    found = stacks.read(["counter"], ["rollouts.timeout_s=1800"])
    assert found.section(AGENT)["timeout_s"] == 1800
    assert stacks.read(["counter"]).section(AGENT)["timeout_s"] == 600
