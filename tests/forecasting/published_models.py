"""Models whose training memory was published, in plain PyTorch: what each saves for backward, and no weights.

Each follows the code that was measured (see published.toml): minGPT, Hugging Face's GPT-2, BERT, RoBERTa and ViT,
torchvision's ViT, DeiT as timm had it in 2021, Microsoft's Swin, and torchtune's Llama of November 2024.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradlab.forecasting.sizes import ModelSize, model_size


@dataclass(frozen=True)
class Style:
    """The structure of a transformer block."""

    width: int
    heads: int
    dropout: float = 0.0
    fused: bool = False  # attention is PyTorch's own; otherwise its matrices are made one by one
    causal: int = 0  # tokens of the causal mask, 0 for none
    one_qkv: bool = False  # one layer makes queries, keys and values
    scale_first: bool = False  # the queries are scaled, and not the scores
    act: Callable[[Tensor], Tensor] = F.gelu
    pre_norm: bool = True
    drop_path: float = 0.0
    eps: float = 1e-5


def gelu_new(x: Tensor) -> Tensor:
    """Return GELU as minGPT and Hugging Face's GPT-2 write it, operation by operation."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def wide_gelu(x: Tensor) -> Tensor:
    """Return GELU as autocast ran it in PyTorch 1.7: it was in the list of float32 operations."""
    return F.gelu(x.float())


def drop_path(x: Tensor, p: float) -> Tensor:
    """Return timm's stochastic depth: some samples of a batch skip the branch."""
    if p == 0.0:
        return x
    mask = 1 - p + torch.rand((x.shape[0],) + (1,) * (x.ndim - 1), dtype=x.dtype, device=x.device)
    return x.div(1 - p) * mask.floor_()


