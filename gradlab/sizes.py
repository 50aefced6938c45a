"""Published sizes of well-known language models, as numbers: what a forecast needs, and no torch.

Sources. Llama: "The Llama 3 Herd of Models", arXiv 2407.21783, table 3 (layers, model dimension, FFN dimension, heads,
key/value heads, RoPE base 500,000); the released checkpoints have 128,256 tokens, 256 of them special, and Llama 3.1
reads 131,072 of them at a time (``vocab_size`` and ``max_position_embeddings`` of its config.json). GPT-2: the config
that was published with the weights of GPT-2 XL (``n_layer`` 48, ``n_embd`` 1600, ``n_head`` 25, ``n_positions`` 1024,
``vocab_size`` 50257).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Size:
    """The numbers of a decoder-only transformer.

    ``family`` is ``"llama"`` (RMSNorm, SwiGLU, rotary positions, no biases, a head of its own) or ``"gpt2"``
    (LayerNorm, GELU, learned positions, biases, the head is the embedding). ``hidden`` is the width inside the MLP,
    ``longest`` the most tokens that it reads at a time.
    """

    name: str
    family: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int
    vocabulary: int
    longest: int
    rope_base: float = 500_000.0

    @property
    def head_width(self) -> int:
        """Width of one attention head."""
        return self.width // self.heads

    @property
    def parameters(self) -> int:
        """How many numbers there are to learn, the tied ones once."""
        attention = 2 * self.width * self.width + 2 * self.width * self.kv_heads * self.head_width
        if self.family == "llama":
            layer = attention + 3 * self.width * self.hidden + 2 * self.width
            return 2 * self.vocabulary * self.width + self.layers * layer + self.width
        biases = 3 * self.width + self.width + self.hidden + self.width
        layer = attention + 2 * self.width * self.hidden + biases + 4 * self.width
        return (self.vocabulary + self.longest) * self.width + self.layers * layer + 2 * self.width


def names() -> list[str]:
    """Return the names of the sizes, smallest first."""
    return list(_SIZES)


def get(name: str) -> Size:
    """Return a size by its name; another name is a ValueError that lists them."""
    if not isinstance(name, str) or name not in _SIZES:
        raise ValueError(f"the name of a size must be one of {', '.join(map(repr, _SIZES))}, got {name!r}")
    return _SIZES[name]


def _llama(name: str, layers: int, width: int, heads: int, hidden: int) -> Size:
    rest: dict[str, Any] = {"kv_heads": 8, "vocabulary": 128_256, "longest": 131_072}
    return Size(name, "llama", layers, width, heads, hidden=hidden, **rest)


_SIZES = {
    size.name: size
    for size in (
        Size("gpt2-1.5b", "gpt2", 48, 1600, 25, kv_heads=25, hidden=6400, vocabulary=50_257, longest=1024),
        _llama("llama-8b", 32, 4096, 32, 14_336),
        _llama("llama-70b", 80, 8192, 64, 28_672),
        _llama("llama-405b", 126, 16_384, 128, 53_248),
    )
}
