"""What a forecast is asked about models by name: the published sizes, as numbers that need no torch.

Sources of the models. Llama: "The Llama 3 Herd of Models", arXiv 2407.21783, table 3 (layers, model dimension, FFN
dimension, heads, key/value heads, RoPE base 500,000); the released checkpoints have 128,256 tokens, 256 of them
special, and Llama 3.1 reads 131,072 of them at a time (``vocab_size`` and ``max_position_embeddings`` of its
config.json). GPT-2: the config that was published with the weights of GPT-2 XL (``n_layer`` 48, ``n_embd`` 1600,
``n_head`` 25, ``n_positions`` 1024, ``vocab_size`` 50257).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._checks import one_of


@dataclass(frozen=True)
class ModelSize:
    """The numbers of a decoder-only transformer.

    ``family`` is ``"llama"`` (RMSNorm, SwiGLU, rotary positions, no biases, a head of its own) or ``"gpt2"``
    (LayerNorm, GELU, learned positions, biases, the head is the embedding). ``hidden`` is the width inside the MLP,
    ``max_context`` the most tokens that it reads at a time.
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

    @property
    def head_dim(self) -> int:
        """Width of one attention head."""
        return self.d_model // self.heads

    @property
    def parameters(self) -> int:
        """How many numbers there are to learn, the tied ones once."""
        attention = 2 * self.d_model * self.d_model + 2 * self.d_model * self.kv_heads * self.head_dim
        if self.family == "llama":
            layer = attention + 3 * self.d_model * self.hidden + 2 * self.d_model
            return 2 * self.vocabulary * self.d_model + self.layers * layer + self.d_model
        biases = 3 * self.d_model + self.d_model + self.hidden + self.d_model
        layer = attention + 2 * self.d_model * self.hidden + biases + 4 * self.d_model
        return (self.vocabulary + self.max_context) * self.d_model + self.layers * layer + 2 * self.d_model


def model_sizes() -> list[str]:
    """Return the names of the sizes, smallest first."""
    return list(_SIZES)


def model_size(name: str) -> ModelSize:
    """Return a size by its name; another name is a ValueError that lists them."""
    return _SIZES[one_of("the name of a size", name, _SIZES, kind=ValueError)]


def _llama(name: str, layers: int, d_model: int, heads: int, hidden: int) -> ModelSize:
    rest: dict[str, Any] = {"kv_heads": 8, "vocabulary": 128_256, "max_context": 131_072}
    return ModelSize(name, "llama", layers, d_model, heads, hidden=hidden, **rest)


_SIZES = {
    size.name: size
    for size in (
        ModelSize("gpt2-1.5b", "gpt2", 48, 1600, 25, kv_heads=25, hidden=6400, vocabulary=50_257, max_context=1024),
        _llama("llama-8b", 32, 4096, 32, 14_336),
        _llama("llama-70b", 80, 8192, 64, 28_672),
        _llama("llama-405b", 126, 16_384, 128, 53_248),
    )
}
