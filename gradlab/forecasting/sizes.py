"""Published model sizes by name. This module does not import torch.

Each size comes from the config.json that was published with the weights on the Hugging Face Hub:
openai-community/gpt2, gpt2-medium, gpt2-large and gpt2-xl; meta-llama/Llama-3.2-1B and -3B, Llama-3.1-8B, -70B and
-405B, Llama-2-7b-hf; TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T; mistralai/Mistral-7B-v0.1; Qwen/Qwen2.5-0.5B,
-1.5B, -3B and -7B.
The sizes of Llama 3 are also in "The Llama 3 Herd of Models", arXiv 2407.21783, table 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._checks import one_of


@dataclass(frozen=True)
class ModelSize:
    """The hyperparameters of a decoder-only transformer.

    ``family`` is ``"llama"`` (RMSNorm, SwiGLU, rotary positions, no biases unless ``qkv_bias``) or ``"gpt2"``
    (LayerNorm, GELU, learned positions, biases). ``hidden`` is the width inside the MLP, and ``max_context`` is the
    largest number of tokens in a row. With ``tied``, the head shares the embedding's weights; with ``qkv_bias``, the
    layers for queries, keys and values have biases.
    """

    name: str
    family: str
    layers: int
    d_model: int
    heads: int
    kv_heads: int
    hidden: int
    vocabulary: int
    max_context: int
    rope_base: float = 500_000.0
    tied: bool = False
    qkv_bias: bool = False

    @property
    def head_dim(self) -> int:
        """The width of one attention head."""
        return self.d_model // self.heads


def model_sizes() -> list[str]:
    """Return the names of the sizes, smallest first."""
    return list(_SIZES)


def model_size(name: str) -> ModelSize:
    """Return a size by its name; raises ValueError, with a list of the names, for an unknown name."""
    return _SIZES[one_of("the name of a size", name, _SIZES, kind=ValueError)]


_GPT2: dict[str, Any] = {"vocabulary": 50_257, "max_context": 1024, "tied": True, "qkv_bias": True}
_LLAMA2: dict[str, Any] = {"vocabulary": 32_000, "rope_base": 10_000.0}
_LLAMA3: dict[str, Any] = {"kv_heads": 8, "vocabulary": 128_256, "max_context": 131_072}
_QWEN: dict[str, Any] = {"vocabulary": 151_936, "rope_base": 1e6, "qkv_bias": True}
_SIZES = {
    size.name: size
    for size in (  # name, family, layers, width, heads, key/value heads, width inside the MLP
        ModelSize("gpt2", "gpt2", 12, 768, 12, 12, 3072, **_GPT2),
        ModelSize("gpt2-medium", "gpt2", 24, 1024, 16, 16, 4096, **_GPT2),
        ModelSize("qwen2.5-0.5b", "llama", 24, 896, 14, 2, 4864, max_context=32_768, tied=True, **_QWEN),
        ModelSize("gpt2-large", "gpt2", 36, 1280, 20, 20, 5120, **_GPT2),
        ModelSize("tinyllama-1.1b", "llama", 22, 2048, 32, 4, 5632, max_context=2048, **_LLAMA2),
        ModelSize("llama-1b", "llama", 16, 2048, 32, hidden=8192, tied=True, **_LLAMA3),
        ModelSize("qwen2.5-1.5b", "llama", 28, 1536, 12, 2, 8960, max_context=131_072, tied=True, **_QWEN),
        ModelSize("gpt2-1.5b", "gpt2", 48, 1600, 25, 25, 6400, **_GPT2),
        ModelSize("qwen2.5-3b", "llama", 36, 2048, 16, 2, 11_008, max_context=32_768, tied=True, **_QWEN),
        ModelSize("llama-3b", "llama", 28, 3072, 24, hidden=8192, tied=True, **_LLAMA3),
        ModelSize("llama2-7b", "llama", 32, 4096, 32, 32, 11_008, max_context=4096, **_LLAMA2),
        ModelSize("mistral-7b", "llama", 32, 4096, 32, 8, 14_336, max_context=32_768, **_LLAMA2),
        ModelSize("qwen2.5-7b", "llama", 28, 3584, 28, 4, 18_944, 152_064, 131_072, rope_base=1e6, qkv_bias=True),
        ModelSize("llama-8b", "llama", 32, 4096, 32, hidden=14_336, **_LLAMA3),
        ModelSize("llama-70b", "llama", 80, 8192, 64, hidden=28_672, **_LLAMA3),
        ModelSize("llama-405b", "llama", 126, 16_384, 128, hidden=53_248, **_LLAMA3),
    )
}
