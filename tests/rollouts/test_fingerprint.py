"""What is remembered of a run, and what is told when another one would be mixed into it: pure, and the two files."""

from pathlib import Path

import pytest

from rollouts.fingerprint import Record, Run, differences, extended, refuse_other_config
from wire.errors import UsageError

A, B, C, NONE = (bytes([each]) * 16 for each in (1, 2, 3, 0))


def test_the_first_difference_is_the_deepest_name() -> None:
    """Nested objects are compared field by field; what is missing on one side is said to be."""
    before = {"model": {"name": "a", "options": {"seed": 1}}, "agent": "loop"}
    now = {"model": {"name": "a", "options": {"seed": 2, "top_k": 5}}, "agent": "loop"}
    assert [name for name, _, _ in differences(before, now)] == ["model.options.seed", "model.options.top_k"]
    with pytest.raises(UsageError, match=r"model\.options\.seed was 1 and is now 2; --fresh"):
        refuse_other_config(Path("out.jsonl"), Run(before, ["x"]), Run(now, ["x"]))


def test_environments_of_a_mixed_run_may_not_change() -> None:
    """Their number and order number the tasks; a single one may be called anything."""
    with pytest.raises(UsageError, match="the environments were"):
        refuse_other_config(Path("out.jsonl"), Run({}, ["a", "b"]), Run({}, ["a"]))
    refuse_other_config(Path("out.jsonl"), Run({}, ["a"]), Run({}, ["b"]))


@pytest.mark.parametrize(
    ("before", "now", "both"),
    [
        (A + B, A + B + C, A + B + C),
        (A + B + C, A + B, A + B + C),
        (A + B + C, A + NONE + C, A + B + C),
        (A + NONE, A + NONE + C + B, A + NONE + C + B),
    ],
    ids=["rows added", "a limit", "a limit on one of two", "rows added to one of two"],
)
def test_rows_that_were_seen_are_not_forgotten(before: bytes, now: bytes, both: bytes) -> None:
    """Whatever a limit leaves out this time."""
    assert extended(before, now) == both


def test_a_record_comes_back(tmp_path: Path) -> None:
    """With the same id and hash; and another program's file is not taken for one."""
    record = Record(tmp_path / "run.json", tmp_path / "run.rows")
    assert record.load() is None and record.digests() == b""
    run = Run({"model": {"b": 1, "a": 2}}, ["x"])
    record.save(run, A + B)
    assert record.load() == run and record.digests() == A + B
    assert run.config_sha256 == Run({"model": {"a": 2, "b": 1}}, ["y"]).config_sha256

    (tmp_path / "run.json").write_text('{"other": 1}')
    with pytest.raises(UsageError, match="is no record of a run"):
        record.load()
