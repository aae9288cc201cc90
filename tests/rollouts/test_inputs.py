"""Everything that can be wrong is told before the first call, in one line, and what is on disk stays as it is."""

import json
from pathlib import Path

import pytest

from rollouts.collect import check_inputs
from rollouts.plan import Plan, Source
from rollouts.settings import RolloutsSettings
from tests.rollouts.runs import Runs, lines, row, write
from tests.rollouts.scripted_agent import ScriptedAgent
from wire.errors import UsageError

ROW_A, ROW_B = json.dumps(row(1, task_id="t1")), json.dumps(row(2, task_id="t2"))


def plan(dataset: Path, output: Path, environment: str | None = None, **settings: object) -> Plan:
    """A plan that is only checked."""
    source = Source("scripted", dataset, environment=environment)
    return Plan([source], output, RolloutsSettings.model_validate(settings))


async def test_folders_of_the_output_are_made(runs: Runs) -> None:
    """Case D01: a first run into `new/deep/out.jsonl`."""
    runs.output = runs.output.parent / "new" / "deep" / "out.jsonl"
    assert (await runs.collect([row(0)])).exit_code == 0 and lines(runs.output)


@pytest.mark.parametrize("output", ["/proc/nope/out.jsonl", "folder", "/dev/null"])
def test_an_output_that_cannot_be_written_is_refused(tmp_path: Path, output: str) -> None:
    """Case D01: no such folder and none can be made, a folder, a device."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="cannot write .*" + output.rpartition("/")[2].removesuffix(".jsonl")):
        check_inputs(plan(write(tmp_path / "rows.jsonl", [row(0)]), tmp_path / output))


def test_a_missing_data_set_leaves_the_output(tmp_path: Path) -> None:
    """Case D01: the output is not touched before the input is read."""
    output = write(tmp_path / "keep.jsonl", [1, 2, 3])
    for fresh in (False, True):
        wanted = plan(tmp_path / "missing.jsonl", output)
        wanted.fresh = fresh
        with pytest.raises(UsageError, match=r"missing\.jsonl: No such file"):
            check_inputs(wanted)
    assert len(output.read_text().splitlines()) == 3


def test_the_data_set_is_not_overwritten(tmp_path: Path) -> None:
    """The same path as input and output is a slip of the hand."""
    dataset = write(tmp_path / "rows.jsonl", [row(0)])
    wanted = plan(dataset, dataset)
    wanted.fresh = True
    with pytest.raises(UsageError, match="is the data set itself"):
        check_inputs(wanted)
    assert lines(dataset) == [row(0)]


def test_an_output_that_names_no_file_is_refused(tmp_path: Path) -> None:
    """An empty name, which a script's unset variable gives, and one that is too long are one line, not a traceback."""
    dataset = write(tmp_path / "rows.jsonl", [row(0)])
    with pytest.raises(UsageError, match="names no file"):
        check_inputs(plan(dataset, Path()))
    with pytest.raises(UsageError, match=r"cannot write .*: File name too long"):
        check_inputs(plan(dataset, tmp_path / ("x" * 300)))


def test_somebodys_file_of_one_line_is_kept(tmp_path: Path) -> None:
    """No newline and no record of a run beside it: not a torn line of ours, which would be cut off."""
    output = tmp_path / "settings.json"
    output.write_text('{"important": true}')
    with pytest.raises(UsageError, match="holds something else"):
        check_inputs(plan(write(tmp_path / "rows.jsonl", [row(0)]), output))
    assert output.read_text() == '{"important": true}'


async def test_odd_files_are_read(runs: Runs, agent: ScriptedAgent) -> None:
    """Case D05: byte order mark, CRLF, blank lines, no last newline."""
    runs.dataset.write_bytes(b"\xef\xbb\xbf" + ROW_A.encode() + b"\r\n\r\n   \n" + ROW_B.encode())
    assert (await runs.collect()).counts.ok == 2
    assert sorted(each["task_id"] for each in agent.asked) == ["t1", "t2"]


