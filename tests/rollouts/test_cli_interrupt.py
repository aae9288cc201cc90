"""Case D08: an interrupted `trivium collect` keeps what is done, leaves nothing running and goes on where it was."""

import select
import signal
import subprocess
from pathlib import Path
from time import monotonic

import pytest

from tests.rollouts.command import children, exists, keys, lines, running, setting, trivium

ROWS = 20
DELAY_S = 0.4  # of each rollout: 20 rows in five waves of four


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return setting(tmp_path, rows=ROWS, delay_s=DELAY_S)


def until_lines(process: "subprocess.Popen[str]", path: Path, count: int) -> None:
    """Returns once the file has so many lines."""
    deadline = monotonic() + 30
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert process.poll() is None, process.communicate()
        assert monotonic() < deadline
        select.select([], [], [], 0.02)


@pytest.mark.parametrize(
    ("signals", "status"),
    [
        ([signal.SIGINT], 130),
        ([signal.SIGTERM], 143),
        ([signal.SIGINT, signal.SIGINT], 130),
        ([signal.SIGTERM, signal.SIGINT], 143),
    ],
)
def test_an_interrupted_run_is_whole_and_goes_on(folder: Path, signals: list[signal.Signals], status: int) -> None:
    """Finished rows are on disk, rows in flight appear nowhere, no process is left, and the next run completes it."""
    output = folder / "o.jsonl"
    with running("collect", "c.yaml", "--output", "o.jsonl", folder=folder) as process:
        until_lines(process, output, 6)
        pids = children(process.pid)
        assert len(pids) == 3
        began = monotonic()
        for number in signals:
            process.send_signal(number)
            select.select([], [], [], 0.1)
        assert process.wait(5) == status
        assert monotonic() - began < 5
    assert not any(exists(pid) for pid in pids)
    done = keys(output)
    assert 6 <= len(done) == len(set(done)) < ROWS
    assert all(each["failure"] is None for each in lines(output))
    assert lines(folder / "o_failures.jsonl") == []
    said = trivium("collect", "c.yaml", "--output", "o.jsonl", folder=folder)
    assert said.status == 0, said
    assert sorted(keys(output)) == [(task, 0) for task in range(ROWS)]
    assert set(keys(output)[: len(done)]) == set(done)


def test_signals_to_the_very_end_change_no_status(folder: Path) -> None:
    """An impatient person, or a scheduler: also a signal that meets the interpreter as it ends is answered with 130."""
    with running("collect", "c.yaml", "--output", "o.jsonl", folder=folder) as process:
        until_lines(process, folder / "o.jsonl", 1)
        deadline = monotonic() + 5
        while process.poll() is None and monotonic() < deadline:
            process.send_signal(signal.SIGINT)
            select.select([], [], [], 0.005)
        assert process.wait(1) == 130


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_the_servers_start_leaves_nothing(folder: Path, number: signal.Signals, status: int) -> None:
    """From the first child on."""
    with running("collect", "c.yaml", "--output", "o.jsonl", folder=folder) as process:
        deadline = monotonic() + 20
        while not (pids := children(process.pid)):
            assert monotonic() < deadline
            select.select([], [], [], 0.005)
        process.send_signal(number)
        assert process.wait(5) == status
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    assert not any(exists(pid) for pid in pids)


def test_a_killed_run_leaves_no_server_and_goes_on(folder: Path) -> None:
    """`kill -9` of the command itself."""
    output = folder / "o.jsonl"
    with running("collect", "c.yaml", "--output", "o.jsonl", folder=folder) as process:
        until_lines(process, output, 4)
        pids = children(process.pid)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=10)
    deadline = monotonic() + 10
    while any(exists(pid) for pid in pids):
        assert monotonic() < deadline
        select.select([], [], [], 0.02)
    assert trivium("collect", "c.yaml", "--output", "o.jsonl", folder=folder).status == 0
    assert sorted(keys(output)) == [(task, 0) for task in range(ROWS)]
