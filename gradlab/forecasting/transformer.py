"""A decoder-only transformer in plain PyTorch, for both families of ``sizes.py``: the model of a published size.

It has no dropout, as is usual in today's pretraining. Attention is PyTorch's fused attention, so no (context, context)
matrix is saved; the loss is computed in float32, as usual.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention, silu

from .sizes import ModelSize


class Attention(nn.Module):
    """Causal self-attention; several query heads may share one pair of key and value heads."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.size = size
        kv = size.kv_heads * size.head_dim
        self.q_proj = nn.Linear(size.d_model, size.d_model, bias=size.qkv_bias)
        self.k_proj = nn.Linear(size.d_model, kv, bias=size.qkv_bias)
        self.v_proj = nn.Linear(size.d_model, kv, bias=size.qkv_bias)
        self.out = nn.Linear(size.d_model, size.d_model, bias=size.family == "gpt2")

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor] | None) -> Tensor:
        """Map (batch, context, width) to the same shape; ``rope`` holds the cosines and sines of rotary positions."""
        heads = (*x.shape[:2], -1, self.size.head_dim)
        q, k, v = (part(x).view(heads).transpose(1, 2) for part in (self.q_proj, self.k_proj, self.v_proj))
        if rope is not None:
            q, k = apply_rope(q, *rope), apply_rope(k, *rope)
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=k.shape[1] != q.shape[1])
        return self.out(mixed.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    """The MLP of a block: SwiGLU, in which ``gate`` scales ``up``, or for GPT-2 GELU in its tanh approximation."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        gpt2 = size.family == "gpt2"
        self.gate = None if gpt2 else nn.Linear(size.d_model, size.hidden, bias=False)
        self.up = nn.Linear(size.d_model, size.hidden, bias=gpt2)
        self.down = nn.Linear(size.hidden, size.d_model, bias=gpt2)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, context, width) to the same shape."""
        if self.gate is None:
            return self.down(gelu(self.up(x), approximate="tanh"))
        return self.down(silu(self.gate(x)) * self.up(x))


class DecoderBlock(nn.Module):
    """One layer: attention, then an MLP, each added to its input (pre-norm)."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.norm1, self.norm2 = build_norm(size), build_norm(size)
        self.attention = Attention(size)
        self.mlp = MLP(size)

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor] | None) -> Tensor:
        """Map (batch, context, width) to the same shape."""
        x = x + self.attention(self.norm1(x), rope)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    """The whole transformer, which maps tokens to scores of the next token."""

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
        """Map (batch, context) int64 tokens to (batch, context, vocabulary) scores."""
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
    """Return the mean cross-entropy in float32 of output (batch, context, vocabulary) and int64 y (batch, context)."""
    return cross_entropy(output.float().flatten(0, 1), y.flatten())


def build_norm(size: ModelSize) -> nn.Module:
    """Return a norm layer over the width: RMSNorm for the family "llama", LayerNorm for "gpt2"."""
    return nn.RMSNorm(size.d_model, eps=1e-5) if size.family == "llama" else nn.LayerNorm(size.d_model, eps=1e-5)


def rope_angles(positions: Tensor, size: ModelSize) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines, each (context, head width), by which rotary positions rotate queries and keys."""
    exponents = torch.arange(0, size.head_dim, 2, device=positions.device) / size.head_dim
    angles = positions[:, None] * size.rope_base**-exponents
    angles = torch.cat((angles, angles), dim=1)
    return angles.cos(), angles.sin()


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate each pair (i, i + half) of x, (batch, heads, context, head width), by its angle (arXiv 2104.09864)."""
    left, right = x.chunk(2, dim=-1)
    return x * cos.to(x.dtype) + torch.cat((-right, left), dim=-1) * sin.to(x.dtype)
