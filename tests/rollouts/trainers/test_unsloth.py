"""Unsloth's own preparation reads what we export: `UNSLOTH_ZOO=/path/to/a/checkout pytest -m peers`, with torch, datasets and trl.

The package itself asks for a GPU when it is imported, so its module is loaded without the package around it.
"""

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.rollouts.trainers import tiny

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]
GOLDEN = Path(__file__).parents[1] / "export" / "golden"


@pytest.fixture
def zoo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Its `dataset_utils`."""
    folder = os.environ.get("UNSLOTH_ZOO")
    if not folder:
        pytest.skip("UNSLOTH_ZOO names no checkout")
    package = ModuleType("unsloth_zoo")
    package.__path__ = [str(Path(folder) / "unsloth_zoo")]
    monkeypatch.setitem(sys.modules, "unsloth_zoo", package)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    return importlib.import_module("unsloth_zoo.dataset_utils")


def test_its_preparation_renders_and_masks_our_samples(zoo: Any) -> None:
    """With no `formatting_func`: the tool's schema and the call are in the text, and the prompt is not learned."""
    datasets = pytest.importorskip("datasets")
    rows = datasets.load_dataset("json", data_files=str(GOLDEN / "unsloth.jsonl"))["train"]
    assert zoo.standardize_data_formats(rows) is rows
    words = tiny.tokenizer()
    told = SimpleNamespace(max_length=4096, dataset_text_field="text", dataset_num_proc=1, packing=False)

    made = zoo.sft_prepare_dataset(SimpleNamespace(data_collator=None), rows, words, told, False, None, "train")

    sample = made[0]
    learned = words.decode(
        [each for each, kept in zip(sample["input_ids"], sample["completion_mask"], strict=True) if kept]
    )
    assert "Add two." in words.decode(sample["input_ids"]) and "Add two." not in learned
    assert '"name": "add"' in learned and '{"n": 2}' in learned and "It is 2." in learned
