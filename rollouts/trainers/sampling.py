"""What happens between a model's logits and the sampled id: a grammar's mask, the trainer's sampling, and the record of both.

Needs torch and transformers; a schema needs llguidance too.
"""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import LogitsProcessor
from transformers.generation import logits_process

from wire import strict_json
from wire.errors import UsageError


class Grammar:
    """One answer held to a JSON schema, id by id.

    Args:
        vocabulary: Of the model, from `vocabulary`.
        schema: Of the whole answer.
    """

    def __init__(self, vocabulary: Any, schema: dict[str, Any]) -> None:
        import llguidance
        import llguidance.torch

        self._fill = llguidance.torch.fill_next_token_bitmask
        self._matcher = llguidance.LLMatcher(vocabulary, llguidance.LLMatcher.grammar_from_json_schema(_text(schema)))
        if self._matcher.is_error():
            raise UsageError(f"an answer cannot be held to these tools' schemas: {self._matcher.get_error()}")

    @staticmethod
    def vocabulary(tokenizer: Any, size: int) -> Any:
        """A tokenizer's ids as a grammar sees them; takes about a second.

        Raises:
            UsageError: the library is not installed.
        """
        try:
            import llguidance.hf
        except ImportError as error:
            raise UsageError("tool_calls: constrained needs llguidance: pip install 'trivium[trl]'") from error
        return llguidance.hf.from_tokenizer(tokenizer, n_vocab=size)

    def take(self, token: int) -> None:
        """The answer goes on with this id."""
        if not self._matcher.is_stopped():
            self._matcher.consume_token(token)

    def mark(self, allowed: torch.Tensor, row: int) -> None:
        """Set the bits of the ids that may come next; once the answer is whole, only the end may."""
        self._fill(self._matcher, allowed, row)


class Watch(LogitsProcessor):  # type: ignore[misc]  # transformers is not there where the base is checked
    """The last of a generation's logits processors: masks, warps, and keeps the log-probability of each id that is sampled.

    Args:
        trainer: Whose temperature, top_p, top_k and min_p count.
        grammars: One per sequence; None where it is free.
        limits: Ids of each answer at most.
        start: Ids of the padded prompt.
    """

    def __init__(self, trainer: Any, grammars: Sequence[Grammar | None], limits: Sequence[float], start: int) -> None:
        self._grammars, self._limits, self._start = grammars, limits, start
        self._ends = list(trainer.eos_token_ids)
        self._warpers = _warpers(trainer)
        self._log_probs: list[torch.Tensor] = []  # of each step, (batch,)
        self._before: torch.Tensor | None = None  # the last step's distribution, (batch, vocabulary)
        self._ended = [False] * len(grammars)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The scores that the next ids are sampled from."""
        self._record(input_ids)
        scores = scores.float()
        for row, ended in self._endings(input_ids):
            if ended:  # nothing but the end: what follows it is cut off
                scores[row] = -torch.inf
                scores[row, self._ends[0]] = 0.0
        self._mask(scores)
        for warper in self._warpers:
            scores = warper(input_ids, scores)
        self._before = torch.log_softmax(scores, dim=-1)
        return scores

    def read(self, output: torch.Tensor) -> list[tuple[list[int], list[float | None]]]:
        """Ids and log-probabilities of each answer, up to and with its end."""
        self._record(output)
        log_probs = torch.stack(self._log_probs, dim=1).tolist()
        return [
            (ids[:length], probs[:length])
            for ids, probs, length in zip(
                output[:, self._start :].tolist(), log_probs, self._lengths(output), strict=True
            )
        ]

    def _record(self, input_ids: torch.Tensor) -> None:
        if self._before is None or input_ids.size(1) == self._start:
            return
        last = input_ids[:, -1]
        self._log_probs.append(self._before.gather(1, last.unsqueeze(1)).squeeze(1).cpu())
        for row, (grammar, token) in enumerate(zip(self._grammars, last.tolist(), strict=True)):
            if grammar is not None and not self._ended[row]:
                grammar.take(token)

    def _endings(self, input_ids: torch.Tensor) -> list[tuple[int, bool]]:
        made = input_ids.size(1) - self._start
        if made:
            for row, token in enumerate(input_ids[:, -1].tolist()):
                self._ended[row] = self._ended[row] or token in self._ends or made >= self._limits[row]
        return list(enumerate(self._ended))

    def _mask(self, scores: torch.Tensor) -> None:
        held = [row for row, grammar in enumerate(self._grammars) if grammar is not None and not self._ended[row]]
        if not held:
            return
        words = (scores.size(1) + 31) // 32
        bits = torch.full((len(held), words), -1, dtype=torch.int32)
        for place, row in enumerate(held):
            grammar = self._grammars[row]
            assert grammar is not None
            grammar.mark(bits, place)
        shifts = torch.arange(32, dtype=torch.int32)
        allowed = ((bits.unsqueeze(2) >> shifts) & 1).bool().view(len(held), -1)[:, : scores.size(1)]
        rows = torch.tensor(held, device=scores.device)
        scores[rows] = scores[rows].masked_fill(~allowed.to(scores.device), -torch.inf)

    def _lengths(self, output: torch.Tensor) -> list[int]:
        found = []
        for ids, limit in zip(output[:, self._start :].tolist(), self._limits, strict=True):
            end = next((at + 1 for at, token in enumerate(ids) if token in self._ends), len(ids))
            found.append(int(min(end, limit)))
        return found


def _warpers(trainer: Any) -> list[Any]:
    """As transformers orders them: temperature, top_k, top_p, min_p."""
    found: list[Any] = []
    if trainer.temperature != 1.0:
        found.append(logits_process.TemperatureLogitsWarper(trainer.temperature))
    if trainer.top_k:
        found.append(logits_process.TopKLogitsWarper(trainer.top_k))
    if trainer.top_p is not None and trainer.top_p < 1.0:
        found.append(logits_process.TopPLogitsWarper(trainer.top_p))
    if trainer.min_p:
        found.append(logits_process.MinPLogitsWarper(trainer.min_p))
    return found


def _text(schema: dict[str, Any]) -> str:
    return strict_json.dumps(schema).decode()