async def test_a_huge_row_comes_back_unchanged(runs: Runs) -> None:
    """Case D05: 20 MB in one field."""
    await runs.collect([row(0, pad="x" * 20_000_000)])
    assert lines(runs.output)[0]["pad"] == "x" * 20_000_000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f'{ROW_A}\n{{"task_id": "t2",\n{ROW_B}\n', r"rows\.jsonl:2: not JSON"),
        (f"{ROW_A}\n[1,2]\n", r"rows\.jsonl:2: a line is a JSON object"),
        (f'{ROW_A}\n\n{{"task_id": "t2"}}\n', r"rows\.jsonl:3: field 'responses_create_params' is missing"),
        (f"{ROW_A}\n{json.dumps(row(3, reward=1))}\n", r"rows\.jsonl:2: field 'reward' is reserved"),
        (f"{ROW_A}\n{ROW_B}\n{json.dumps(row(3, task_id='t1'))}\n", r"rows\.jsonl:3: task_id 't1' stands in line 1"),
        ("", r"no tasks in .*rows\.jsonl"),
        ("\n  \n", r"no tasks in .*rows\.jsonl"),
        (f'{ROW_A}\n{{"number": NaN}}\n', r"rows\.jsonl:2: not JSON"),
        (f'{ROW_A[:-1]}, "number": 1e999}}\n', r"rows\.jsonl:1: \$\.number is inf"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, text: str, says: str) -> None:
    """Case D05: the physical line, before any call, whatever stands in the output."""
    dataset, output = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    dataset.write_text(text)
    with pytest.raises(UsageError, match=says):
        check_inputs(plan(dataset, output))
    assert not output.exists()


async def test_a_limit_reads_no_further(runs: Runs) -> None:
    """Case D05, documented: `--limit 1` on a file whose second line is broken is a clean run of the first."""
    runs.dataset.write_text(f"{ROW_A}\n{{broken\n")
    assert (await runs.collect(limit=1)).line == "1 ok, 0 failed, 0 missing"


async def test_identical_rows_are_two_tasks(runs: Runs) -> None:
    """Ruling 4, with and without an explicit task id, whatever the order of their keys."""
    one, turned = {"task_id": "t", **row(0)}, dict(reversed({"task_id": "t", **row(0)}.items()))
    assert (await runs.collect([row(1), row(1), one, one, turned])).counts.ok == 5


async def test_the_environment_checks_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A field that the task needs and the row has not is named, with what a row has, before any server starts."""
    (tmp_path / "shelf.py").write_text(
        "from resources_server import Environment, Task\n"
        "class ShelfTask(Task):\n    stock: dict[str, int]\n    order: dict[str, int]\n"
        "class Shelf(Environment[ShelfTask]):\n    def verify(self, response): return 1.0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    good, bad = row(0, stock={"bolt": 1}, order={}), row(1, stock={"bolt": 1})
    data = {"responses_create_params": {"input": "x"}, "task_data": {"stock": {}, "order": {}}}
    materialised = {"task_id": {"taskset": "s", "task_id": "1"}, "task_input": data}
    dataset = write(tmp_path / "rows.jsonl", [good, materialised, bad])

    with pytest.raises(UsageError, match=r"rows\.jsonl:3: field 'order' is missing \(a Shelf row has stock, order\)"):
        check_inputs(plan(dataset, tmp_path / "out.jsonl", "shelf:Shelf"))
    check_inputs(plan(dataset, tmp_path / "out.jsonl", "shelf:Shelf", limit=2)).close()


def test_rows_are_routed_by_name(tmp_path: Path) -> None:
    """With several environments `environment` or `agent_ref.name` says which; others are named by line."""
    rows = [row(0), row(1, environment="b"), row(2, agent_ref={"name": "b"})]
    sources = [Source("a", write(tmp_path / "rows.jsonl", rows)), Source("b", None)]
    inputs = check_inputs(Plan(sources, tmp_path / "out.jsonl", RolloutsSettings()))
    assert [inputs.rows.source(each).name for each in inputs.rows] == ["a", "b", "b"]
    inputs.close()

    write(tmp_path / "rows.jsonl", [*rows, row(3, agent_ref={"name": "wetter_agent"})])
    with pytest.raises(UsageError, match=r"rows\.jsonl:4: agent_ref\.name 'wetter_agent' is none of this run's"):
        check_inputs(Plan(sources, tmp_path / "out.jsonl", RolloutsSettings()))