class Attention(nn.Module):
    """Self-attention of many heads, with matrices or fused."""

    def __init__(self, style: Style) -> None:
        super().__init__()
        self.style, width = style, style.width
        parts = 1 if style.one_qkv else 3
        self.layers = nn.ModuleList(nn.Linear(width, 3 // parts * width) for _ in range(parts))
        self.out = nn.Linear(width, width)
        if style.causal:
            kind = torch.bool if style.fused else torch.float32  # Hugging Face's is there, but not read
            self.register_buffer("mask", torch.ones(1, 1, style.causal, style.causal, dtype=kind))

    def forward(self, x: Tensor) -> Tensor:
        s = self.style
        parts = [layer(x) for layer in self.layers]
        if s.one_qkv:
            parts = list(parts[0].chunk(3, dim=-1))
        q, k, v = (part.view(*x.shape[:2], s.heads, -1).transpose(1, 2) for part in parts)
        if s.fused:
            mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=s.dropout, is_causal=bool(s.causal))
        else:
            scale = q.shape[-1] ** -0.5
            scores = (q * scale) @ k.transpose(-2, -1) if s.scale_first else q @ k.transpose(-2, -1) * scale
            if s.causal:
                scores = scores.masked_fill(self.mask[:, :, : x.shape[1], : x.shape[1]] == 0, float("-inf"))
            mixed = F.dropout(F.softmax(scores, dim=-1), s.dropout) @ v
        return F.dropout(self.out(mixed.transpose(1, 2).flatten(2)), s.dropout)


class Block(nn.Module):
    """Attention and an MLP of four times the width, each added to what came in."""

    def __init__(self, style: Style, path: float = 0.0) -> None:
        super().__init__()
        self.style, self.path = style, path
        self.norm1, self.norm2 = (nn.LayerNorm(style.width, eps=style.eps) for _ in range(2))
        self.attention = Attention(style)
        self.up, self.down = nn.Linear(style.width, 4 * style.width), nn.Linear(4 * style.width, style.width)

    def mlp(self, x: Tensor) -> Tensor:
        return F.dropout(self.down(self.style.act(self.up(x))), self.style.dropout)

    def forward(self, x: Tensor) -> Tensor:
        if not self.style.pre_norm:
            x = self.norm1(self.attention(x) + x)
            return self.norm2(self.mlp(x) + x)
        x = x + drop_path(self.attention(self.norm1(x)), self.path)
        return x + drop_path(self.mlp(self.norm2(x)), self.path)


def blocks(style: Style, layers: int) -> nn.Sequential:
    """Return ``layers`` blocks; deeper ones skip more of their branches."""
    return nn.Sequential(*(Block(style, style.drop_path * i / max(layers - 1, 1)) for i in range(layers)))


class GPT(nn.Module):
    """A causal language model: minGPT's with a head of its own, Hugging Face's GPT-2 with a tied one."""

    def __init__(self, style: Style, layers: int, vocabulary: int, *, tied: bool) -> None:
        super().__init__()
        self.p = style.dropout
        self.tokens = nn.Embedding(vocabulary, style.width)
        self.places = nn.Embedding(style.causal, style.width)
        self.blocks = blocks(style, layers)
        self.norm = nn.LayerNorm(style.width)
        self.head = nn.Linear(style.width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, x: Tensor) -> Tensor:
        positions = torch.arange(x.shape[1], device=x.device)[None]
        x = F.dropout(self.tokens(x) + self.places(positions), self.p)
        return self.head(self.norm(self.blocks(x)))


class BERT(nn.Module):
    """Hugging Face's BERT or RoBERTa with one of its heads: "mlm", "pooled" (BERT) or "dense" (RoBERTa)."""

    def __init__(self, style: Style, layers: int, vocabulary: int, places: int, types: int, head: str) -> None:
        super().__init__()
        width = style.width
        self.p, self.kind = style.dropout, head
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(places, width)
        self.types, self.norm = nn.Embedding(types, width), nn.LayerNorm(width, eps=style.eps)
        self.blocks = blocks(style, layers)
        self.dense = nn.Linear(width, width)
        if head == "mlm":
            self.head_norm, self.head = nn.LayerNorm(width, eps=style.eps), nn.Linear(width, vocabulary)
            self.head.weight = self.tokens.weight
        else:
            self.head = nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        positions = torch.arange(x.shape[1], device=x.device)[None]
        x = self.tokens(x) + self.types(torch.zeros_like(x)) + self.places(positions)
        x = self.blocks(F.dropout(self.norm(x), self.p))
        if self.kind == "mlm":
            return self.head(self.head_norm(F.gelu(self.dense(x))))
        first = F.dropout(x[:, 0], self.p) if self.kind == "dense" else x[:, 0]
        return self.head(F.dropout(torch.tanh(self.dense(first)), self.p))


class ViT(nn.Module):
    """A vision transformer on patches of 16 x 16, with a token for the class."""

    def __init__(self, style: Style, layers: int, block: Callable[..., nn.Module] | None = None) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, style.width, 16, stride=16)
        self.first = nn.Parameter(torch.zeros(1, 1, style.width))
        self.places = nn.Parameter(torch.zeros(1, 197, style.width))
        self.blocks = blocks(style, layers) if block is None else nn.Sequential(*(block(style) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(style.width, eps=style.eps), nn.Linear(style.width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], dim=1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class TorchvisionBlock(nn.Module):
    """The block of torchvision's ViT, on nn.MultiheadAttention."""

    def __init__(self, style: Style) -> None:
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(style.width, eps=style.eps) for _ in range(2))
        self.attention = nn.MultiheadAttention(style.width, style.heads, batch_first=True)
        width = style.width
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm1(x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


WINDOW = 7


def windows(x: Tensor) -> Tensor:
    """Cut (batch, side, side, width) into windows of 7 x 7."""
    n, side, _, width = x.shape
    x = x.view(n, side // WINDOW, WINDOW, side // WINDOW, WINDOW, width)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, WINDOW * WINDOW, width)


def joined(x: Tensor, side: int) -> Tensor:
    """Put windows together again."""
    width, per_side = x.shape[-1], side // WINDOW
    x = x.view(-1, per_side, per_side, WINDOW, WINDOW, width)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, side, side, width)


class WindowAttention(nn.Module):
    """Attention inside windows, with a bias for each relative position and a mask where windows were shifted."""

    def __init__(self, width: int, heads: int, side: int, *, shifted: bool) -> None:
        super().__init__()
        self.heads = heads
        self.table = nn.Parameter(torch.zeros((2 * WINDOW - 1) ** 2, heads))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("index", torch.zeros(WINDOW**4, dtype=torch.int64))
        self.register_buffer("mask", torch.zeros((side // WINDOW) ** 2, WINDOW**2, WINDOW**2) if shifted else None)

    def forward(self, x: Tensor) -> Tensor:
        n, tokens, width = x.shape
        q, k, v = self.qkv(x).reshape(n, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q * (width // self.heads) ** -0.5) @ k.transpose(-2, -1)
        bias = self.table[self.index].view(tokens, tokens, -1).permute(2, 0, 1).contiguous()
        scores = scores + bias.unsqueeze(0)
        if self.mask is not None:
            scores = scores.view(-1, len(self.mask), self.heads, tokens, tokens) + self.mask.unsqueeze(1).unsqueeze(0)
            scores = scores.view(-1, self.heads, tokens, tokens)
        return self.out((F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(n, tokens, width))


class SwinBlock(nn.Module):
    """A block of Swin; every second one shifts its windows."""

    def __init__(self, width: int, heads: int, side: int, shift: int, path: float) -> None:
        super().__init__()
        self.side, self.shift, self.path = side, shift if side > WINDOW else 0, path
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = WindowAttention(width, heads, side, shifted=self.shift > 0)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm1(x).view(len(x), self.side, self.side, -1)
        if self.shift:
            normed = torch.roll(normed, (-self.shift, -self.shift), dims=(1, 2))
        mixed = joined(self.attention(windows(normed)), self.side)
        if self.shift:
            mixed = torch.roll(mixed, (self.shift, self.shift), dims=(1, 2))
        x = x + drop_path(mixed.view(x.shape), self.path)
        return x + drop_path(self.mlp(self.norm2(x)), self.path)


class Merge(nn.Module):
    """Four neighbours become one, twice as wide."""

    def __init__(self, width: int, side: int) -> None:
        super().__init__()
        self.side, self.norm = side, nn.LayerNorm(4 * width)
        self.out = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x.view(len(x), self.side, self.side, -1)
        parts = [x[:, i::2, j::2, :] for j in (0, 1) for i in (0, 1)]
        return self.out(self.norm(torch.cat(parts, -1).flatten(1, 2)))


class Swin(nn.Module):
    """Swin-Tiny: patches of 4 x 4, four stages of 2, 2, 6 and 2 blocks."""

    def __init__(self, width: int = 96, depths: tuple[int, ...] = (2, 2, 6, 2), path: float = 0.2) -> None:
        super().__init__()
        self.patches, self.patch_norm = nn.Conv2d(3, width, 4, stride=4), nn.LayerNorm(width)
        parts: list[nn.Module] = []
        side, paths = 56, iter(torch.linspace(0, path, sum(depths), device="cpu").tolist())
        for stage, depth in enumerate(depths):
            parts += [SwinBlock(width, 3 * 2**stage, side, 3 * (i % 2), next(paths)) for i in range(depth)]
            if stage < len(depths) - 1:
                parts.append(Merge(width, side))
                width, side = 2 * width, side // 2
        self.blocks = nn.Sequential(*parts)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.patch_norm(self.patches(x).flatten(2).transpose(1, 2)))
        return self.head(self.norm(x).mean(1))


class TunedNorm(nn.Module):
    """torchtune's RMSNorm of 2024: in float32, operation by operation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
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
        self.q, self.k, self.v, self.out = (linear(size.d_model, n) for n in (size.d_model, kv, kv, size.d_model))
        self.gate, self.up = linear(size.d_model, size.hidden), linear(size.d_model, size.hidden)
        self.down = linear(size.hidden, size.d_model)

    def forward(self, x: Tensor, angles: Tensor, places: Tensor) -> Tensor:
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
        angles, places = torch.zeros(x.shape[1], self.size.head_dim // 2, 2), torch.zeros_like(x)
        x = self.tokens(x)
        for block in self.blocks:
            x = block(x, angles, places)
        return self.norm(x)


def soft_loss(output: Tensor, y: Tensor) -> Tensor:
    """Return the cross-entropy with mixed labels (timm's SoftTargetCrossEntropy)."""
    return torch.sum(-y * F.log_softmax(output, dim=-1), dim=-1).mean()


MINGPT = partial(Style, dropout=0.1, one_qkv=True, act=gelu_new, causal=11)
GPT2 = Style(768, 12, 0.1, fused=True, causal=1024, one_qkv=True, act=gelu_new)
HF_BERT = partial(Style, dropout=0.1, pre_norm=False, eps=1e-12)
HF_VIT = Style(768, 12, fused=True, eps=1e-12)
DEIT = partial(Style, one_qkv=True, scale_first=True, act=wide_gelu, drop_path=0.1, eps=1e-6)


@dataclass(frozen=True)
class Published:
    """A model with its number of equal blocks, its batches, and its loss (None for forecast's own choice)."""

    of: Callable[[int], nn.Module]
    layers: int
    batch: str
    loss_fn: Any = None


MODELS = {
    "mingpt-xl": Published(lambda n: GPT(MINGPT(1600, 25), n, 3, tied=False), 48, "tokens"),
    "mingpt-nano": Published(lambda n: GPT(MINGPT(48, 3), n, 3, tied=False), 3, "tokens"),
    "hf-gpt2": Published(lambda n: GPT(GPT2, n, 50_257, tied=True), 12, "tokens"),
    "hf-bert-base": Published(lambda n: BERT(HF_BERT(768, 12, fused=True), n, 30_522, 512, 2, "mlm"), 12, "tokens"),
    "hf-roberta-base": Published(lambda n: BERT(HF_BERT(768, 12, fused=True), n, 50_265, 514, 1, "dense"), 12, "text"),
    "hf-bert-large": Published(lambda n: BERT(HF_BERT(1024, 16), n, 30_522, 512, 2, "pooled"), 24, "text"),
    "hf-vit-b": Published(lambda n: ViT(HF_VIT, n), 12, "pictures"),
    "torchvision-vit-l": Published(lambda n: ViT(Style(1024, 16, eps=1e-6), n, TorchvisionBlock), 24, "pictures"),
    "deit-ti": Published(lambda n: ViT(DEIT(192, 3), n), 12, "mixed", soft_loss),
    "deit-s": Published(lambda n: ViT(DEIT(384, 6), n), 12, "mixed", soft_loss),
    "deit-b": Published(lambda n: ViT(DEIT(768, 12), n), 12, "mixed", soft_loss),
    "swin-ti": Published(lambda n: Swin(), 1, "mixed", soft_loss),
    "torchtune-llama-3b": Published(lambda n: TunedLlama(replace(model_size("llama-3b"), layers=n)), 28, "tokens"),
}


def build(name: str, rows: int, context: int, layers: int) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    """Return a model and a sample batch (x, y), both without memory."""
    published = MODELS[name]
    with torch.device("meta"):
        model, labels = published.of(layers), torch.zeros(rows, dtype=torch.int64)
        if published.batch in ("tokens", "text"):
            tokens = torch.zeros(rows, context, dtype=torch.int64)
            return model, (tokens, tokens if published.batch == "tokens" else labels)
        pictures = torch.zeros(rows, 3, 224, 224)
        return model, (pictures, torch.zeros(rows, 1000) if published.batch == "mixed" else labels)
