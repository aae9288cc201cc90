"""`trivium tasks` as a person calls it."""

from pathlib import Path

from tests.rollouts.command import trivium
from wire import jsonl


def test_templates_give_proven_tasks_split_by_template(tmp_path: Path) -> None:
    """The same for the same seed; nothing is overwritten."""
    command = ("tasks", "reasoning", "--count", 20, "--seed", 3, "--validation", 0.2, "--output")
    said = trivium(*command, "t.jsonl", folder=tmp_path)
    assert said.status == 0, said.err
    assert "20 hold up when their solution is carried out" in said.err
    train = [row for _, row in jsonl.read(tmp_path / "t.jsonl")]
    validation = [row for _, row in jsonl.read(tmp_path / "t_validation.jsonl")]
    assert len(train) + len(validation) == 20 and validation
    assert not {row["template"] for row in train} & {row["template"] for row in validation}
    assert trivium(*command, "again.jsonl", folder=tmp_path).status == 0
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "t.jsonl").read_bytes()
    assert trivium(*command, "t.jsonl", folder=tmp_path).status == 2


def test_an_environment_without_templates_says_so(tmp_path: Path) -> None:
    """One line, exit status 2."""
    said = trivium("tasks", "counter", "--count", 5, "--output", "t.jsonl", folder=tmp_path)
    assert said.status == 2 and "Counter has no templates()" in said.err
