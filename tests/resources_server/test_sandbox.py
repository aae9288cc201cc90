"""The sandbox: what untrusted code cannot see, reach or use up, and that the server around it stays quick."""

import asyncio
import os
import select
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from resources_server.sandbox import Deferred, Limits, Sandbox, SandboxUnavailable, open_sandbox, provider
from resources_server.sandbox.container import Containers
from wire.errors import Failed, UsageError

SMALL = Limits(cpu_s=1.0, wall_s=2.0, memory_bytes=256 * 2**20)


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    try:
        opened = await open_sandbox("namespaces", limits=SMALL)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    async with opened:
        yield opened


async def test_a_program_runs_and_tells_what_came_of_it(sandbox: Sandbox) -> None:
    """Output, errors, exit code, times and the files asked for."""
    program = "import sys; print(input()); print('e', file=sys.stderr); open('out.txt', 'w').write('o'); sys.exit(3)"
    result = await sandbox.run(program, stdin="in\n", read=["out.txt", "missing.txt"])
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"in\n", b"e\n")
    assert result.files == {"out.txt": b"o"}
    assert result.killed_by is None
    assert 0 < result.cpu_s < 1
    assert result.text() == "in\ne\n[exit code 3]"


HOSTILE = {
    "passwd": "open('/etc/passwd').read()",
    "shadow": "open('/etc/shadow').read()",
    "our_files": f"open({__file__!r}).read()",
    "our_package": "import resources_server",
    "packages": "import pydantic",
    "write_runtime": "open('/usr/bin/python3', 'a')",
    "write_root": "open('/x', 'w')",
    "init_environment": "open('/proc/1/environ').read()",
    "urlopen": "import urllib.request as u; u.urlopen('http://127.0.0.1:8001/verify', timeout=1)",
    "connect": "import socket; socket.create_connection(('127.0.0.1', 22), 1)",
    "outside": "import socket; socket.create_connection(('1.1.1.1', 53), 1)",
    "resolve": "import socket; socket.getaddrinfo('example.com', 80)",
    "memory": "x = 'a' * 10**11",
    "fork_bomb": "import os; [os.fork() for _ in range(9999)]",
    "threads": "import threading, time\nfor _ in range(999): threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
    "big_file": "open('f', 'wb').write(bytes(10**9))",
    "many_files": "for i in range(10**6): open(str(i), 'w').write('x' * 10000)",
    "setuid": "import os; os.setuid(0)",
    "mount": "import subprocess; subprocess.run(['mount', '-t', 'tmpfs', 'none', '/work'], check=True)",
    "unshare": "import subprocess; subprocess.run(['unshare', '-U', 'true'], check=True)",
    "chroot": "import os; os.chroot('/work')",
    "kill_init": "import os, signal\nos.kill(1, signal.SIGKILL)\nos.kill(os.getppid() or 1, signal.SIGKILL)",
    "ptrace": "import ctypes, sys\nsys.exit(ctypes.CDLL(None).ptrace(16, 1, 0, 0) != 0)",
    "memfd": "import os; os.memfd_create('x')",
    "device": "import os; os.mknod('/work/sda', 0o60600, os.makedev(8, 0))",
}


@pytest.mark.parametrize("program", HOSTILE.values(), ids=HOSTILE.keys())
async def test_hostile_programs_fail_and_harm_nothing(sandbox: Sandbox, program: str) -> None:
    """Each ends with an error of its own, inside, within twice the time limit."""
    start = time.monotonic()
    result = await sandbox.run(program)
    assert not result.ok
    assert time.monotonic() - start < 2 * SMALL.wall_s
    assert b"root:" not in result.stdout + result.stderr
    assert (await sandbox.run("print(1)")).stdout == b"1\n"


