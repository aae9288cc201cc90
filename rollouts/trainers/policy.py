"""A trainer's model as the model interface's `trainer` backend asks for it: chat template and tokenizer here, generation at the desk."""

from collections.abc import Sequence
from typing import Any

from rollouts.export.conversation import with_objects
from rollouts.trainers.desk import Answer, Desk


class TrainerPolicy:
    """The policy of one trainer.

    Args:
        trainer: A TRL trainer.
        desk: Where its thread generates.
    """

    def __init__(self, trainer: Any, desk: Desk) -> None:
        self._tokenizer = trainer._tokenizer
        self._processor = trainer.processing_class
        self._template = {"chat_template": trainer.chat_template, **trainer.chat_template_kwargs}
        self._desk = desk
        self.name = str(getattr(trainer.model.config, "_name_or_path", "") or "policy")
        self.context_tokens: int | None = _context(trainer)
        self.episode_tokens: int | None = trainer.max_completion_length

    def render(self, messages: Sequence[dict[str, Any]], *, generation: bool, tools: Any) -> list[int]:
        """Ids of messages under the trainer's chat template; calls with their arguments as objects, as templates want them."""
        ids: list[int] = self._processor.apply_chat_template(
            with_objects(list(messages)),
            tools=tools,
            add_generation_prompt=generation,
            tokenize=True,
            return_dict=False,
            **self._template,
        )
        return list(ids)

    def text(self, ids: Sequence[int]) -> str:
        """The text of generated ids."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    async def generate(self, prompt: list[int], limit: int | None, schema: dict[str, Any] | None) -> Answer:
        """One answer, when the trainer's thread comes to it."""
        return await self._desk.ask(list(prompt), limit, schema)


def _context(trainer: Any) -> int | None:
    if trainer.use_vllm and trainer.vllm_mode == "colocate":
        return int(trainer.vllm_generation.llm.llm_engine.model_config.max_model_len)
    config = trainer.model.config
    config = getattr(config, "text_config", config)
    return getattr(config, "max_position_embeddings", None)
