"""A stand-in for TRL's trainer as far as a `rollout_func` sees it: a tokenizer of characters and a model that says what it is told."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

END = 3  # ends a turn
Says = Callable[[str], str]


class Characters:
    """Ids are code points; each message is `role: content` and an end."""

    pad_token_id = 0

    def apply_chat_template(
        self, messages: list[dict[str, Any]], *, add_generation_prompt: bool, tools: Any = None, **_: Any
    ) -> list[int]:
        ids = [ord(each) for each in f"tools {[tool['function']['name'] for tool in tools]}"] if tools else []
        for message in messages:
            calls = [each["function"]["name"] for each in message.get("tool_calls") or ()]
            ids += [ord(each) for each in f"{message['role']}: {message.get('content') or calls}"] + [END]
        return ids + [ord(each) for each in "assistant: "] * add_generation_prompt

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        return "".join(chr(each) for each in ids)


class FakeTrainer:
    """What `rollouts.trainers` reads of a trainer; with `use_vllm`, so that it is asked by `_generate_single_turn`.

    Args:
        says: The answer to a prompt's text.
    """

    def __init__(self, says: Says, max_completion_length: int = 10_000) -> None:
        self._says = says
        self._tokenizer = self.processing_class = Characters()
        self.chat_template: str | None = None
        self.chat_template_kwargs: dict[str, Any] = {}
        self.max_completion_length = max_completion_length
        self.use_vllm, self.vllm_mode = True, "server"
        self.eos_token_ids = [END]
        self.accelerator = SimpleNamespace(num_processes=1, process_index=0)
        self.state = SimpleNamespace(global_step=7)
        self.model = SimpleNamespace(
            training=True, config=SimpleNamespace(_name_or_path="fake", max_position_embeddings=100_000)
        )
        self.batches: list[int] = []

    def _generate_single_turn(
        self, prompts: list[list[int]], images: None, fields: dict[str, Any], repeats: int
    ) -> tuple[list[list[int]], list[list[float]]]:
        self.batches.append(len(prompts))
        said = [[*map(ord, self._says(self._tokenizer.decode(each))), END] for each in prompts]
        cut = [each[: self.max_completion_length] for each in said]
        return cut, [[-0.25] * len(each) for each in cut]
