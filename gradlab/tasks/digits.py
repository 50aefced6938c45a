"""The task of classifying real handwritten digits of 8 x 8 pixels."""

from __future__ import annotations

import gzip
from functools import cache
from importlib.resources import files

import torch
from torch import Tensor, nn

from .._checks import whole_number
from .task import HeldOutImages, Task, checked_device, split

TRAIN = 1500
# The split and the order of the batches never change, so that no seed turns a held-out image into a training image.
SPLIT_SEED = 0


def images() -> tuple[Tensor, Tensor]:
    """Return all 1,797 images, (1797, 64) float32 from 0 (blank) to 1 (full ink), and their digits, (1797,) int64.

    Source, authors and licence: data/SOURCES.md.
    """
    table = _table()
    return table[:, :64].float() / 16, table[:, 64].long()


@cache
def _table() -> Tensor:
    """Return the data file as a uint8 tensor, one row per image; cached, since reading takes longer than an epoch."""
    packed = files("gradlab.tasks").joinpath("data/digits.csv.gz").read_bytes()
    rows = [bytes(map(int, row.split(b","))) for row in gzip.decompress(packed).splitlines()]
    return torch.frombuffer(bytearray(b"".join(rows)), dtype=torch.uint8).view(len(rows), -1)


def digits(batch: int = 64, device: str = "auto") -> Task:
    """Return the task of classifying digits: x (batch, 64) are pixels from 0 to 1, row by row; y (batch,) are digits.

    1,500 images are for training, 297 are held out in `picture`. The model is an MLP 64-128-64-10 with ReLU, and the
    loss is the cross-entropy.

    batch: number of images per batch, 1 to 1,500; the last batch may be smaller.
    """
    batch = whole_number("digits: batch", batch, 1, TRAIN)
    where = checked_device("digits: device", device)
    x, y = images()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(SPLIT_SEED))
    x, y = x[order], y[order]

    def build(seed: int) -> nn.Module:
        return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))

    return Task(
        name="digits",
        builder=build,
        batches=split(x[:TRAIN], y[:TRAIN], batch),
        loss_fn=nn.functional.cross_entropy,
        device=where,
        title="1,797 real handwritten digits: a network learns to read them",
        # A rate ten times higher would learn faster. At this rate, the oscillation without zero_grad can be watched
        # for a while before it destroys the network.
        lr=0.05,
        picture=HeldOutImages(x[TRAIN:].clone(), y[TRAIN:].clone(), (8, 8)),
    )
