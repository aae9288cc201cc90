"""A trainer that imports `nemo_gym` drives our stack: the calling sequence is that of NeMo RL's Gym environment, from its public source."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig

from rollouts.trainers import nemo_gym_compat
from rollouts.trainers.nemo_gym_compat.collection import RolloutFailed, result
from rollouts.trainers.nemo_gym_compat.running import RunHelper, read_stack
from tests.stack import ROOT
from wire.errors import UsageError
from wire.testing import free_port

CALL = {"calls": [{"name": "increment_counter", "arguments": {"count": 2}}]}
SCRIPT = "model_interface.options={turns: [%s, done], tokens: true}"


@pytest.fixture
def helper(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunHelper]:
    """Servers, stopped afterwards."""
    monkeypatch.syspath_prepend(nemo_gym_compat.FOLDER)
    monkeypatch.setenv("TRIVIUM_TOKEN", "t" * 20)
    running = RunHelper()
    yield running
    running.shutdown()
    running.shutdown()


def row(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "responses_create_params": {"input": [{"role": "user", "content": "Add 2."}]},
        "initial_count": 0,
        "expected_count": 2,
        "agent_ref": {"type": "responses_api_agents", "name": "counter_agent"},
        "_rowidx": number,
        **fields,
    }


async def test_the_sequence_of_nemo_rl_gives_contiguous_token_ids(helper: RunHelper) -> None:
    """Start with a global config, play rows by agent, find the three token fields on output items, whole prompts that continue."""
    from nemo_gym.cli import GlobalConfigDictParserConfig  # type: ignore[import-not-found]  # on the path for this test
    from nemo_gym.rollout_collection import RolloutCollectionHelper  # type: ignore[import-not-found]
    from nemo_gym.server_utils import HEAD_SERVER_KEY_NAME, BaseServerConfig  # type: ignore[import-not-found]

    port = free_port()
    turn = "{calls: [{name: increment_counter, arguments: {count: 2}}]}"
    given = {
        "policy_model_name": "m",
        "policy_api_key": "dummy_key",
        "port_range_low": 5000,
        "ray_head_node_address": "127.0.0.1:6379",
        "trivium": {"configs": ["counter"], "overrides": ["model_interface.backend=scripted", SCRIPT % turn]},
        HEAD_SERVER_KEY_NAME: {"host": "0.0.0.0", "port": port},
    }
    helper.start(
        global_config_dict_parser_config=GlobalConfigDictParserConfig(
            dotenv_path=Path("nemo_gym_env.yaml"),
            initial_global_config_dict=DictConfig(given),
            skip_load_from_cli=True,
        )
    )
    helper.poll()
    examples = [row(number) for number in range(3)]
    head = BaseServerConfig(host="127.0.0.1", port=port)
    seen_rows = []
    for task in RolloutCollectionHelper().run_examples(examples=examples, head_server_config=head):
        example, found = await task
        seen_rows.append(example["_rowidx"])
        assert found["reward"] == 1.0
        seen: list[int] = []
        for item in found["response"]["output"]:
            if item.get("generation_token_ids"):
                assert item["prompt_token_ids"][: len(seen)] == seen
                assert len(item["generation_token_ids"]) == len(item["generation_log_probs"])
                seen = item["prompt_token_ids"] + item["generation_token_ids"]
        assert seen
    assert sorted(seen_rows) == [0, 1, 2]


def test_the_trainers_model_server_is_the_policy() -> None:
    """All its replicas, by vLLM's interface, with ids required and on the items."""
    stack = read_stack(
        {
            "policy_base_url": ["http://a:1/v1", "http://b:2/v1"],
            "policy_model_name": "m",
            "policy_api_key": "dummy_key",
            "config_paths": ["counter"],
        }
    )
    model = stack.section("model_interface")
    assert (model["backend"], model["model"], model["token_ids"]) == ("vllm", "m", "required")
    assert list(model["base_urls"]) == ["http://a:1/v1", "http://b:2/v1"]
    assert stack.section("agent_server")["token_ids"] == "items"


def test_a_global_config_without_one_of_ours_says_what_is_missing() -> None:
    """By the key's whole name."""
    with pytest.raises(UsageError, match=r"env\.nemo_gym\.trivium\.configs"):
        read_stack({"policy_model_name": "m"})


def test_a_failed_rollout_is_masked_where_something_was_sampled() -> None:
    """NeMo RL zeroes its loss."""
    item = {"type": "message", "prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.1]}
    line = {"reward": None, "failure": {"kind": "tool_timeout", "message": "late"}, "response": {"output": [item]}}
    masked = result(line)
    assert (masked["reward"], masked["instance_config"]) == (0.0, {"mask_sample": True})


@pytest.mark.parametrize(("kind", "status"), [("model_unreachable", 503), ("model_refused", 422)])
def test_a_failed_rollout_with_nothing_sampled_raises_with_a_status(kind: str, status: int) -> None:
    """So that NeMo RL tries again what may pass."""
    with pytest.raises(RolloutFailed) as raised:
        result({"reward": None, "failure": {"kind": kind, "message": "no"}, "response": {"output": []}})
    assert raised.value.status == status


def test_the_folder_for_other_processes_is_printed() -> None:
    """It holds the package and is no package's parent that anything of ours imports from."""
    command = [sys.executable, "-m", "rollouts.trainers.nemo_gym_compat"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True, timeout=60)
    assert (Path(done.stdout.strip()) / "nemo_gym" / "cli.py").is_file()