async def test_the_environment_and_the_ids_are_not_ours(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of ours, no process of ours, an unprivileged user, a made-up host."""
    monkeypatch.setenv("TRIVIUM_TOKEN", "secret-token")
    program = "import os, socket\nprint(dict(os.environ), os.getuid(), os.getgroups(), os.listdir('/proc'), socket.gethostname())"
    told = (await sandbox.run(program)).stdout.decode()
    assert "secret-token" not in told
    assert "TRIVIUM" not in told
    assert socket_name() not in told
    assert str(os.getpid()) not in told.split("[")[2].split("]")[0].replace("'", "").split(", ")
    uid = int(told.split("}")[1].split()[0])
    assert uid not in (0, os.getuid() if os.getuid() == 0 else 0)


def socket_name() -> str:
    return "".join(Path("/proc/sys/kernel/hostname").read_text().split()) + "!"


RUNAWAYS = {
    "cpu": ("while True: pass", "cpu"),
    "cpu_of_children": ("import os\nfor _ in range(3): os.fork()\nwhile True: pass", "cpu"),
    "wall": ("import time; time.sleep(60)", "wall"),
    "stdin": ("import signal; signal.pause()", "wall"),
    "output": ("while True: print('x' * 1000)", "output"),
    "stderr": ("import sys\nwhile True: sys.stderr.write('x' * 1000)", "output"),
    "memory_of_children": (
        "import os, time\nfor _ in range(4): os.fork()\n"
        "x = bytearray(50 * 2**20)\nfor i in range(0, len(x), 4096): x[i] = 1\ntime.sleep(60)",
        "memory",
    ),
    "ignoring_signals": (
        "import signal\nfor s in range(1, 32):\n  try: signal.signal(s, signal.SIG_IGN)\n  except OSError: pass\nwhile True: pass",
        "cpu",
    ),
    "fork_for_ever": ("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", "cpu"),
}


@pytest.mark.parametrize(("program", "limit"), RUNAWAYS.values(), ids=RUNAWAYS.keys())
async def test_runaways_are_stopped_at_their_limit(sandbox: Sandbox, program: str, limit: str) -> None:
    """With all they started, within twice the time limit, and the result says which limit it was."""
    start = time.monotonic()
    result = await sandbox.run(program)
    assert result.killed_by in (limit, "wall")  # the machine is shared: time may run out before CPU time does
    assert "[stopped: over the limit on" in result.text()
    assert len(result.stdout) + len(result.stderr) <= SMALL.output_bytes
    assert time.monotonic() - start < 2 * SMALL.wall_s


async def test_the_loop_is_never_held_up(sandbox: Sandbox) -> None:
    """While runaways run, the server's event loop answers: nothing here blocks it for as long as 500 ms."""
    runs = asyncio.gather(*(sandbox.run(program) for program, _ in RUNAWAYS.values()))
    slowest = 0.0
    while not runs.done():
        start = time.monotonic()
        await asyncio.sleep(0.01)
        slowest = max(slowest, time.monotonic() - start)
    await runs
    assert slowest < 0.5


async def test_a_session_keeps_its_files_and_loses_its_processes(sandbox: Sandbox) -> None:
    """As a terminal does, but what a command leaves running is ended."""
    async with await sandbox.session() as session:
        await session.write({"notes/a.txt": "hello"})
        await session.run(["sh", "-c", "cat notes/a.txt > b.txt; ln -s /etc/passwd link; mkfifo pipe; sleep 50 &"])
        assert await session.snapshot() == {"notes/a.txt": b"hello", "b.txt": b"hello"}
        left = await session.run("import os; print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()))")
        assert len(eval(left.stdout)) == 1  # itself; init and everyone else's are not to be seen
        assert await session.read(["b.txt", "none"]) == {"b.txt": b"hello"}


async def test_sessions_do_not_see_each_other(sandbox: Sandbox) -> None:
    """Neither files nor processes."""
    async with await sandbox.session() as one, await sandbox.session() as other:
        await one.write({"secret": "1"})
        assert await other.snapshot() == {}
        assert (await other.run(["ls", "/tmp", "/work"])).stdout == b"/tmp:\n\n/work:\n"


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "", "a\0b"])
async def test_files_stay_below_work(sandbox: Sandbox, name: str) -> None:
    """Names that lead elsewhere are the caller's mistake."""
    async with await sandbox.session() as session:
        with pytest.raises(ValueError, match="not below /work"):
            await session.write({name: "x"})
        with pytest.raises(ValueError, match="not below /work"):
            await session.read([name])


async def test_a_lost_sandbox_is_a_failure_and_no_result(sandbox: Sandbox) -> None:
    """Killed from outside while a command runs: the rollout has no verdict."""
    session = await sandbox.session(Limits(wall_s=20, cpu_s=20))
    running = asyncio.create_task(session.run("import time; time.sleep(20)"))
    await asyncio.sleep(0.2)
    await session.close()
    with pytest.raises(Failed) as caught:
        await running
    assert caught.value.failure.kind == "sandbox_lost"


async def test_a_cancelled_run_leaves_nothing_behind(sandbox: Sandbox) -> None:
    """The caller gave up; its session is closed and its place is free."""
    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await sandbox.run("import time; time.sleep(20)")
    assert (await sandbox.run("print(1)")).stdout == b"1\n"


async def test_closing_ends_every_process() -> None:
    """Sessions still open included: nothing of ours is left on the machine."""
    opened = await open_sandbox("namespaces")
    session = await opened.session()
    helper = opened._zygote.pid  # type: ignore[attr-defined]
    await session.run(["true"])
    await opened.close()
    with pytest.raises(ProcessLookupError):
        os.kill(helper, 0)
    with pytest.raises(Failed):
        await session.run(["true"])


