"""Answers to a batch of prompts by a TRL trainer's own model: its vLLM where it has one, else a batch through the model itself.

Runs in the trainer's thread. The trainer's sampling parameters count, never a row's: what is trained must be what was sampled.
"""

import copy
import inspect
import math
from collections.abc import Sequence
from typing import Any

from rollouts.trainers.desk import Answer, Job
from wire.errors import UsageError

LOWEST = -1e4  # in place of a log-probability that is no number


class Generator:
    """Generates with one trainer.

    Args:
        trainer: A TRL `GRPOTrainer`, or one that derives from it.
    """

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self._vocabulary: Any = None
        processes = trainer.accelerator.num_processes
        if processes > 1 and trainer.use_vllm and trainer.vllm_mode == "server":
            raise UsageError(
                f"rollout_func with vllm_mode='server' runs in one process, not {processes}: its calls are collective; "
                "use vllm_mode='colocate'"
            )

    def __call__(self, jobs: Sequence[Job]) -> list[Answer]:
        """One answer for each job."""
        made = self._by_vllm(jobs) if self._trainer.use_vllm else self._by_model(jobs)
        return [self._answer(ids, log_probs, job) for (ids, log_probs), job in zip(made, jobs, strict=True)]

    def _answer(self, ids: list[int], log_probs: Sequence[float | None], job: Job) -> Answer:
        ids, log_probs = ids[: job.limit], log_probs[: job.limit]
        finite = [LOWEST if each is None or not math.isfinite(each) else float(each) for each in log_probs]
        ended = bool(ids) and ids[-1] in self._trainer.eos_token_ids
        return Answer(list(ids), finite, ended, str(self._trainer.state.global_step))

    def _by_vllm(self, jobs: Sequence[Job]) -> list[tuple[list[int], list[float | None]]]:
        """Each prompt has a history of its own, so each is asked for once; a schema is not enforced here."""
        ids, log_probs = self._trainer._generate_single_turn([job.prompt for job in jobs], None, {}, 1)
        return list(zip(ids, log_probs, strict=True))

    def _by_model(self, jobs: Sequence[Job]) -> list[tuple[list[int], list[float | None]]]:
        import torch
        from transformers import LogitsProcessorList

        trainer = self._trainer
        prompts = [tuple(job.prompt) for job in jobs]
        longest = max(len(each) for each in prompts)
        inputs, seen = self._padded(prompts, longest)
        watch = self._watch(jobs, longest)
        with _model(trainer) as model, torch.no_grad():
            output = model.generate(
                input_ids=inputs,
                attention_mask=seen,
                generation_config=self._config(jobs),
                logits_processor=LogitsProcessorList([watch]),
                **self._begun(model, prompts, longest),
            )
        answers: list[tuple[list[int], list[float | None]]] = watch.read(output)
        return answers

    def _padded(self, prompts: Sequence[Sequence[int]], length: int) -> tuple[Any, Any]:
        """Ids, padded on the left, and which of them count."""
        import torch

        pad, device = self._trainer._tokenizer.pad_token_id, self._trainer.accelerator.device
        ids = [[pad] * (length - len(each)) + list(each) for each in prompts]
        seen = [[0] * (length - len(each)) + [1] * len(each) for each in prompts]
        return torch.tensor(ids, device=device), torch.tensor(seen, device=device)

    def _begun(self, model: Any, prompts: Sequence[tuple[int, ...]], length: int) -> dict[str, Any]:
        """The keys and values of prompts that several answers share, computed once; nothing where none is shared.

        The last id of each is left for the generation, which begins with it.
        """
        import torch
        from transformers import DynamicCache

        distinct = list(dict.fromkeys(prompts))
        if len(distinct) == len(prompts) or length < 2 or self._trainer.args.fsdp or self._trainer.is_deepspeed_enabled:
            return {}
        inputs, seen = self._padded(distinct, length)
        places = (seen.cumsum(-1) - 1).clamp(min=0)
        cache = DynamicCache(config=model.config)
        name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
        model(
            input_ids=inputs[:, :-1],
            attention_mask=seen[:, :-1],
            position_ids=places[:, :-1],
            use_cache=True,
            logits_to_keep=1,
            **{name: cache},
        )
        cache.batch_select_indices(torch.tensor([distinct.index(each) for each in prompts], device=inputs.device))
        return {name: cache}

    def _config(self, jobs: Sequence[Job]) -> Any:
        """The trainer's own, with its sampling left to the watch, which sees what was sampled from."""
        config = copy.deepcopy(self._trainer.generation_config)
        limits = [self._trainer.max_completion_length if job.limit is None else job.limit for job in jobs]
        config.max_new_tokens = min(max(limits), self._trainer.max_completion_length)
        config.temperature, config.top_p, config.top_k, config.min_p = 1.0, 1.0, 0, None
        return config

    def _watch(self, jobs: Sequence[Job], start: int) -> Any:
        from rollouts.trainers.sampling import Grammar, Watch

        if any(job.schema for job in jobs) and self._vocabulary is None:
            self._vocabulary = Grammar.vocabulary(self._trainer._tokenizer, self._trainer.model.config.vocab_size)
        grammars = [Grammar(self._vocabulary, job.schema) if job.schema else None for job in jobs]
        limits = [math.inf if job.limit is None else job.limit for job in jobs]
        return Watch(self._trainer, grammars, limits, start)


def _model(trainer: Any) -> Any:
    """The model in a state to generate with, as the trainer itself does it."""
    from trl.models import unwrap_model_for_generation

    return unwrap_model_for_generation(
        trainer.model_wrapped,
        trainer.accelerator,
        gather_deepspeed3_params=trainer.args.ds3_gather_for_generation,
        generation_kwargs=trainer.generation_kwargs,
        gradient_checkpointing_kwargs=trainer.args.gradient_checkpointing_kwargs,
    )
