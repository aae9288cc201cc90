"""Makes a model for `-m vllm`, small enough for a laptop and real enough to call tools: `python tests/model_interface/tiny_model.py DIR`.

Two layers, a tokenizer of its own with Hermes' tags, trained for a minute to call `get_weather` until a tool's output is `done` and then
to say so. Needs torch, transformers and tokenizers (vLLM brings them).
"""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

SEED, STEPS, BATCH = 0, 500, 16
CITIES = ("Paris", "Rome", "Bonn", "Oslo")
OUTPUTS = ("sunny", "rain", "snow")
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "%s"}}\n</tool_call>'
ANSWER = "It is done."
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
TEMPLATE = """{%- if tools %}{{- '<|im_start|>system\\nTools:' }}{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}\
{{- '<|im_end|>\\n' }}{%- endif %}{%- for m in messages %}{%- if m.role == 'tool' %}\
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}\
{{- '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}\
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}{%- else %}\
{{- '<|im_start|>' + m.role + '\\n' + (m.content or '') }}{%- for c in m.tool_calls or [] %}\
{%- if m.content or not loop.first %}{{- '\\n' }}{%- endif %}\
{{- '<tool_call>\\n{"name": "' + c.function.name + '", "arguments": ' }}\
{{- (c.function.arguments if c.function.arguments is string else (c.function.arguments | tojson)) + '}\\n</tool_call>' }}{%- endfor %}\
{{- '<|im_end|>\\n' }}{%- endif %}{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""


def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE over the few texts that there are."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    texts = [json.dumps(TOOL), ANSWER, *(f"Weather in {city}? {CALL % city}" for city in CITIES), *OUTPUTS]
    made.train_from_iterator(
        texts * 50,
        trainers.BpeTrainer(
            vocab_size=600,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        ),
    )
    tags = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
    made.add_tokens([AddedToken(each, special=False, normalized=False) for each in tags])
    return PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=TEMPLATE
    )


def turns(chance: random.Random) -> Iterator[tuple[list[dict[str, Any]], str]]:
    """The messages before each turn of one conversation, and what the model is to say then."""
    city = chance.choice(CITIES)
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Weather in {city}?"}]
    for _ in range(chance.randint(1, 4)):
        yield list(messages), CALL % city
        function = {"name": "get_weather", "arguments": json.dumps({"city": city})}
        call = {"id": "c", "type": "function", "function": function}
        output = {"role": "tool", "tool_call_id": "c", "content": chance.choice(OUTPUTS)}
        messages += [{"role": "assistant", "content": "", "tool_calls": [call]}, output]
    messages[-1]["content"] = "done"
    yield messages, ANSWER


def samples(made: PreTrainedTokenizerFast, chance: random.Random) -> Iterator[tuple[list[int], list[int]]]:
    """Ids and labels, for ever; only what the model says is learned."""
    while True:
        for messages, said in turns(chance):
            text = made.apply_chat_template(messages, tools=[TOOL], tokenize=False, add_generation_prompt=True)
            prompt = made.encode(text, add_special_tokens=False)
            ids = made.encode(said + "<|im_end|>", add_special_tokens=False)
            yield prompt + ids, [-100] * len(prompt) + ids


def main(folder: str) -> None:
    """Make, train, save."""
    made, chance = tokenizer(), random.Random(SEED)
    torch.manual_seed(SEED)
    config = Qwen3Config(
        vocab_size=len(made),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=64,
        max_position_embeddings=2048,
        eos_token_id=made.eos_token_id,
        pad_token_id=made.pad_token_id,
        tie_word_embeddings=True,
    )
    model = Qwen3ForCausalLM(config).to(torch.float32)
    optimizer, source = torch.optim.AdamW(model.parameters(), lr=3e-3), samples(made, chance)
    for step in range(STEPS):
        batch = [next(source) for _ in range(BATCH)]
        width = max(len(ids) for ids, _ in batch)
        ids = torch.tensor([each + [made.pad_token_id] * (width - len(each)) for each, _ in batch])
        labels = torch.tensor([each + [-100] * (width - len(each)) for _, each in batch])
        loss = model(input_ids=ids, labels=labels, attention_mask=(ids != made.pad_token_id).long()).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)  # noqa: T201 - a script for a person
    model.save_pretrained(folder)
    made.save_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1])
