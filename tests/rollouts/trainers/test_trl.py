"""`rollout_func` with a stand-in for the trainer: real servers, real episodes; the trainer's own packages are tried under `-m train`."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rollouts.trainers.keys import KEY
from rollouts.trainers.tasks import Tasks
from rollouts.trainers.trl import Rollouts, prompt, reward, rollout_func
from tests.rollouts.trainers.trainer import END, FakeTrainer
from tests.stack import ROOT
from wire.errors import UsageError

CALL = '<tool_call>{"name": "increment_counter", "arguments": {"count": %d}}</tool_call>'


def adds_two(text: str) -> str:
    """Calls the tool once, whatever the task, then says done."""
    return "done" if "success" in text else CALL % 2


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Rollouts]:
    """The counter's tasks, the first of which is solved by adding two."""
    found = rollout_func("counter", "rollouts.retry_wait_s=0", output=tmp_path / "lines.jsonl")
    yield found
    found.close()


def prompts(*tasks: int) -> list[Any]:
    rows = Tasks(_stack())
    return [prompt(rows.row(task), str(task)) for task in tasks]


def _stack() -> Any:
    from rollouts import stack

    return stack.read(["counter"])


def test_episodes_with_tools_come_back_as_lists_of_one_length(play: Rollouts) -> None:
    """Two groups of two: ids as they were sampled, tool tokens masked, rewards by the verifier."""
    trainer = FakeTrainer(adds_two)
    made = play(prompts(0, 0, 5, 5), trainer)
    assert {len(values) for values in made.values()} == {4}
    assert made["reward"] == [1.0, 1.0, 0.0, 0.0]
    assert trainer.batches == [4, 4]  # all four ask together, twice
    for ids, mask, log_probs in zip(made["completion_ids"], made["env_mask"], made["logprobs"], strict=True):
        assert len(ids) == len(mask) == len(log_probs)
        sampled = "".join(chr(each) for each, bit in zip(ids, mask, strict=True) if bit)
        assert sampled == CALL % 2 + chr(END) + "done" + chr(END)
        between = "".join(chr(each) for each, bit in zip(ids, mask, strict=True) if not bit)
        assert "success" in between and between.endswith("assistant: ")
        assert all(bool(bit) == (each == -0.25) for each, bit in zip(log_probs, mask, strict=True))


def test_every_rollout_is_a_line_of_its_step(play: Rollouts) -> None:
    """Members of a group share a run id that no other policy has."""
    trainer = FakeTrainer(adds_two)
    play(prompts(0, 0), trainer)
    trainer.state.global_step = 8
    play(prompts(0, 0), trainer)
    lines = [json.loads(line) for line in play.output.read_text().splitlines()]
    assert [(each["task_index"], each["group_size"]) for each in lines] == [(0, 2)] * 4
    assert sorted(each["rollout_index"] for each in lines) == [0, 0, 1, 1]
    assert [each["provenance"]["policy_version"] for each in lines] == ["7", "7", "8", "8"]
    assert len({each["provenance"]["run_id"] for each in lines}) == 2
    assert {step["tokens"]["fidelity"] for each in lines for step in each["steps"]} == {"exact"}


def test_an_answer_cut_off_ends_the_episode(tmp_path: Path) -> None:
    """What follows the first prompt is never longer than the trainer's completion length."""
    play = rollout_func("counter", output=tmp_path / "lines.jsonl")
    try:
        made = play(prompts(0), FakeTrainer(lambda _: CALL % 2, max_completion_length=300))
    finally:
        play.close()
    assert len(made["completion_ids"][0]) <= 300
    line = json.loads(play.output.read_text())
    assert line["outcome"] in ("max_output_tokens", "context_window")


def test_a_failed_rollout_is_masked_and_the_others_are_not(tmp_path: Path) -> None:
    """The tool server dies in the middle of one batch; the next batch finds it started again."""
    play = rollout_func("counter", "rollouts.attempts=1", output=tmp_path / "lines.jsonl")
    trainer = FakeTrainer(adds_two)
    try:
        play(prompts(0), trainer)
        trainer._says = lambda _: _killed(trainer, play)
        broken = play(prompts(0, 0), trainer)
        trainer._says = adds_two
        assert play(prompts(0), trainer)["reward"] == [1.0]
    finally:
        play.close()
    assert broken["reward"] == [None, None]
    assert broken["failed"] == [True, True]
    assert broken["env_mask"] == [[0], [0]]
    assert reward()(**broken) == [None, None]


def _killed(trainer: FakeTrainer, play: Rollouts) -> str:
    """A call that comes when the resources server is gone, once."""
    trainer._says = lambda _: CALL % 2
    assert play._running is not None
    for pid in play._running[1].pids()["resources_server"]:
        os.kill(pid, signal.SIGKILL)
    return CALL % 2


def test_a_prompt_that_names_no_row_is_refused(play: Rollouts) -> None:
    """The sentence says where prompts come from."""
    with pytest.raises(UsageError, match=r"take train_dataset from rollouts\.trainers\.trl\.dataset"):
        play([[{"role": "user", "content": "Hello"}]], FakeTrainer(adds_two))


def test_a_component_that_no_rollout_has_is_named() -> None:
    """Rather than a column of nothing."""
    with pytest.raises(UsageError, match="'style'"):
        reward("style")(reward=[1.0])


def test_rows_of_another_file_are_played_too(play: Rollouts, tmp_path: Path) -> None:
    """For evaluation: the key holds the file."""
    row = {"responses_create_params": {"input": "Add two."}, "initial_count": 0, "expected_count": 2}
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps(row) + "\n")
    made = play([[{"role": "user", "content": "Add two.", KEY: f"{other}#0"}]], FakeTrainer(adds_two))
    assert made["reward"] == [1.0]


SCRIPT = """
import sys, threading
from tests.rollouts.trainers.test_trl import adds_two, prompts
from tests.stack import ROOT
from tests.rollouts.trainers.trainer import FakeTrainer
from rollouts.trainers.trl import rollout_func

if __name__ == "__main__":
    play = rollout_func("counter", output=sys.argv[1])
    play(prompts(0), FakeTrainer(adds_two))
    print(*(pid for pids in play._running[1].pids().values() for pid in pids), flush=True)
    if sys.argv[2] == "stay":
        threading.Event().wait()
"""


@pytest.mark.parametrize("end", ["stay", "leave"])
def test_no_server_outlives_the_trainer(tmp_path: Path, end: str) -> None:
    """Killed at once, or at its own end without `close`."""
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "lines.jsonl"), end]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as trainer:
        assert trainer.stdout is not None
        pids = [int(each) for each in trainer.stdout.readline().split()]
        assert len(pids) == 2
        watched = [os.pidfd_open(pid) for pid in pids]
        if end == "stay":
            trainer.kill()
        trainer.wait(30)
    for each in watched:
        ended, _, _ = select.select([each], [], [], 20)
        os.close(each)
        assert ended
