"""torchtune's Llama of November 2024, in plain PyTorch: what it saves for backward, and no weights."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradlab.forecast.sizes import ModelSize


class TunedNorm(nn.Module):
    """torchtune's RMSNorm of 2024: in float32, operation by operation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, tokens, width) to the same."""
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.scale


def tuned_rope(x: Tensor, cache: Tensor) -> Tensor:
    """Turn (batch, tokens, heads, head) as torchtune does, in float32; packed samples have angles of their own."""
    pairs = x.float().reshape(*x.shape[:-1], -1, 2)
    cos, sin = cache.unsqueeze(2).unbind(-1)
    turned = (pairs[..., 0] * cos - pairs[..., 1] * sin, pairs[..., 1] * cos + pairs[..., 0] * sin)
    return torch.stack(turned, -1).flatten(3).type_as(x)


class TunedBlock(nn.Module):
    """A layer of torchtune's Llama: keys and values are repeated for each query head before attention."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.size, kv = size, size.kv_heads * size.head_dim
        linear = partial(nn.Linear, bias=False)
        self.norm1, self.norm2 = TunedNorm(size.d_model), TunedNorm(size.d_model)
        self.q, self.k, self.v = (linear(size.d_model, n) for n in (size.d_model, kv, kv))
        self.out = linear(size.d_model, size.d_model)
        self.gate, self.up = linear(size.d_model, size.hidden), linear(size.d_model, size.hidden)
        self.down = linear(size.hidden, size.d_model)

    def forward(self, x: Tensor, angles: Tensor, places: Tensor) -> Tensor:
        """Map (batch, tokens, width) to the same."""
        normed = self.norm1(x)
        q, k, v = (part(normed).view(*x.shape[:2], -1, self.size.head_dim) for part in (self.q, self.k, self.v))
        q, k = tuned_rope(q, angles[places]), tuned_rope(k, angles[places])
        k, v = (part.transpose(1, 2).repeat_interleave(q.shape[2] // k.shape[2], dim=1) for part in (k, v))
        mixed = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, is_causal=True)
        x = self.out(mixed.transpose(1, 2).flatten(2)) + x
        normed = self.norm2(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


class TunedLlama(nn.Module):
    """torchtune's Llama 3.2, in bfloat16, up to the last norm; its head is the embedding."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.size = size
        self.tokens = nn.Embedding(size.vocabulary, size.d_model)
        self.blocks = nn.ModuleList(TunedBlock(size) for _ in range(size.layers))
        self.norm = TunedNorm(size.d_model)
        self.bfloat16()

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, tokens) to what the head reads."""
        angles = torch.zeros(x.shape[1], self.size.head_dim // 2, 2)
        places = torch.zeros_like(x)
        x = self.tokens(x)
        for block in self.blocks:
            x = block(x, angles, places)
        return self.norm(x)
