"""One seed of GRPO on the CPU: SmolLM2-135M-Instruct, TRL's trainer, our rollouts. `python -P examples/grpo_cpu/train.py --seed 1`

Every rollout is written as a line; plot.py makes the curve and the statistic of the lines alone.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STEPS, GROUP = 24, 8
TRAINED_LAYERS = 6  # of 30, the upper ones: half the arithmetic of a full backward pass
LEARNING_RATE = 5e-5  # what it is unless --learning-rate says otherwise


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seed", type=int, required=True)
    arguments.add_argument("--steps", type=int, default=STEPS)
    arguments.add_argument("--learning-rate", type=float, default=LEARNING_RATE)
    arguments.add_argument("--output", type=Path, default=Path("results/grpo_cpu"))
    chosen = arguments.parse_args()
    train(chosen.seed, chosen.steps, chosen.learning_rate, chosen.output)


def train(seed: int, steps: int, learning_rate: float, output: Path) -> None:
    """Train for `steps`, writing `seed-N.jsonl`."""
    prepare()
    from trl import GRPOConfig, GRPOTrainer

    from rollouts.trainers.trl import dataset, reward, rollout_func

    lines = output / f"seed-{seed}.jsonl"
    for old in output.glob(f"seed-{seed}*"):
        old.unlink()
    config = str(HERE / "heating.yaml")
    model, tokenizer = policy()
    settings = GRPOConfig(
        output_dir=str(output / f"trainer-{seed}"),
        seed=seed,
        max_steps=steps,
        per_device_train_batch_size=GROUP,
        num_generations=GROUP,
        gradient_accumulation_steps=1,
        max_completion_length=48,
        temperature=1.0,
        learning_rate=learning_rate,
        lr_scheduler_type="constant",
        beta=0.0,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    trainer = GRPOTrainer(
        model,
        reward_funcs=[reward()],
        args=settings,
        train_dataset=dataset(config),
        processing_class=tokenizer,
        rollout_func=rollout_func(config, output=lines),
    )
    started = time.monotonic()
    trainer.train()
    print(f"seed {seed}: {steps} steps in {(time.monotonic() - started) / 60:.1f} minutes -> {lines}")


def prepare() -> None:
    """The environment's class is found here and in the servers' processes; TRL's own notices are not needed."""
    sys.path[:0] = [str(HERE), str(ROOT)]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(ROOT), os.environ.get("PYTHONPATH", "")])
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))


def policy() -> tuple[Any, Any]:
    """SmolLM2 in float32 from the GGUF file that `trivium models pull` fetches; only its upper layers are trained."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from model_interface.models import pull

    path = pull()
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    read = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    if hasattr(read.config, "quantization_config"):
        del read.config.quantization_config
    model = type(read)(read.config)  # a fresh one: the one that was read cannot be saved
    model.load_state_dict(read.state_dict())
    model.generation_config = read.generation_config
    model.requires_grad_(False)
    for layer in model.model.layers[-TRAINED_LAYERS:]:
        layer.requires_grad_(True)
    return model, tokenizer


if __name__ == "__main__":
    main()
