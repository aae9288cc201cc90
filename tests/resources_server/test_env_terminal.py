"""The environment `terminal`: a sandbox for each rollout, whose files are the state and what is judged."""

import asyncio
import gc
import json
import os
from pathlib import Path
from typing import Any

import pytest

from resources_server import Response, ToolError
from resources_server.environments.terminal import Terminal
from resources_server.sandbox import choice
from tests.resources_server.conftest import serve
from tests.stack import run, stack
from wire import strict_json
from wire.errors import UsageError
from wire.testing import serving
from wire.testing.upstream import MSG, TC, Upstream

ROW = {"files": {"a.txt": "one\n", "b/c.txt": "two\n"}, "wanted": {"a.txt": "one\n", "b/c.txt": "three\n"}}


def seeded(row: dict[str, Any] | None = None, **options: Any) -> Terminal:
    world = Terminal.bound(options).of_row(row or ROW)
    world.seed()
    return world


async def ended(pid: int) -> None:
    """Wait until the process is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    gone = asyncio.Event()
    asyncio.get_running_loop().add_reader(handle, gone.set)
    try:
        async with asyncio.timeout(20):
            await gone.wait()
    finally:
        asyncio.get_running_loop().remove_reader(handle)
        os.close(handle)


async def test_files_last_and_are_what_is_judged() -> None:
    """A shell, its pipes and folders; lines are compared, spaces at their ends aside."""
    world = seeded()
    assert await world.shell("sed 's/two/three  /' b/c.txt > x && mv x b/c.txt; cat b/c.txt a.txt") == "three  \none"
    verdict = world.verify(Response())
    assert (verdict.reward, verdict.metrics) == (1.0, {"commands": 1.0, "files_right": 1.0})
    await world.close()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("true", "b/c.txt differs"),
        ("rm b/c.txt", "b/c.txt is missing"),
        ("echo three > b/c.txt; echo > new", "new should not be there"),
        ("echo three > b/c.txt; head -c 9 /dev/zero | tr '\\0' '\\377' > bin", "bin should not be there"),
        ("echo three > b/c.txt; rm a.txt; ln -s b/c.txt a.txt", "a.txt is missing"),
    ],
)
async def test_what_is_not_as_wanted_is_named(command: str, reason: str) -> None:
    """Files too many or too few, binary ones and links in their place."""
    world = seeded()
    await world.shell(command)
    verdict = world.verify(Response())
    assert (verdict.reward, verdict.reason) == (0.0, reason)
    await world.close()


@pytest.mark.parametrize("path", ["../up", "/etc/passwd", "a/../../b", "a\0b", "\ud800", "b"])
async def test_paths_outside_are_refused_and_nothing_is_lost(path: str) -> None:
    """The model is told; the files are as they were, also for the next command."""
    world = seeded()
    await world.shell("echo more > d.txt")
    with pytest.raises(ToolError):
        await world.write_file(path, "x")
    assert world.files == {**ROW["files"], "d.txt": "more\n"}
    assert await world.shell("cat d.txt a.txt") == "more\none"
    await world.close()


@pytest.mark.parametrize(
    "command",
    [
        "seq 20000 | xargs touch",
        "yes | head -c 9000000 > big",
        "touch \"$(printf '\\377\\n')\"",
        "chmod 000 a.txt b",
        "kill -9 -1",
    ],
)
async def test_odd_deeds_end_no_rollout(command: str) -> None:
    """Too many files, too much on the disk, names that are no text, files that nobody may read: the world can be judged."""
    world = seeded()
    try:
        await world.shell(command)
    except ToolError:
        assert world.files == ROW["files"]
    assert strict_json.loads(strict_json.dumps(world.state())) == world.state()
    assert await world.shell("echo alive") == "alive"
    await world.close()


async def test_closing_frees_the_sandbox_and_so_does_dropping_the_world() -> None:
    """Stores that keep worlds as text drop them after each call."""
    world, other = seeded(), seeded()
    for each in (world, other):
        await each.shell("true")
    assert world._shell is not None and other._shell is not None
    pids = world._shell.session.pid, other._shell.session.pid
    await world.close()
    await ended(pids[0])
    os.kill(pids[1], 0)  # is there still
    del other, each
    gc.collect()
    await ended(pids[1])


async def test_a_stored_world_goes_on_in_a_new_sandbox() -> None:
    """Files of text and others are there again."""
    world = seeded()
    await world.shell("echo more > d.txt; printf '\\377\\1' > bin")
    again = Terminal.restored(ROW, strict_json.loads(strict_json.dumps(world.state())))
    assert await again.shell("cat d.txt; od -An -tx1 bin") == "more\n ff 01"
    assert again.commands == 2
    await world.close()
    await again.close()


@pytest.mark.parametrize("url", ["memory", "sqlite"])
async def test_sessions_of_one_server_do_not_see_each_other(url: str, tmp_path: Path) -> None:
    """Sixteen at once, in either store; a closed one is gone."""
    store = url if url == "memory" else f"sqlite:///{tmp_path}/s.db"
    async with serve(Terminal, sessions={"url": store}) as world:

        async def played(name: str) -> str:
            await world.post("/seed_session", {"responses_create_params": {"input": "?"}, **ROW}, session=name)
            await world.post("/shell", {"command": f"echo {name} > mine; ls /tmp"}, session=name)
            listed = await world.post("/shell", {"command": "cat mine; ls"}, session=name)
            await world.post("/close_session", {}, session=name)
            return listed.text

        names = [f"{'n' * 32}{number}" for number in range(16)]
        assert await asyncio.gather(*map(played, names)) == [f"{name}\na.txt\nb\nmine" for name in names]
        assert (await world.post("/shell", {"command": "ls"}, session=names[0])).status == 410


async def test_a_rollout_through_the_servers() -> None:
    """What the model reads, and the files in the line's state."""
    calls = [
        TC(("a", "shell", json.dumps({"command": "cat b/c.txt; cat /etc/shadow"}))),
        TC(("b", "write_file", json.dumps({"path": "./b/c.txt", "content": "three"}))),
        MSG("Done."),
    ]
    upstream = Upstream(calls)
    async with serving(up=upstream) as up, stack(up["up"], resources_server={"environment": "terminal"}) as urls:
        line = await run(urls, {"responses_create_params": {"input": "?"}, **ROW})
    told = [item["output"] for item in line["response"]["output"] if item["type"] == "function_call_output"]
    assert told[0].startswith("two\n") and "root:" not in told[0]
    assert (line["failure"], line["reward"], line["state"]["files"]["b/c.txt"]) == (None, 1.0, "three")


def test_without_walls_the_server_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing runs unprotected instead."""
    monkeypatch.setattr(choice, "MAKERS", {})
    with pytest.raises(UsageError, match="no untrusted code is run"):
        _ = Terminal.bound().shared
