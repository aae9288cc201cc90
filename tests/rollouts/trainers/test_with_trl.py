"""TRL itself, on the CPU: `pytest -m train` in an environment with the extra `trl`."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from rollouts.export.export import export
from rollouts.export.formats import FORMATS
from rollouts.export.reading import Selection
from rollouts.trainers import trl as ours
from tests.rollouts.export.test_export import OUTPUT, line
from tests.rollouts.trainers import tiny
from wire import jsonl

pytestmark = [pytest.mark.train, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]
CALL = '<tool_call>\n{"name": "increment_counter", "arguments": {"count": 2}}\n</tool_call><|im_end|>'
CONSTRAINED = ("counter", "model_interface.tool_calls=constrained", "agent_server.max_steps=2")


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No hub, no cache of another run, no notices."""
    pytest.importorskip("trl")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))


def grpo(folder: Path, **changes: Any) -> Any:
    """Settings of a GRPO run of two steps."""
    from trl import GRPOConfig

    settings: dict[str, Any] = {
        "output_dir": str(folder),
        "per_device_train_batch_size": 4,
        "num_generations": 2,
        "max_steps": 2,
        "max_completion_length": 64,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "learning_rate": 1e-3,
    }
    return GRPOConfig(**settings | changes)


def test_grpo_trains_on_constrained_tool_episodes(tmp_path: Path) -> None:
    """A random model, held to the tools' schemas, makes calls that run; every rollout is a line, and the weights move."""
    from trl import GRPOTrainer

    words = tiny.tokenizer()
    model = tiny.model(words)
    play = ours.rollout_func(*CONSTRAINED, output=tmp_path / "lines.jsonl")
    trainer = GRPOTrainer(
        model,
        reward_funcs=[ours.reward(), _length],
        args=grpo(tmp_path),
        train_dataset=ours.dataset(*CONSTRAINED),
        processing_class=words,
        rollout_func=play,
    )
    before = model.lm_head.weight.detach().clone()
    try:
        trainer.train()
    finally:
        play.close()
    lines = [each for _, each in jsonl.read(play.output)]
    assert len(lines) == 8
    assert {each["provenance"]["policy_version"] for each in lines} == {"0", "1"}
    assert any(each["steps"][0]["calls"] for each in lines)
    told = [
        step["tokens"] for each in lines for step in each["steps"] if step["tokens"]
    ]  # none where nothing fitted any more
    assert {each["fidelity"] for each in told} == {"exact"}
    assert not before.equal(model.lm_head.weight)


def _length(completion_ids: list[list[int]], **_: Any) -> list[float]:
    """Something that differs between rollouts of a random model."""
    return [float(len(each)) for each in completion_ids]


def test_log_probs_are_those_of_the_model(tmp_path: Path) -> None:
    """Sampled at temperature 1 without a grammar: a forward pass over the same ids says the same."""
    import torch
    from trl import GRPOTrainer

    words = tiny.tokenizer()
    model = tiny.model(words)
    play = ours.rollout_func("counter", "agent_server.max_steps=1", output=tmp_path / "lines.jsonl")
    rows = ours.dataset("counter")
    trainer = GRPOTrainer(
        model,
        reward_funcs=[ours.reward()],
        args=grpo(tmp_path, temperature=1.0),
        train_dataset=rows,
        processing_class=words,
        rollout_func=play,
    )
    try:
        made = play([rows[0]["prompt"], rows[0]["prompt"], rows[1]["prompt"]], trainer)
    finally:
        play.close()
    for prompt, completion, log_probs in zip(made["prompt_ids"], made["completion_ids"], made["logprobs"], strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1]
        told = torch.log_softmax(logits, -1).gather(1, torch.tensor(completion).unsqueeze(1)).squeeze(1)
        assert all(math.isclose(one, other, abs_tol=1e-4) for one, other in zip(told.tolist(), log_probs, strict=True))


def test_failed_rollouts_do_not_move_their_group(tmp_path: Path) -> None:
    """TRL's own advantages: 0 for the failed one, and those of the others as if it were not there."""
    import torch
    from trl import GRPOTrainer

    words = tiny.tokenizer()
    rewards: list[float | None] = [1.0, 0.0, None, 0.0]
    ids = words.encode("hello")

    def play(prompts: list[Any], trainer: Any) -> dict[str, Any]:
        masks = [[0] * len(ids) if each is None else [1] * len(ids) for each in rewards]
        return {
            "prompt_ids": [ids] * 4,
            "completion_ids": [ids] * 4,
            "logprobs": [[0.0] * len(ids)] * 4,
            "env_mask": masks,
            "reward": rewards,
        }

    trainer = GRPOTrainer(
        tiny.model(words),
        reward_funcs=[ours.reward()],
        args=grpo(tmp_path, num_generations=4, scale_rewards="none"),
        train_dataset=ours.dataset("counter"),
        processing_class=words,
        rollout_func=play,
    )
    trainer.model.train()
    rows = ours.dataset("counter")
    made = trainer._generate_and_score_completions([dict(rows[0]) for _ in range(4)])
    third = 1 / 3
    assert torch.allclose(made["advantages"], torch.tensor([1 - third, -third, 0.0, -third]), atol=1e-5)


