"""Large language models in their full, published sizes, by transformers' configurations; no weights."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")

import transformers

CONFIGS: dict[str, Callable[[], transformers.PretrainedConfig]] = {
    "Llama-2-7B": lambda: transformers.LlamaConfig(
        hidden_size=4096, intermediate_size=11_008, num_hidden_layers=32, num_attention_heads=32, vocab_size=32_000
    ),
    "Llama-3-70B": lambda: transformers.LlamaConfig(
        hidden_size=8192,
        intermediate_size=28_672,
        num_hidden_layers=80,
        num_attention_heads=64,
        num_key_value_heads=8,
        vocab_size=128_256,
    ),
    "Mixtral-8x7B": transformers.MixtralConfig,
    "DeepSeek-V3": transformers.DeepseekV3Config,
}
"""The last two are the defaults of their classes."""

TOKENS = 128


def build(name: str) -> Any:
    """The model in bfloat16 on the current device, in eval mode."""
    return transformers.AutoModelForCausalLM.from_config(CONFIGS[name](), dtype="bfloat16").eval()
