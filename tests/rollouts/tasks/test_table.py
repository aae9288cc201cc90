"""Tasks as a table and back, and through NeMo Data Designer."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rollouts.tasks import table
from tests.rollouts.command import trivium
from wire import jsonl
from wire.errors import UsageError

ROWS: list[dict[str, Any]] = [
    {
        "task_id": f"t-{number}",
        "responses_create_params": {"input": f"Reserve {number} “bolts”,\nplease."},
        "order": {"bolt": number},
    }
    for number in range(1, 4)
]
DESIGN = """
import sys
import data_designer.config as dd
from data_designer.interface import DataDesigner
config = dd.DataDesignerConfigBuilder(model_configs=[])
config.with_seed_dataset(dd.LocalFileSeedSource(path=sys.argv[1]))
config.add_column(dd.ExpressionColumnConfig(name="paraphrase", expr="If you can: {{ prompt }}"))
made = DataDesigner(artifact_path=sys.argv[2]).create(config, num_records=6, dataset_name="tasks")
made.load_dataset().to_parquet(sys.argv[3])
"""


@pytest.mark.parametrize("suffix", table.SUFFIXES)
def test_a_table_holds_whole_tasks(tmp_path: Path, suffix: str) -> None:
    """In each form, line breaks and quotation marks included."""
    path = tmp_path / f"seeds{suffix}"
    assert table.write(ROWS, path) == 3
    back = list(table.read(path, "prompt"))
    assert [
        {**each, "task_id": row["task_id"]} for each, row in zip(back, ROWS, strict=True) if isinstance(each, dict)
    ] == ROWS


def test_a_result_that_lost_a_fact_is_told(tmp_path: Path) -> None:
    """In place of the task."""
    path = tmp_path / "seeds.csv"
    table.write(ROWS[:1], path)
    path.write_text(path.read_text().replace("Reserve 1 “bolts”,\nplease.", "Reserve bolts.", 1))
    assert list(table.read(path, "prompt")) == ["t-1-designed-1: the new prompt has lost or added 1"]


def test_a_table_without_the_column_is_refused(tmp_path: Path) -> None:
    """Naming those that there are."""
    path = tmp_path / "seeds.jsonl"
    table.write(ROWS, path)
    with pytest.raises(UsageError, match=r"no text in column 'paraphrase'.*have: task_id"):
        list(table.read(path, "paraphrase"))
    with pytest.raises(UsageError, match=r"ends in \.csv"):
        table.write(ROWS, tmp_path / "seeds.txt")


@pytest.mark.peers
@pytest.mark.parametrize("suffix", table.SUFFIXES)
def test_data_designer_reads_the_seeds_and_we_its_results(tmp_path: Path, suffix: str) -> None:
    """The unmodified package; DATA_DESIGNER_PYTHON names the interpreter that has it, where ours has not."""
    python = os.environ.get("DATA_DESIGNER_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import data_designer"], capture_output=True, check=False).returncode:
        pytest.skip("data-designer is not installed")
    made = trivium(
        "tasks", "reasoning", "--count", 6, "--output", "t.jsonl", "--seeds", f"seeds{suffix}", folder=tmp_path
    )
    assert made.status == 0, made.err
    command = [python, "-c", DESIGN, f"seeds{suffix}", "artifacts", "results.parquet"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    back = trivium("tasks", "reasoning", "--results", "results.parquet", "--output", "new.jsonl", folder=tmp_path)
    assert back.status == 0, back.err
    prompts = [row["responses_create_params"]["input"] for _, row in jsonl.read(tmp_path / "new.jsonl")]
    assert len(prompts) == 6 and all(each.startswith("If you can: ") for each in prompts)
