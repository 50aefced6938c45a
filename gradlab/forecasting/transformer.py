"""A decoder-only transformer in plain PyTorch, with the architecture of Llama or, for the family "gpt2", of GPT-2.

The model has no dropout, as is usual in pretraining today. Its attention is ``scaled_dot_product_attention``, which is
fused, so no (context, context) matrix is saved for backward. The loss is computed in float32.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention, silu

from .sizes import ModelSize


class Attention(nn.Module):
    """Causal self-attention, in which several query heads can share the same key head and value head."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.size = size
        kv = size.kv_heads * size.head_dim
        self.q_proj = nn.Linear(size.d_model, size.d_model, bias=size.qkv_bias)
        self.k_proj = nn.Linear(size.d_model, kv, bias=size.qkv_bias)
        self.v_proj = nn.Linear(size.d_model, kv, bias=size.qkv_bias)
        self.out = nn.Linear(size.d_model, size.d_model, bias=size.family == "gpt2")

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor] | None) -> Tensor:
        """Map ``x`` to the same shape, (batch, context, width); ``rope`` is the result of ``rope_angles``, or None."""
        heads = (*x.shape[:2], -1, self.size.head_dim)
        q, k, v = (part(x).view(heads).transpose(1, 2) for part in (self.q_proj, self.k_proj, self.v_proj))
        if rope is not None:
            q, k = apply_rope(q, *rope), apply_rope(k, *rope)
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=k.shape[1] != q.shape[1])
        return self.out(mixed.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    """The MLP of a DecoderBlock, with SwiGLU or, for the family "gpt2", with GELU in the tanh approximation."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        gpt2 = size.family == "gpt2"
        self.gate = None if gpt2 else nn.Linear(size.d_model, size.hidden, bias=False)
        self.up = nn.Linear(size.d_model, size.hidden, bias=gpt2)
        self.down = nn.Linear(size.hidden, size.d_model, bias=gpt2)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``x`` to the same shape, (batch, context, width)."""
        if self.gate is None:
            return self.down(gelu(self.up(x), approximate="tanh"))
        return self.down(silu(self.gate(x)) * self.up(x))


class DecoderBlock(nn.Module):
    """One layer of the transformer: attention, then an MLP, each with a norm before it and a residual connection."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.norm1, self.norm2 = build_norm(size), build_norm(size)
        self.attention = Attention(size)
        self.mlp = MLP(size)

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor] | None) -> Tensor:
        """Map ``x`` to the same shape, (batch, context, width); ``rope`` is the result of ``rope_angles``, or None."""
        x = x + self.attention(self.norm1(x), rope)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    """The whole transformer, which maps a sequence of tokens to logits for the next token at each position."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.size = size
        self.tokens = nn.Embedding(size.vocabulary, size.d_model)
        self.position_embedding = nn.Embedding(size.max_context, size.d_model) if size.family == "gpt2" else None
        self.blocks = nn.ModuleList(DecoderBlock(size) for _ in range(size.layers))
        self.norm = build_norm(size)
        self.head = nn.Linear(size.d_model, size.vocabulary, bias=False)
        if size.tied:
            self.head.weight = self.tokens.weight

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (batch, context, vocabulary) for int64 tokens ``x`` (batch, context)."""
        positions = torch.arange(x.shape[1], device=x.device)
        x, rope = self.tokens(x), None
        if self.position_embedding is not None:
            x = x + self.position_embedding(positions)
        else:
            rope = rope_angles(positions, self.size)
        for block in self.blocks:
            x = block(x, rope)
        return self.head(self.norm(x))


def next_token_loss(output: Tensor, y: Tensor) -> Tensor:
    """Return the mean float32 cross-entropy of logits (batch, context, vocabulary) for int64 ``y`` (batch, context)."""
    return cross_entropy(output.float().flatten(0, 1), y.flatten())


def build_norm(size: ModelSize) -> nn.Module:
    """Return a norm layer over the last dimension: RMSNorm for the family "llama", LayerNorm for "gpt2"."""
    return nn.RMSNorm(size.d_model, eps=1e-5) if size.family == "llama" else nn.LayerNorm(size.d_model, eps=1e-5)


def rope_angles(positions: Tensor, size: ModelSize) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of the rotary angles (arXiv 2104.09864) of ``positions``, each (context, head width)."""
    exponents = torch.arange(0, size.head_dim, 2, device=positions.device) / size.head_dim
    angles = positions[:, None] * size.rope_base**-exponents
    angles = torch.cat((angles, angles), dim=1)
    return angles.cos(), angles.sin()


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Return ``x`` (batch, heads, context, width) with features i and i + width / 2 rotated, as a pair, by angle i."""
    left, right = x.chunk(2, dim=-1)
    return x * cos.to(x.dtype) + torch.cat((-right, left), dim=-1) * sin.to(x.dtype)
