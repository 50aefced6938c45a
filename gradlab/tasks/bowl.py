"""Two weights in a quadratic bowl whose curvatures you choose."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .._checks import pair
from .task import Task, TwoWeights, checked_device

LARGEST_NUMBER = 1e6  # largest magnitude of any argument, so that the loss does not overflow float32


def half_squares(output: Tensor, y: Tensor) -> Tensor:
    """Return half the sum of the squared differences of ``output`` and ``y``, as a tensor with one value."""
    return 0.5 * ((output - y) ** 2).sum()


def bowl(
    curvatures: tuple[float, float] = (1.0, 0.1),
    start: tuple[float, float] = (-1.6, 1.3),
    minimum: tuple[float, float] = (0.0, 0.0),
    device: str = "auto",
) -> Task:
    """Return the task of two weights (w0, w1) with the loss 1/2 * (c0 * (w0 - m0)^2 + c1 * (w1 - m1)^2).

    With x = diag(sqrt(c)) and y = x @ m, the loss is half the squared error of x @ w. The Hessian is diag(c), and plain
    SGD multiplies w_i - m_i by 1 - lr * c_i in each update, so it converges if lr * c_i < 2 for both weights.

    curvatures: (c0, c1), each from 1e-6 to 1e6.
    start: (w0, w1), the initial weights of every model that `build` returns, whatever the seed.
    minimum: (m0, m1), the weights at which the loss is 0.

    There are 16 identical batches, in which x has the shape (2, 2) and y has the shape (2, 1).
    """
    c0, c1 = pair("bowl: curvatures", curvatures, 1 / LARGEST_NUMBER, LARGEST_NUMBER)
    w0, w1 = pair("bowl: start", start, -LARGEST_NUMBER, LARGEST_NUMBER)
    m0, m1 = pair("bowl: minimum", minimum, -LARGEST_NUMBER, LARGEST_NUMBER)
    x = torch.diag(torch.tensor([math.sqrt(c0), math.sqrt(c1)]))
    y = x @ torch.tensor([[m0], [m1]])

    def build(seed: int) -> nn.Module:
        model = nn.Linear(2, 1, bias=False)
        with torch.no_grad():
            model.weight.copy_(torch.tensor([[w0, w1]]))
        return model

    return Task(
        name="bowl",
        builder=build,
        batches=[(x.clone(), y.clone()) for _ in range(16)],
        loss_fn=half_squares,
        device=checked_device("bowl: device", device),
        title="Two weights roll down a bowl",
        # This is a tenth of the limit 2 / c in the steeper direction, so training is quick without overshoot.
        lr=0.2 / max(c0, c1),
        picture=TwoWeights((m0, m1)),
    )
