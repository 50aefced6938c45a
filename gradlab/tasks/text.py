"""The task of predicting the next character in passages of ten sonnets, and a small transformer for this task."""

from __future__ import annotations

from importlib.resources import files
from itertools import cycle

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.nn.utils.rnn import pad_sequence

from .._checks import whole_number
from .task import Task, checked_device

IGNORE = -100  # target at padding, and the default ``ignore_index`` of torch.nn.functional.cross_entropy
PAD = 0  # input at padding: the number of the newline; no real character attends to padding
ORDER_SEED = 0


class Block(nn.Module):
    """A pre-norm transformer layer: causal self-attention and a small MLP, each with a residual connection."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape as ``x``, which is (batch, length, width)."""
        batch, length, width = x.shape
        split = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class CharTransformer(nn.Module):
    """A transformer with causal attention that maps characters to scores for the next character.

    Sequences are padded at the end, so the causal mask alone prevents padding from affecting any real character.
    """

    def __init__(self, characters: int, longest: int, width: int = 48, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.token = nn.Embedding(characters, width)
        self.place = nn.Embedding(longest, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores of (batch, length, characters) for the next characters; ``x`` is (batch, length) int64."""
        places = torch.arange(x.shape[1], device=x.device)
        return self.head(self.norm(self.blocks(self.token(x) + self.place(places))))


def next_character_loss(output: Tensor, y: Tensor) -> Tensor:
    """Return the mean cross-entropy of scores (batch, length, characters) for targets ``y``, without padding."""
    return nn.functional.cross_entropy(output.flatten(0, 1), y.flatten(), ignore_index=IGNORE)


def passages() -> list[str]:
    """Return a list of passages of 1, 2 and 3 verses in turn, each of which is from a single sonnet.

    The lengths differ on purpose, so that the mean of two batches' losses is not the mean over their characters.
    """
    sonnets = files("gradlab.tasks").joinpath("data/sonnets.txt").read_text(encoding="ascii").strip().split("\n\n")
    texts: list[str] = []
    sizes = cycle((1, 2, 3))
    for sonnet in sonnets:
        verses = sonnet.split("\n")
        while verses:
            size = next(sizes)
            texts.append("\n".join(verses[:size]) + "\n")
            verses = verses[size:]
    return texts


def characters() -> str:
    """Return a sorted string of the distinct characters in the sonnets, which begins with the newline."""
    return "".join(sorted(set("".join(passages()))))


def text(batch: int = 8, device: str = "auto") -> Task:
    """Return the task of predicting the next character: x and y are (batch, length) int64, with y one character ahead.

    A batch is as long as its longest passage; after the end of a shorter passage, y is -100, which the loss ignores.
    The number i in x or y stands for the character `characters()[i]`.

    batch: number of passages per batch, from 1 to all of them; the last batch may be smaller.
    """
    where = checked_device("text: device", device)
    texts = passages()
    batch = whole_number("text: batch", batch, 1, len(texts))
    number = {character: i for i, character in enumerate(characters())}
    order = torch.randperm(len(texts), generator=torch.Generator().manual_seed(ORDER_SEED)).tolist()
    # Every input starts with a newline, so that the first character of a passage is also a target.
    codes = [torch.tensor([number[c] for c in "\n" + texts[i]]) for i in order]
    longest = max(map(len, codes)) - 1
    batches = []
    for group in (codes[i : i + batch] for i in range(0, len(codes), batch)):
        x = pad_sequence([code[:-1] for code in group], batch_first=True, padding_value=PAD)
        y = pad_sequence([code[1:] for code in group], batch_first=True, padding_value=IGNORE)
        batches.append((x, y))
    return Task(
        name="text",
        builder=lambda seed: CharTransformer(len(number), longest),
        batches=batches,
        loss_fn=next_character_loss,
        device=where,
        title="Ten sonnets: a small transformer learns to guess the next character",
        lr=0.5,
    )
