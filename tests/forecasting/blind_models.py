"""Models whose published memory had no part in making the rules.

They follow rasbt/LLMs-from-scratch (ch05/10_llm-training-speed) and linkedin/Liger-Kernel (benchmark/scripts).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class PlainNorm(nn.Module):
    """LayerNorm, operation by operation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        return self.scale * ((x - mean) / torch.sqrt(var + 1e-5)) + self.shift


class PlainGELU(nn.Module):
    """GELU by its approximation with tanh, operation by operation."""

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))


class ScratchBlock(nn.Module):
    """A block of GPT-2's size; ``stage`` 0 is all from scratch, 1 has PyTorch's classes, 2 fused attention, too."""

    def __init__(self, width: int, heads: int, context: int, stage: int) -> None:
        super().__init__()
        self.heads, self.stage = heads, stage
        norm = PlainNorm if stage == 0 else nn.LayerNorm
        self.norm1, self.norm2 = norm(width), norm(width)
        self.qkv = nn.ModuleList(
            [nn.Linear(width, 3 * width, bias=False)]
            if stage == 2
            else [nn.Linear(width, width, bias=False) for _ in "qkv"]
        )
        self.out = nn.Linear(width, width)
        act = PlainGELU() if stage == 0 else nn.GELU(approximate="tanh")
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), act, nn.Linear(4 * width, width))
        self.drop = nn.Dropout(0.1)
        if stage == 0:
            self.register_buffer("mask", torch.triu(torch.ones(context, context), diagonal=1))

    def attention(self, x: Tensor) -> Tensor:
        n, tokens, width = x.shape
        if self.stage == 2:
            q, k, v = self.qkv[0](x).view(n, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1, is_causal=True)
            return self.out(mixed.transpose(1, 2).contiguous().view(n, tokens, width))
        q, k, v = (layer(x).view(n, tokens, self.heads, -1).transpose(1, 2) for layer in self.qkv)
        scores = q @ k.transpose(2, 3)
        mask = self.mask if self.stage == 0 else torch.triu(torch.ones(tokens, tokens), diagonal=1)
        scores.masked_fill_(mask.bool(), -torch.inf)
        weights = self.drop(torch.softmax(scores / k.shape[-1] ** 0.5, dim=-1))
        return self.out((weights @ v).transpose(1, 2).contiguous().view(n, tokens, width))

    def forward(self, x: Tensor) -> Tensor:
        x = self.drop(self.attention(self.norm1(x))) + x
        return self.drop(self.mlp(self.norm2(x))) + x


class ScratchGPT(nn.Module):
    """GPT-2 of 124 million parameters with a head of its own."""

    def __init__(self, stage: int, vocabulary: int = 50_257, width: int = 768, context: int = 1024) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.drop = nn.Dropout(0.1)
        self.blocks = nn.Sequential(*(ScratchBlock(width, 12, context, stage) for _ in range(12)))
        self.norm = PlainNorm(width) if stage == 0 else nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        positions = torch.arange(x.shape[1], device=x.device)
        return self.head(self.norm(self.blocks(self.drop(self.tokens(x) + self.places(positions)))))


class LlamaMLP(nn.Module):
    """Hugging Face's MLP of Llama."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class HeadLoss(nn.Module):
    """A language model's head and its loss, with a second weight that only lies there, as in Liger's script."""

    def __init__(self, width: int, vocabulary: int) -> None:
        super().__init__()
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.other = nn.Linear(width, vocabulary, bias=False)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.head(x), y)


def operation(name: str, rows: int) -> tuple[nn.Module, dict[str, Tensor]]:
    """Return a module of Liger's benchmark and its input, without memory."""
    with torch.device("meta"):
        if name == "layer-norm":
            return nn.LayerNorm(16_384), {"x": torch.zeros(rows, 16_384)}
        x = torch.zeros(rows, 4096, dtype=torch.bfloat16)
        if name == "head-loss":
            return HeadLoss(4096, 128_256).bfloat16(), {"x": x, "y": torch.zeros(rows, dtype=torch.int64)}
        return LlamaMLP(4096, 11_008).bfloat16(), {"x": x}
