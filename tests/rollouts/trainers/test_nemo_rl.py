"""NeMo RL's own code reads what we give it: `NEMO_RL=/path/to/a/checkout pytest -m peers`, with torch, transformers, datasets and ray.

No GPU is needed: its data set classes, and the post-processing of its Gym environment without the actor around it.
"""

import copy
import importlib
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rollouts.trainers.nemo_gym_compat.collection import result
from tests.rollouts.export.test_export import line
from tests.rollouts.trainers import tiny

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]
GOLDEN = Path(__file__).parents[1] / "export" / "golden"


@pytest.fixture(autouse=True)
def checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """NeMo RL on the path."""
    folder = os.environ.get("NEMO_RL")
    if not folder:
        pytest.skip("NEMO_RL names no checkout")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))


def gym() -> Any:
    """Its Gym environment's class, without Ray around it."""
    pytest.importorskip("ray")
    module = importlib.import_module("nemo_rl.environments.nemo_gym")
    return module, module.NemoGym.__ray_metadata__.modified_class


def test_its_post_processing_takes_our_results() -> None:
    """Contiguous ids, log-probabilities of the generations, and a check of its own that components sum to the reward."""
    module, environment = gym()
    played = line(0, 0, 1.0, reward_components={"a": 0.25, "b": 0.75})
    played["responses_create_params"] = {"input": [{"role": "user", "content": "Add two."}]}
    found = result(copy.deepcopy(played))
    stand_in = SimpleNamespace(cfg={}, _processor=None)
    made = environment._postprocess_nemo_gym_to_nemo_rl_result(stand_in, played, found, tiny.tokenizer())
    ids = [message["token_ids"].tolist() for message in made["message_log"]]
    assert [message["role"] for message in made["message_log"]] == ["user", "assistant", "user", "assistant"]
    assert ids == [[1, 10, 11], [20, 21, 2], [198, 30, 31], [40, 2]]
    assert made["message_log"][3]["generation_logprobs"].tolist() == pytest.approx([-0.4, -0.5])
    module.validate_reward_components_match_scalar([made["full_result"]])


def test_its_data_sets_read_our_files() -> None:
    """Rows for its Gym, dialogues for supervised training, pairs for preference training."""
    pytest.importorskip("datasets")
    responses = importlib.import_module("nemo_rl.data.datasets.response_datasets")
    preferences = importlib.import_module("nemo_rl.data.datasets.preference_datasets.preference_dataset")
    rows = responses.NemoGymDataset(str(GOLDEN / "nemo-rl.jsonl")).dataset
    assert "responses_create_params" in json.loads(rows[0]["extra_env_info"])
    told = [json.loads(each) for each in (GOLDEN / "nemo-rl-sft.jsonl").read_text().splitlines()]
    dialogues = responses.OpenAIFormatDataset(str(GOLDEN / "nemo-rl-sft.jsonl"), use_preserving_dataset=True).dataset
    assert dialogues[0]["messages"] == told[0]["messages"]
    pairs = preferences.PreferenceDataset(str(GOLDEN / "nemo-rl-preference.jsonl")).dataset
    assert [each["rank"] for each in pairs[0]["completions"]] == [0, 1]
