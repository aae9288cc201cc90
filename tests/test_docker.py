"""The image and the compose stack, for real: `scripts/test -m docker` (as root it finds or makes a container engine by itself)."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from wire import jsonl
from wire.testing import free_port

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[1]
PROJECT = "trivium-tests"


@dataclass(frozen=True)
class Compose:
    """`docker compose` on a project of the tests' own."""

    results: Path
    agent_port: int
    settings: str | None = None  # one of the files in compose/
    config: str = "workplace"

    def __call__(self, *arguments: str) -> str:
        """What it prints; an error status is a failure of the test, with all that was said."""
        told = {
            "TRIVIUM_RESULTS": str(self.results),
            "AGENT_PORT": str(self.agent_port),
            "TRIVIUM_CONFIG": self.config,
        }
        file = ["--env-file", self.settings] if self.settings else []
        return run("docker", "compose", "-p", PROJECT, *file, *arguments, **told)

    @contextmanager
    def up(self) -> Iterator["Compose"]:
        """Built from this checkout, healthy while the block runs, gone with its volumes afterwards."""
        try:
            self("up", "--build", "--detach", "--wait", "--quiet-pull")
            yield self
        except AssertionError as error:
            error.add_note(self("logs", "--tail", "20"))
            raise
        finally:
            self("--profile", "*", "down", "--volumes", "--timeout", "3")


def run(*command: str, **environment: str) -> str:
    ended = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == 0, f"{' '.join(command)}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


@pytest.fixture(scope="session")
def engine() -> None:
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode != 0 or not _has_compose():
        run("scripts/container-engine")


def _has_compose() -> bool:
    return subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def stack(engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compose]:
    """As `docker compose up` starts it: each task's own solution is played."""
    with Compose(tmp_path_factory.mktemp("results"), free_port()).up() as compose:
        yield compose


def test_the_three_servers_are_up_and_healthy(stack: Compose) -> None:
    """As their health checks say."""
    lines = [json.loads(line) for line in stack("ps", "--format", "json").splitlines()]
    assert {each["Service"]: each["Health"] for each in lines} == {
        "resources_server": "healthy",
        "model_interface": "healthy",
        "agent_server": "healthy",
    }


def test_collect_runs_against_the_stack(stack: Compose) -> None:
    """`docker compose run --rm collect`, with options of the command; lines come out on the host."""
    said = stack(
        "run", "--rm", "collect", "workplace", "--limit", "4", "--repeats", "2", "--output", "/results/o.jsonl"
    )
    assert "8 ok, 0 failed, 0 missing" in said
    assert [row["reward"] for _, row in jsonl.read(stack.results / "o.jsonl")] == [1.0] * 8


def test_the_token_is_made_at_the_first_start_and_kept(stack: Compose) -> None:
    """The image holds none; a second start finds the same."""
    shipped = run("docker", "run", "--rm", "--entrypoint", "find", "trivium:latest", "/run/trivium", "-type", "f")
    assert shipped == ""
    token = stack("exec", "agent_server", "cat", "/run/trivium/token")
    assert len(token.strip()) >= 32
    stack("up", "--detach", "--wait")
    assert stack("exec", "resources_server", "cat", "/run/trivium/token") == token
    with pytest.raises(HTTPError, match="401"):
        urlopen(Request(f"http://127.0.0.1:{stack.agent_port}/run", data=b"{}", method="POST"))


def test_nothing_runs_as_root(stack: Compose) -> None:
    """The servers' user owns what it writes, and nothing else."""
    assert stack("exec", "resources_server", "id", "-un").strip() == "trivium"


def test_a_server_that_dies_is_started_again(stack: Compose) -> None:
    """Within its container, by the command that started it."""
    kill = "import os, pathlib; [os.kill(int(p.parent.name), 9) for p in pathlib.Path('/proc').glob('[0-9]*/cmdline')"
    kill += " if p.read_bytes().endswith(b'wire.child' + bytes(1))]"
    stack("exec", "resources_server", "python3", "-c", kill)
    said = stack("run", "--rm", "collect", "workplace", "--limit", "2", "--output", "/results/again.jsonl")
    assert "2 ok, 0 failed, 0 missing" in said
    assert "died (signal 9); it is started again" in stack("logs", "resources_server")


def test_the_installed_package_brings_its_configs_and_rows(engine: None, stack: Compose) -> None:
    """In a folder that holds nothing of ours."""
    said = run("docker", "run", "--rm", "trivium:latest", "config", "workplace")
    assert "environment: workplace" in said


@pytest.mark.parametrize("profile", ["local", "vllm", "postgres"])
def test_profiles_add_their_services(engine: None, profile: str) -> None:
    """Whether or not their images can be pulled here."""
    environment = ["--env-file", f"compose/{profile}.env"]
    services = run("docker", "compose", *environment, "config", "--services").split()
    added = {"local": "model"}.get(profile, profile)
    assert {"resources_server", "model_interface", "agent_server", added} <= set(services)


def test_sessions_in_postgresql(engine: None, tmp_path: Path) -> None:
    """With Debian's PostgreSQL in place of the official image where that cannot be pulled; the password is made at the first start."""
    if subprocess.run(["docker", "image", "inspect", "postgres:15"], capture_output=True, check=False).returncode != 0:
        run("docker", "build", "-q", "-t", "postgres:15", "tests/docker/postgres")
    with Compose(tmp_path, free_port(), settings="compose/postgres.env").up() as compose:
        said = compose("run", "--rm", "collect", "workplace", "--limit", "4", "--output", "/results/o.jsonl")
        assert "4 ok, 0 failed, 0 missing" in said
        tables = compose(
            "exec",
            "postgres",
            "sh",
            "-c",
            "PGPASSWORD=$(cat /run/trivium/postgres) psql -h localhost -U trivium -c '\\dt'",
        )
        assert "session" in tables


def test_the_real_small_model_in_the_stack(engine: None, tmp_path: Path) -> None:
    """Fetched into its volume at the first start."""
    with Compose(tmp_path, free_port(), settings="compose/local.env", config="counter").up() as compose:
        said = compose("run", "--rm", "collect", "counter", "--limit", "1", "--output", "/results/o.jsonl")
        assert "1 ok, 0 failed, 0 missing" in said
    ((_, row),) = jsonl.read(tmp_path / "o.jsonl")
    assert row["steps"][0]["tokens"]["fidelity"] == "exact"
