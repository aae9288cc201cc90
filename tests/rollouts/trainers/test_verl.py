"""veRL's own data set class reads what we export: `VERL=/path/to/a/checkout pytest -m peers`, without a GPU.

It wants torch, transformers 4, datasets, ray and tensordict.
"""

import importlib
import json
import os
from pathlib import Path

import pytest

from rollouts.export import export
from rollouts.export.formats import FORMATS
from rollouts.export.reading import Selection
from tests.rollouts.export.test_export import line
from tests.rollouts.trainers import tiny
from wire import jsonl

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """veRL on the path."""
    folder = os.environ.get("VERL")
    if not folder:
        pytest.skip("VERL names no checkout")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))


def test_its_data_set_reads_our_rows(tmp_path: Path) -> None:
    """Rows of two worlds whose fields have nothing in common: prompts fit, and each row's own truth comes back unmixed."""
    omegaconf = pytest.importorskip("omegaconf")
    reader = importlib.import_module("verl.utils.dataset.rl_dataset")
    lines = [line(0, 0, 1.0), line(1, 0, 0.0, board=[[1, 2]], expected="two")]
    with jsonl.Appender(tmp_path / "in.jsonl") as out:
        for each in lines:
            out.append(each)
    export.export(FORMATS["verl"], [tmp_path / "in.jsonl"], tmp_path / "rows.json", Selection())
    chosen = omegaconf.OmegaConf.create(
        {"max_prompt_length": 512, "filter_overlong_prompts_workers": 1, "cache_dir": str(tmp_path)}
    )

    found = reader.RLHFDataset(str(tmp_path / "rows.json"), tiny.tokenizer(), chosen)

    rows = [found[index] for index in range(len(found))]
    assert [row["index"] for row in rows] == [0, 1]
    assert [row["raw_prompt"] for row in rows] == [[{"role": "user", "content": "Add two."}]] * 2
    truths = [json.loads(row["reward_model"]["ground_truth"]) for row in rows]
    assert (truths[0]["expected"], truths[1]["expected"], truths[1]["board"]) == (2, "two", [[1, 2]])
    assert "board" not in truths[0]
    assert set(reader.collate_fn(rows)) >= {"raw_prompt", "reward_model", "index", "agent_ref"}