OWNER = """
import asyncio
from resources_server.sandbox import open_sandbox
async def main():
    opened = await open_sandbox("namespaces")
    session = await opened.session()
    asyncio.create_task(session.run("import time; time.sleep(600)"))
    await asyncio.sleep(0.3)
    print(opened._zygote.pid, session.pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


def test_a_server_that_is_killed_leaves_nothing_behind() -> None:
    """kill -9: helper and sandboxes notice that their socket is gone, and end."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pids = owner.stdout.readline().split()
    if not pids:
        pytest.skip("no namespaces here")
    ends = [os.pidfd_open(int(pid)) for pid in pids]
    owner.kill()
    owner.communicate()
    for end in ends:
        assert select.select([end], [], [], 5)[0]
        os.close(end)


def test_it_runs_on_uvloop_too() -> None:
    """As servers do."""
    uvloop = pytest.importorskip("uvloop")

    async def once() -> bytes:
        try:
            async with await open_sandbox("namespaces") as opened:
                return (await opened.run("print(1)")).stdout
        except SandboxUnavailable as error:
            pytest.skip(str(error))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(once()) == b"1\n"


async def test_a_start_costs_little_more_than_a_python(sandbox: Sandbox) -> None:
    """Under 100 ms, or four times a bare Python where the machine is busy; the best of several of each."""
    walled, bare = [], []
    for _ in range(5):
        start = time.monotonic()
        await sandbox.run("pass")
        walled.append(time.monotonic() - start)
        start = time.monotonic()
        process = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", "pass")
        await process.wait()
        bare.append(time.monotonic() - start)
    assert min(walled) < max(0.1, 4 * min(bare))


async def test_a_deferred_sandbox_opens_when_it_is_used(sandbox: Sandbox) -> None:
    """Made where there is no event loop yet; then it is a sandbox like any other."""
    async with Deferred("namespaces", limits=SMALL) as deferred:
        assert (await deferred.run("print(1)")).stdout == b"1\n"
        async with await deferred.session() as session:
            assert session.limits == SMALL


async def test_more_files_than_the_limit_are_said_to_be(sandbox: Sandbox) -> None:
    """And a disk that is full is the program's own error."""
    small = Limits(cpu_s=2, wall_s=8, disk_bytes=2**20)
    async with await sandbox.session(small) as session:
        result = await session.run("open('a', 'wb').write(bytes(2**21))")
        assert b"No space left" in result.stderr
        with pytest.raises(OSError, match="No space left"):
            await session.write({"b": bytes(2**21)})


async def test_without_walls_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No namespaces, no engine: a plain refusal that says what each lacks, never code without walls."""
    monkeypatch.setattr("resources_server.sandbox.namespaces.INSIDE", Path("/nowhere/inside.py"))
    monkeypatch.setattr("resources_server.sandbox.container.ENGINES", ("no-such-engine",))
    with pytest.raises(SandboxUnavailable, match=r"no sandbox on this machine.*namespaces.*no-such-engine"):
        await open_sandbox()
    with pytest.raises(UsageError, match="none of auto, namespaces, container"):
        await open_sandbox("vm")


def test_limits_cannot_be_switched_off() -> None:
    """0, negative and infinite are refused, naming the limit."""
    for wrong in (0, -1, float("inf")):
        with pytest.raises(ValueError, match="wall_s"):
            Limits(wall_s=wrong)


def test_the_container_has_no_network_and_no_capabilities_to_speak_of() -> None:
    """The engine's command line; a container that runs is the docker test's matter."""
    words = Containers(image="img", engine="docker").command(Limits())
    for pair in (["--network", "none"], ["--cap-drop", "ALL"], ["--security-opt", "no-new-privileges"]):
        assert pair in [words[i : i + 2] for i in range(len(words))]
    assert "--read-only" in words
    assert not any(word in ("-v", "--volume", "--mount", "--privileged") for word in words)


def test_an_unprivileged_user_gets_walls_too() -> None:
    """In user namespaces, where the kernel allows them; otherwise the refusal says so."""
    if os.geteuid() != 0 or not Path("/usr/bin/python3").exists():
        pytest.skip("needs root, to become somebody else, and a Python that everybody may run")
    driver = Path(__file__).with_name("unprivileged_driver.py")
    inside = Path(provider.__file__).with_name("inside.py")
    done = subprocess.run(
        ["/usr/bin/python3", "-I", "-c", driver.read_text(), inside.read_text()],
        user=65534, group=65534, extra_groups=[], cwd="/", capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    if "unshare" in done.stdout:
        pytest.skip(done.stdout)
    assert "uid=65534" in done.stdout, done
    assert "root:" not in done.stdout


@pytest.mark.docker
async def test_a_container_runs_the_same_programs() -> None:
    """The same interface and the same init, behind an engine's walls."""
    async with await open_sandbox("container", limits=SMALL) as opened:
        assert (await opened.run("print(6 * 7)")).stdout == b"42\n"
        assert (await opened.run("while True: pass")).killed_by in ("cpu", "wall")
        assert not (await opened.run("import urllib.request as u; u.urlopen('http://1.1.1.1', timeout=1)")).ok
        assert (await opened.run("open('a', 'w').write('b')", read=["*"])).files == {"a": b"b"}
