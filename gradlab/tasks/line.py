"""The task of finding two unknown prices from eight receipts, with one receipt per batch."""

from __future__ import annotations

import torch
from torch import nn

from .task import Task, TwoWeights, checked_device, split

PRICES = (1.0, 2.0)
# Numbers of pens and notebooks on each receipt. They are chosen so that at lr 0.01, SGD diverges with the sum of the
# losses of four receipts, but not with their mean: the summed squared error has the curvature 2 * sum((x . d)^2)
# along a unit vector d, and SGD diverges if the curvature is above 2 / lr = 200.
RECEIPTS = ((5, 2), (1, 6), (4, 4), (6, 1), (2, 5), (7, 2), (3, 6), (4, 3))


def line(device: str = "auto") -> Task:
    """Return the task of finding two prices from 8 receipts: x (1, 2) counts the two items, and y (1, 1) is the bill.

    Each batch is one receipt. The prices are exactly 1 and 2, so a loss of 0 can be reached. The model is Linear(2, 1)
    without a bias, and the loss is the mean squared error.
    """
    x = torch.tensor(RECEIPTS, dtype=torch.float32)
    y = x @ torch.tensor(PRICES).unsqueeze(1)
    return Task(
        name="line",
        builder=lambda seed: nn.Linear(2, 1, bias=False),
        batches=split(x, y, 1),
        loss_fn=nn.functional.mse_loss,
        device=checked_device("line: device", device),
        title="Eight receipts of pens and notebooks: find the two prices",
        lr=0.01,
        picture=TwoWeights(PRICES),
    )
