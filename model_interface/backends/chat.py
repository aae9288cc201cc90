"""Any server that speaks Chat Completions: SGLang, llama.cpp, TGI, LiteLLM, OpenRouter and the like; vLLM has a backend of its own.

options: {thoughts_as: reasoning_content|reasoning|tags|drop, max_tokens_field: max_tokens|max_completion_tokens}
"""

from model_interface.backends._messages import ChatBackend


class Chat(ChatBackend):
    """A model behind Chat Completions, without token ids."""
