"""Eight receipts: two unknown prices, one receipt a batch."""

from __future__ import annotations

import torch
from torch import nn

from .task import Task, TwoWeights, checked_device, split

PRICES = (1.0, 2.0)
# How many pens and notebooks each receipt lists. Chosen so that at lr 0.01 four receipts added up overshoot and their
# mean does not: with squared error the curvature of a window along a direction d is 2 * sum((x . d)^2), and SGD
# overshoots for good above 2 / lr = 200.
RECEIPTS = ((5, 2), (1, 6), (4, 4), (6, 1), (2, 5), (7, 2), (3, 6), (4, 3))


def line(device: str = "auto") -> Task:
    """Return the task of finding two prices from 8 receipts: x (1, 2) items, y (1, 1) the bill, one receipt a batch.

    The bill is x @ (1, 2) exactly, so a loss of 0 can be reached. The model is Linear(2, 1) without a bias, the loss is
    the mean squared error.

    Raises TypeError or ValueError for a device that is not "auto", "cpu" or "cuda", or that is not there.
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
