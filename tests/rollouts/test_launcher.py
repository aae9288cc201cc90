"""The launcher: real processes on real ports, none of them left behind."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any
from unittest.mock import Mock
from urllib.request import Request, urlopen

import pytest

from rollouts.child import Child
from rollouts.launcher import Server, StartFailed, launched
from wire.errors import UsageError
from wire.testing import free_port

WORLDS = Path(__file__).parent / "worlds"


@pytest.fixture(autouse=True)
def _small_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(WORLDS))


def room(name: str = "one", *, port: int = 0, workers: int = 1, host: str = "127.0.0.1", **config: Any) -> Server:
    return Server(
        name=name, room="small_room", source="test.yaml", config=config, port=port, workers=workers, host=host
    )


async def ask(url: str, path: str) -> Any:
    request = Request(url + path, data=b"{}", method="POST")
    return json.loads(await asyncio.to_thread(lambda: urlopen(request, timeout=10).read()))


async def die(url: str) -> None:
    with pytest.raises(OSError):
        await ask(url, "/die")


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


async def test_every_server_knows_the_urls_of_all_and_the_token_on_no_command_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The token comes on stdin: neither argv nor the environment, which a tool's processes inherit, holds it."""
    monkeypatch.setenv("TRIVIUM_TOKEN", "t0ken")
    async with launched([room("one"), room("two")], token="t0ken", elsewhere={"far": "http://far:1"}) as running:
        said = await ask(running.urls["two"], "/whoami")
    assert said["urls"] == running.urls
    assert set(said["urls"]) == {"one", "two", "far"}
    assert said["token"] == "t0ken"
    assert said["env"] is None
    assert "t0ken" not in " ".join(said["argv"])


async def test_nothing_is_left_when_the_block_ends() -> None:
    """Processes, what they had started, and ports."""
    port = free_port()
    async with launched([room("one", port=port), room("two")], token=None) as running:
        grandchild = (await ask(running.urls["one"], "/spawn"))["pid"]
        pids = [pid for several in running.pids.values() for pid in several]
        assert all(exists(pid) for pid in [*pids, grandchild])
    assert not any(exists(pid) for pid in [*pids, grandchild])
    assert free(port)


async def test_a_taken_port_is_named_with_its_server_before_anything_starts() -> None:
    """Case G03: whoever answers 200 there is not taken for ours, and not killed."""
    server = "import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler); "
    server += "print(s.server_port, flush=True); s.serve_forever()"
    stranger = await asyncio.create_subprocess_exec(sys.executable, "-c", server, stdout=subprocess.PIPE)
    assert stranger.stdout is not None
    port = int(await stranger.stdout.readline())
    began = monotonic()
    with pytest.raises(UsageError, match=rf"two cannot listen at 127\.0\.0\.1:{port}"):
        async with launched([room("one"), room("two", port=port)], token=None):
            pass
    assert monotonic() - began < 1
    assert stranger.returncode is None
    stranger.kill()
    await stranger.wait()


async def test_two_servers_on_one_port_are_refused_by_name() -> None:
    """Case G03, within one config."""
    port = free_port()
    with pytest.raises(UsageError, match=f"one and two both want 127.0.0.1:{port}"):
        async with launched([room("one", port=port), room("two", port=port)], token=None):
            pass
    assert free(port)


async def test_a_config_that_a_server_refuses_is_that_servers_own_line() -> None:
    """A child's exit status 2 is our usage error."""
    with pytest.raises(UsageError, match=r"^two: no such world\nnor any other$"):
        async with launched([room("one"), room("two", refuse="no such world\nnor any other")], token=None):
            pass


async def test_what_is_refused_when_the_world_is_loaded_is_a_line_too() -> None:
    """The app is there and its start says that an option is wrong: no traceback."""
    with pytest.raises(UsageError, match=r"^two: no catalogue\.txt here$"):
        async with launched([room("one"), room("two", regret="no catalogue.txt here")], token=None):
            pass


