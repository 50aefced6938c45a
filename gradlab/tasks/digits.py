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
    """Return all images as (1797, 64) float32 from 0 (blank) to 1 (full ink), and the digits as (1797,) int64.

    The file data/SOURCES.md names the source, the authors and the licence.
    """
    table = _table()
    return table[:, :64].float() / 16, table[:, 64].long()


@cache
def _table() -> Tensor:
    """Return a uint8 tensor with rows of 64 pixels and a digit, cached because reading takes longer than an epoch."""
    packed = files("gradlab.tasks").joinpath("data/digits.csv.gz").read_bytes()
    rows = [bytes(map(int, row.split(b","))) for row in gzip.decompress(packed).splitlines()]
    return torch.frombuffer(bytearray(b"".join(rows)), dtype=torch.uint8).view(len(rows), -1)


def digits(batch: int = 64, device: str = "auto") -> Task:
    """Return the task of classifying digits: x (batch, 64) has pixels from 0 to 1 by row, and y (batch,) has digits.

    The batches contain 1,500 images, and 297 other images are held out in `picture`. The model is an MLP 64-128-64-10
    with ReLU, and the loss is the cross-entropy.

    batch: number of images per batch, from 1 to 1,500; the last batch may be smaller.
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
        # Ten times this rate would be faster. At this rate, the oscillation without zero_grad can be watched
        # for a while before it destroys the network.
        lr=0.05,
        picture=HeldOutImages(x[TRAIN:].clone(), y[TRAIN:].clone(), (8, 8)),
    )
