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
from rollouts.trainers.policy import TrainerPolicy
from rollouts.trainers.samples import columns, sample
from rollouts.trainers.stage import Part, Stage, Tasks, staged, with_output
from wire.errors import UsageError
from wire.responses import message_text

__all__ = ["Rollouts", "dataset", "environment_factory", "reward", "rollout_func"]

KEY = "trivium_row"  # of the first message of a prompt: which row it is
SEPARATOR = "#"  # between the rows' file and the index in it
Prompt = list[dict[str, Any]]
RewardFunction = Callable[..., list[float | None]]


def dataset(config: str, *overrides: str, rows: Path | str | None = None) -> Any:
    """The rows of a config as a `datasets.Dataset` with the column `prompt`; which row it is travels with each prompt.

    Args:
        config: A config file or the name of a bundled one.
        overrides: `key=value`.
        rows: Another file with rows of the same environment, for evaluation; the same `rollout_func` plays them.
    """
    from datasets import Dataset

    path = None if rows is None else Path(rows).resolve()
    tasks = Tasks(stacks.read([config], overrides), path)
    return Dataset.from_list([{"prompt": prompt(tasks.row(task), task, path)} for task in tasks.rows])


def prompt(row: dict[str, Any], task: int, rows: Path | None = None) -> Prompt:
    """A row's messages, for people and logs; what the model is given is made from the row itself."""
    key = str(task) if rows is None else f"{rows}{SEPARATOR}{task}"
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

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
        """Lists with one entry per prompt: `prompt_ids`, `completion_ids`, `logprobs`, `env_mask` (1 sampled by the model), and for the
        reward functions `reward`, `failed`, `failure` and one list per reward component.

        Args:
            prompts: Those of `dataset`; the repeats of one are a group.
            trainer: Whose model plays; the same one in each call.
        """
        background, stage = self._started(trainer)
        name, tasks, parts = self._parts(prompts)
        version = str(trainer.state.global_step)
        mode = "" if trainer.model.training else "eval-"
        playing = background.start(stage.play(tasks, parts, f"{mode}{version}"))
        try:
            assert self._generator is not None
            lines = self._desk.serve(playing, lambda: stage.live, self._generator)
        finally:
            playing.cancel()
        filler = trainer.eos_token_ids[0]
        return columns([sample(line, filler=filler, mask_forced=self._constrained) for line in lines])

    def close(self) -> None:
        """Stop the servers; the program's end does so too."""
        if self._running is not None:
            self._running[0].close()
            self._running = None
        for each in self._tasks.values():
            each.rows.close()
        self._tasks.clear()

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

    def _parts(self, prompts: Sequence[Any]) -> tuple[str, Tasks, list[Part]]:
        keys = [_key(each) for each in prompts]
        files = {file for file, _ in keys}
        if len(files) > 1:
            raise UsageError(f"one batch has rows of {len(files)} files ({', '.join(sorted(files))}); keep data sets apart")
        name = files.pop()
        if name not in self._tasks:
            self._tasks[name] = Tasks(self._stack, Path(name) if name else None)
        tasks, sizes, seen = self._tasks[name], Counter(task for _, task in keys), Counter[int]()
        parts = []
        for _, task in keys:
            if task not in tasks.rows:
                raise UsageError(f"a prompt names row {task} of {name or 'the config'}, which has {len(tasks.rows)} rows")
            parts.append(Part(task, seen[task], sizes[task]))
            seen[task] += 1
        return name, tasks, parts


def rollout_func(config: str, *overrides: str, output: Path | str | None = None) -> Rollouts:
    """What TRL's `GRPOTrainer(rollout_func=…)` takes; see `Rollouts`."""
    return Rollouts(config, *overrides, output=output)


def _key(given: Any) -> tuple[str, int]:
    """The rows' file ("" for the config's own) and the index that a prompt carries."""
    first = given[0] if isinstance(given, list) and given else None
    key = first.get(KEY) if isinstance(first, dict) else None
    if not isinstance(key, str):
        raise UsageError(f"a prompt does not say which row it is ({KEY}); take train_dataset from rollouts.trainers.trl.dataset")
    file, _, task = key.rpartition(SEPARATOR)
    return file, int(task)