async def test_a_crash_at_the_start_shows_what_was_printed_and_ends_the_others() -> None:
    """Well before the time that a server has to become healthy."""
    began = monotonic()
    with pytest.raises(StartFailed, match=r"(?s)two stopped while it started \(exit status 7\).*out of luck"):
        async with launched([room("one"), room("two", crash="out of luck")], token=None):
            pass
    assert monotonic() - began < 10


async def test_a_dead_server_is_started_again_on_its_port() -> None:
    """A call made meanwhile waits in the socket and is answered by the new process."""
    heard: list[str] = []
    async with launched([room("one")], token=None, report=heard.append) as running:
        before = await ask(running.urls["one"], "/whoami")
        await die(running.urls["one"])
        after = await ask(running.urls["one"], "/whoami")
    assert before["pid"] != after["pid"]
    assert heard == ["one died (exit status 9); it is started again (1 of 5 in 5 minutes)"]


async def test_a_server_that_keeps_dying_is_given_up_and_its_port_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that callers are refused at once instead of waiting for nobody."""
    monkeypatch.setattr("rollouts.launcher.FIRST_WAIT_S", 0.001)
    monkeypatch.setattr("rollouts.launcher.RESTARTS", 3)
    heard: list[str] = []
    async with launched([room("one")], token=None, report=heard.append) as running:
        for _ in range(4):
            await die(running.urls["one"])
        async with asyncio.timeout(10):
            await running.lost.wait()
        with pytest.raises(OSError, match="refused"):
            await ask(running.urls["one"], "/whoami")
    assert len(heard) == 4
    assert "given up" in heard[-1]


async def test_a_stop_at_the_moment_of_a_death_is_not_lost() -> None:
    """However the two fall together, who waits for the child is told to stop: else the launcher would start it again and wait for it."""
    child = Child("one", lambda name, line: None)
    child._transport = Mock(get_returncode=lambda: -9)
    child.process_exited()
    for turns in range(8):
        child._silent.clear()
        waiting = asyncio.create_task(child.wait())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        child.pipe_connection_lost(1, None)
        for _ in range(turns):
            await asyncio.sleep(0)
        told = waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert waiting.cancelled() is told


async def test_several_workers_share_one_port() -> None:
    """Each is a process of its own."""
    async with launched([room("one", workers=2)], token=None) as running:
        assert len(running.pids["one"]) == 2
        assert (await ask(running.urls["one"], "/whoami"))["pid"] in running.pids["one"]


async def test_an_address_for_everyone_needs_a_token() -> None:
    """And with one it is reached over loopback from here."""
    with pytest.raises(UsageError, match=r"one\.host=0\.0\.0\.0 is reachable from other machines and auth is none"):
        async with launched([room(host="0.0.0.0")], token=None):
            pass
    async with launched([room(host="0.0.0.0")], token="t") as running:
        assert running.urls["one"].startswith("http://127.0.0.1:")


LAUNCH_AND_WAIT = """
import asyncio, sys
from rollouts.launcher import Server, launched
async def main():
    servers = [Server(name=n, room="small_room", source="t", config={}) for n in ("one", "two")]
    async with launched(servers, token=None) as running:
        print(*[pid for pids in running.pids.values() for pid in pids], flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.fixture
def launcher() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that has launched two servers; its first line names their process ids."""
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(WORLDS)])}
    with subprocess.Popen([sys.executable, "-c", LAUNCH_AND_WAIT], stdout=subprocess.PIPE, env=environment) as process:
        yield process
        process.kill()


async def test_no_orphan_survives_a_killed_launcher(launcher: "subprocess.Popen[bytes]") -> None:
    """`kill -9` leaves no time to clean up: the children see their stdin end."""
    assert launcher.stdout is not None
    pids = [int(each) for each in launcher.stdout.readline().split()]
    assert len(pids) == 2
    launcher.send_signal(signal.SIGKILL)
    async with asyncio.timeout(8):
        while any(exists(pid) for pid in pids):  # noqa: ASYNC110 - they are nobody's children now
            await asyncio.sleep(0.02)