def test_trl_plays_one_of_our_environments_by_its_factory(tmp_path: Path) -> None:
    """TRL's own example task, a counter to increment: its tools, its loop, our environment and verdict."""
    from trl import GRPOTrainer

    words = tiny.tokenizer()
    call, done = words.encode(CALL), words.encode("done<|im_end|>")
    counter = ours.environment_factory("counter")
    seen: list[list[float | None]] = []

    class Scripted(GRPOTrainer):  # type: ignore[misc]  # a random model makes no calls: the first turn is a call, the second an answer
        def _generate_single_turn(self, prompt_ids: list[list[int]], *_: Any, **__: Any) -> Any:
            return [done if "success" in words.decode(each) else call for each in prompt_ids], None

        def _calculate_rewards(self, *given: Any) -> Any:
            found = super()._calculate_rewards(*given)
            seen.append(found[:, 0].tolist())
            return found

    trainer = Scripted(
        tiny.model(words),
        reward_funcs=[],
        args=grpo(tmp_path, max_steps=20, max_completion_length=512, seed=3),
        train_dataset=ours.dataset("counter"),
        processing_class=words,
        environment_factory=counter,
    )
    trainer.model.train()
    rows = ours.dataset("counter")
    trainer._generate_and_score_completions([rows[0], rows[0], rows[5], rows[5]])
    assert seen == [[1.0, 1.0, 0.0, 0.0]]  # adding two solves the first task and not the sixth
    counter._world.close()


def lines() -> list[dict[str, Any]]:
    """Groups with spread, whose tools and arguments have nothing in common."""
    made = []
    for task, arguments in enumerate(('{"n": 2}', '{"text": "x", "in": {"a": [1]}}', '{"n": "two"}', "{}")):
        tools = [{"type": "function", "name": "add", "description": "Add.", "parameters": _schema(arguments)}]
        call = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": arguments}
        answer = {"output": [call, *OUTPUT[1:]], "tools": tools, "usage": {"input_tokens": 12, "output_tokens": 5}}
        made += [line(task, repeat, float(repeat), response=answer) for repeat in (0, 1)]
    return made


def _schema(arguments: str) -> dict[str, Any]:
    kinds = {int: "integer", str: "string", dict: "object"}
    properties = {name: {"type": kinds[type(value)]} for name, value in json.loads(arguments).items()}
    return {"type": "object", "properties": properties}


def exported(folder: Path, name: str) -> Path:
    """A file of a format."""
    path, output = folder / "in.jsonl", folder / f"{name}.jsonl"
    path.unlink(missing_ok=True)
    with jsonl.Appender(path) as out:
        for each in lines():
            out.append(each)
    export(FORMATS[name], [path], output, Selection())
    return output


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_format_loads_with_datasets(tmp_path: Path, name: str, ending: str) -> None:
    """As it was written: no argument of one tool appears in another's call."""
    from datasets import load_dataset

    output = exported(tmp_path, name)
    told = [each for _, each in jsonl.read(output)]
    if ending == "parquet":
        export(FORMATS[name], [tmp_path / "in.jsonl"], output.with_suffix(".parquet"), Selection())
    builder = "json" if ending == "jsonl" else "parquet"
    path = str(output.with_suffix(f".{ending}"))
    loaded = load_dataset(builder, data_files=path, split="train", cache_dir=str(tmp_path / ending))
    for found, record in zip(loaded, told, strict=True):
        assert _rounded({key: value for key, value in found.items() if value is not None}) == _rounded(
            {key: value for key, value in record.items() if value is not None}
        )


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return round(value, 6) if isinstance(value, float) else value


@pytest.mark.parametrize("kind", ["sft", "dpo", "kto"])
def test_trls_trainers_take_our_files(tmp_path: Path, kind: str) -> None:
    """Chat template, tools and tokenization are theirs; one step is taken."""
    import trl
    from datasets import load_dataset
    from trl.experimental import kto

    trainers: dict[str, Any] = {
        "sft": (trl.SFTTrainer, trl.SFTConfig),
        "dpo": (trl.DPOTrainer, trl.DPOConfig),
        "kto": (getattr(trl, "KTOTrainer", None) or kto.KTOTrainer, getattr(trl, "KTOConfig", None) or kto.KTOConfig),
    }
    trainer_class, config_class = trainers[kind]
    loaded = load_dataset("json", data_files=str(exported(tmp_path, f"trl-{kind}")), split="train")
    words = tiny.tokenizer()
    args = config_class(
        output_dir=str(tmp_path),
        max_steps=1,
        per_device_train_batch_size=2,
        max_length=1024,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    tiny.model(words).save_pretrained(tmp_path / "model")  # DPO and KTO load it again for their reference
    trainer = trainer_class(str(tmp_path / "model"), args=args, train_dataset=loaded, processing_class=words)
    assert math.isfinite(trainer.train().training_loss)
