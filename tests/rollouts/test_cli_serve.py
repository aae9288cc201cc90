"""`trivium serve`: three real processes, found by what it prints, gone when it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from rollouts.stack import AGENT, MODEL, RESOURCES
from tests.rollouts.command import children, exists, free, keys, lines, running, served, setting, trivium
from wire import strict_json
from wire.testing import free_port

HEALTHY_S = 2.5  # for all three, on an idle machine with two cores; see docs/reference/commands.md
MEMORY_MB = 100  # resident, of each


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return setting(tmp_path)


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def wait_until(process: "subprocess.Popen[str]", marker: str) -> str:
    """The line on stderr that holds `marker`."""
    assert process.stderr is not None
    return next(line for line in process.stderr if marker in line)


def test_three_servers_are_healthy_soon_and_small(folder: Path) -> None:
    """2.5 s when nothing else runs (the best of three tries, and longer on a busy machine) and under 100 MB each."""
    patience_s = HEALTHY_S * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    took = []
    for _ in range(3):
        began = monotonic()
        with running("serve", "c.yaml", folder=folder) as process:
            found = served(process)
            took.append(monotonic() - began)
            sizes = [resident_mb(pid) for pid in children(process.pid)]
            process.send_signal(signal.SIGTERM)
            process.wait(5)
        if took[-1] < patience_s:
            break
    assert set(found) == {RESOURCES, MODEL, AGENT}
    assert min(took) < patience_s, took
    assert len(sizes) == 3
    assert max(sizes) < MEMORY_MB, sizes


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_all_of_it(folder: Path, number: signal.Signals, status: int) -> None:
    """Within five seconds; no process, no port."""
    with running("serve", "c.yaml", folder=folder) as process:
        ports = [port_of(url) for url in served(process).values()]
        pids = children(process.pid)
        assert len(pids) == 3
        process.send_signal(number)
        assert process.wait(5) == status
    assert not any(exists(pid) for pid in pids)
    assert all(free(port) for port in ports)


def test_no_orphan_survives_kill_9(folder: Path) -> None:
    """The children see their stdin end and stop by themselves; their ports are free again."""
    with running("serve", "c.yaml", folder=folder) as process:
        ports = [port_of(url) for url in served(process).values()]
        pids = children(process.pid)
        process.send_signal(signal.SIGKILL)
        # Their end of the pipes closes when the last of them has gone.
        assert process.communicate(timeout=10)
    deadline = monotonic() + 10
    while any(exists(pid) for pid in pids):
        assert monotonic() < deadline
    assert all(free(port) for port in ports)


def test_a_taken_port_is_one_line_and_nothing_remains(folder: Path) -> None:
    """Case G03: the stranger answers 200 to everything, is not taken for ours and lives on."""
    code = "import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler); "
    code += "print(s.server_port, flush=True); s.serve_forever()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as stranger:
        assert stranger.stdout is not None
        port = int(stranger.stdout.readline())
        began = monotonic()
        said = trivium("serve", "c.yaml", f"resources_server.port={port}", folder=folder)
        assert monotonic() - began < 5
        assert said.status == 2
        assert f"resources_server cannot listen at 127.0.0.1:{port}" in said.err
        assert said.err.count("\n") == 1
        assert said.out == ""
        assert stranger.poll() is None
        stranger.kill()


def test_starting_a_stack_twice_names_the_port(folder: Path) -> None:
    """Case G03, third input; `port=auto` then starts beside it."""
    ports = {f"{room}.port": free_port() for room in (RESOURCES, MODEL, AGENT)}
    overrides = [f"{key}={port}" for key, port in ports.items()]
    with running("serve", "c.yaml", *overrides, folder=folder) as first:
        assert {port_of(url) for url in served(first).values()} == set(ports.values())
        said = trivium("serve", "c.yaml", *overrides, folder=folder)
        assert said.status == 2
        assert f"127.0.0.1:{ports['resources_server.port']}" in said.err
        with running("serve", "c.yaml", *[f"{key}=auto" for key in ports], folder=folder) as beside:
            assert len(served(beside)) == 3


def test_two_servers_of_one_config_on_one_port_are_refused(folder: Path) -> None:
    """Case G03, second input."""
    port = free_port()
    said = trivium("serve", "c.yaml", f"agent_server.port={port}", f"model_interface.port={port}", folder=folder)
    assert said.status == 2
    assert f"model_interface and agent_server both want 127.0.0.1:{port}" in said.err


def test_an_address_for_everyone_is_refused_without_auth(folder: Path) -> None:
    """And allowed with a token."""
    everyone = "resources_server.host=0.0.0.0"
    said = trivium("serve", "c.yaml", "auth=none", everyone, folder=folder)
    assert said.status == 2
    assert "resources_server.host=0.0.0.0" in said.err
    with running("serve", "c.yaml", everyone, folder=folder, TRIVIUM_TOKEN="t") as process:
        assert served(process)[RESOURCES].startswith("http://127.0.0.1:")


def test_control_routes_ask_for_the_token_and_nobody_prints_it(folder: Path) -> None:
    """Neither the command line of a child nor any line of output holds it."""
    with running("serve", "c.yaml", folder=folder, TRIVIUM_TOKEN="s3cret-token") as process:
        url = served(process)[RESOURCES] + "/seed_session"
        with pytest.raises(OSError, match="401"):
            urlopen(Request(url, data=b"{}", method="POST"))
        body = b'{"responses_create_params": {"input": "x"}, "initial_count": 1, "expected_count": 1}'
        asked = Request(url, data=body, headers={"Authorization": "Bearer s3cret-token"})
        assert strict_json.loads(urlopen(asked).read())["tools"]
        commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children(process.pid)]
        environments = [Path(f"/proc/{pid}/environ").read_bytes() for pid in children(process.pid)]
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=10)
    assert not any(b"s3cret-token" in each for each in [*commands, *environments, out.encode(), err.encode()])


def test_collect_against_servers_that_run_already(folder: Path) -> None:
    """`--agent-url`: nothing is started, nothing is stopped."""
    with running("serve", "c.yaml", folder=folder, TRIVIUM_TOKEN="t") as process:
        url = served(process)[AGENT]
        said = trivium("collect", "c.yaml", "--agent-url", url, "--output", "o.jsonl", folder=folder, TRIVIUM_TOKEN="t")
        assert said.status == 0, said
        assert process.poll() is None
    assert len(lines(folder / "o.jsonl")) == 2


def test_servers_can_be_served_one_by_one(folder: Path) -> None:
    """As in containers: each by its own command, told where the others are."""
    urls = {room: f"http://127.0.0.1:{free_port()}" for room in (RESOURCES, MODEL, AGENT)}
    told = [f"{room}.url={url}" for room, url in urls.items()]

    def serve(room: str) -> list[str]:
        return ["serve", "c.yaml", room, *told, f"{room}.port={port_of(urls[room])}"]

    with (
        running(*serve(RESOURCES), folder=folder, TRIVIUM_TOKEN="t") as resources,
        running(*serve(MODEL), folder=folder, TRIVIUM_TOKEN="t") as model,
        running(*serve(AGENT), folder=folder, TRIVIUM_TOKEN="t") as agent,
    ):
        assert served(resources, 1) | served(model, 1) | served(agent, 1) == urls
        to = ["--agent-url", urls[AGENT], "--output", "o.jsonl"]
        assert trivium("collect", "c.yaml", *to, folder=folder, TRIVIUM_TOKEN="t").status == 0
    assert sorted(keys(folder / "o.jsonl")) == [(0, 0), (1, 0)]


def test_a_server_that_dies_is_started_again_where_it_was(folder: Path) -> None:
    """Those who call it notice nothing but a delay."""
    with running("serve", "c.yaml", folder=folder) as process:
        url = served(process)[RESOURCES]
        victim = children(process.pid)[0]
        subprocess.run(["kill", "-9", str(victim)], check=True)
        assert "died (signal 9); it is started again (1 of 5 in 5 minutes)" in wait_until(process, "died")
        assert b'"server":"resources_server"' in urlopen(url + "/health").read()
