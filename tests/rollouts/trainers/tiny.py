"""A model and a tokenizer that are made in a second: random weights, Qwen's chat template as TRL ships it."""

from pathlib import Path
from typing import Any

SPECIAL = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "</tool_call>", "<think>", "</think>")


def tokenizer() -> Any:
    """Bytes as tokens, and those that the template uses."""
    import trl
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        ["increment_counter assistant user tool"],
        trainers.BpeTrainer(
            vocab_size=320, special_tokens=list(SPECIAL[:3]), initial_alphabet=alphabet, show_progress=False
        ),
    )
    made.add_tokens(list(SPECIAL[3:]))
    found = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    template = Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"
    found.chat_template = template.read_text(encoding="utf-8")
    return found


def model(words: Any) -> Any:
    """Two layers for a tokenizer."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=4096,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
    )
    return Qwen3ForCausalLM(config)
