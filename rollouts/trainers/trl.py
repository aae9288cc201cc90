"""TRL: tool episodes against our servers inside `GRPOTrainer`, with the trainer's own model.

    config = "counter"
    GRPOTrainer(
        model, reward_funcs=[reward()], train_dataset=dataset(config), rollout_func=rollout_func(config), args=GRPOConfig(…)
    )

Written for TRL 1.16; Unsloth and whatever else derives from its `GRPOTrainer` run on the same. Nothing here imports torch or trl.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rollouts import stack as stacks
from rollouts.export.conversation import prompt_of
from rollouts.trainers.background import Background
from rollouts.trainers.desk import Desk
from rollouts.trainers.environments import environment_factory
from rollouts.trainers.generation import Generator
from rollouts.trainers.keys import KEY, key_of, write_key
from rollouts.trainers.policy import TrainerPolicy
from rollouts.trainers.samples import Sample, columns, sample
from rollouts.trainers.stage import Part, Stage, staged, with_output
from rollouts.trainers.tasks import Tasks
from wire.errors import TriviumError, UsageError
from wire.responses import message_text

__all__ = ["Rollouts", "dataset", "environment_factory", "reward", "rollout_func"]

Prompt = list[dict[str, Any]]
HOPELESS = 3  # batches in a row without a verdict, after which training stops
RewardFunction = Callable[..., list[float | None]]


def dataset(config: str, *overrides: str, rows: Path | str | None = None) -> Any:
    """The rows of a config as a `datasets.Dataset` with the column `prompt`; which row it is travels with each prompt, for `rollout_func`,
    and stands beside it, for `environment_factory`.

    Args:
        config: A config file or the name of a bundled one.
        overrides: `key=value`.
        rows: Another file with rows of the same environment, for evaluation; the same `rollout_func` plays them.
    """
    from datasets import Dataset

    path = None if rows is None else Path(rows).resolve()
    tasks = Tasks(stacks.read([config], overrides), path)
    keys = {task: write_key(task, str(path or "")) for task in tasks.rows}
    records = [{"prompt": prompt(tasks.row(task), key), KEY: key} for task, key in keys.items()]
    tasks.close()
    return Dataset.from_list(records)


def prompt(row: dict[str, Any], key: str) -> Prompt:
    """A row's messages, for people and logs; what the model is given is made from the row itself."""
    messages = [{"role": str(each["role"]), "content": message_text(each)} for each in prompt_of(row)]
    return [{**each, KEY: key} for each in messages or [{"role": "user", "content": ""}]]


def reward(name: str = "reward") -> RewardFunction:
    """A reward function that hands on what our verifiers said: the reward, or a component by its name.

    A failed rollout has None, which TRL counts as no member of its group: no part of the mean, no advantage.
    """

    def given(**columns: Any) -> list[float | None]:
        if name not in columns:
            raise UsageError(f"no rollout of this batch has a reward component {name!r}")
        found: list[float | None] = columns[name]
        return found

    given.__name__ = name
    return given


class Rollouts:
    """A `rollout_func`: plays the rows that prompts name and returns what was sampled. Servers start at the first call.

    Args:
        config: A config file or the name of a bundled one; its model interface is the trainer's own model.
        overrides: `key=value`.
        output: Where every rollout is written as a line; default `rollouts.output`, else results/NAME-training.jsonl.
    """

    def __init__(self, config: str, *overrides: str, output: Path | str | None = None) -> None:
        self._stack = stacks.read([config], overrides)
        self.output = with_output(self._stack, None if output is None else Path(output))
        self._constrained = self._stack.section("model_interface").get("tool_calls") == "constrained"
        self._tasks: dict[str, Tasks] = {}
        self._desk = Desk()
        self._running: tuple[Background, Stage] | None = None
        self._generator: Generator | None = None
        self._empty = 0  # batches in a row

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
        """Lists with one entry per prompt: `prompt_ids`, `completion_ids`, `logprobs`, `env_mask` (1 sampled by the model), and for the
        reward functions `reward`, `failed`, `failure` and one list per reward component.

        Args:
            prompts: Those of `dataset`; the repeats of one are a group.
            trainer: Whose model plays; the same one in each call.

        Raises:
            UsageError: a prompt names no row.
            TriviumError: the servers do not start, or nothing had a verdict in three batches in a row.
        """
        background, stage = self._started(trainer)
        tasks, parts = self._parts(prompts)
        version = str(trainer.state.global_step)
        mode = "" if trainer.model.training else "eval-"
        playing = background.start(stage.play(tasks, parts, version, mode))
        try:
            assert self._generator is not None
            lines = self._desk.serve(playing, lambda: stage.live, self._generator)
        finally:
            playing.cancel()
        filler = trainer.eos_token_ids[0]
        samples = [sample(line, filler=filler, mask_forced=self._constrained) for line in lines]
        self._give_up_if_hopeless(samples)
        return columns(samples)

    def close(self) -> None:
        """Stop the servers; the program's end does so too."""
        if self._running is not None:
            self._running[0].close()
            self._running = None
        for each in self._tasks.values():
            each.close()
        self._tasks.clear()

    def _give_up_if_hopeless(self, samples: Sequence[Sample]) -> None:
        """A training in which nothing has a verdict any more would go on for ever and learn nothing."""
        self._empty = self._empty + 1 if all(each.failure for each in samples) else 0
        if self._empty == HOPELESS:
            raise TriviumError(
                f"no rollout of {HOPELESS} batches in a row can be trained on; the last: {samples[-1].failure}"
            )

    def _started(self, trainer: Any) -> tuple[Background, Stage]:
        if self._running is None:
            self._generator = Generator(trainer)
            background = Background("trivium-rollouts")
            try:
                stage = background.hold(staged(self._stack, TrainerPolicy(trainer, self._desk), self._path(trainer)))
            except BaseException:
                background.close()
                raise
            self._running = background, stage
        return self._running

    def _path(self, trainer: Any) -> Path:
        """One file for each process of a distributed training."""
        process = trainer.accelerator.process_index
        return self.output if process == 0 else self.output.with_name(f"{self.output.stem}-{process}.jsonl")

    def _parts(self, prompts: Sequence[Any]) -> tuple[Tasks, list[Part]]:
        keys = [key_of(each) for each in prompts]
        files = {file for file, _ in keys}
        if len(files) > 1:
            raise UsageError(
                f"one batch has rows of {len(files)} files ({', '.join(sorted(files))}); keep data sets apart"
            )
        name = files.pop()
        if name not in self._tasks:
            self._tasks[name] = Tasks(self._stack, Path(name) if name else None)
        tasks, sizes, seen = self._tasks[name], Counter(task for _, task in keys), Counter[int]()
        parts = []
        for _, task in keys:
            if task not in tasks.rows:
                raise UsageError(
                    f"a prompt names row {task} of {name or 'the config'}, which has {len(tasks.rows)} rows"
                )
            parts.append(Part(task, seen[task], sizes[task]))
            seen[task] += 1
        return tasks, parts


def rollout_func(config: str, *overrides: str, output: Path | str | None = None) -> Rollouts:
    """What TRL's `GRPOTrainer(rollout_func=…)` takes; see `Rollouts`."""
    return Rollouts(config, *overrides, output=output)
