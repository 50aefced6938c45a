"""A forecast beside another thread that draws: none of its random numbers comes twice."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from gradlab.forecasting import forecast
from gradlab.tasks import Task

F = nn.functional


class Interrupted(nn.Module):
    """A layer before which something else happens."""

    def __init__(self, first: Callable[[], Any]) -> None:
        super().__init__()
        self.first, self.layer = first, nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1))

    def forward(self, x: Tensor) -> Tensor:
        self.first()
        return self.layer(x)


def pair() -> tuple[Tensor, Tensor]:
    return torch.zeros(4, 8), torch.zeros(4, 8)


def draw_in_checkpoints(draw: Callable[[], Any]) -> None:
    block = Interrupted(draw)
    model = nn.Sequential(nn.Linear(8, 8), Called(lambda x: checkpoint(block, x, use_reentrant=False)))
    forecast(model, batch=pair())


def draw_in_blocks(draw: Callable[[], Any]) -> None:
    forecast(nn.Sequential(*[Interrupted(draw) for _ in range(3)]), batch=pair(), checkpoint=True)


def draw_after_a_seed(draw: Callable[[], Any]) -> None:
    forecast(Interrupted(lambda: (torch.manual_seed(0), draw())), batch=pair())


def draw_in_a_task(draw: Callable[[], Any]) -> None:
    first = Interrupted(draw)
    forecast(Task("own", lambda seed: (draw(), nn.Linear(8, 8))[1], [pair()], lambda y, z: F.mse_loss(first(y), z)))


class Called(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.forward = function


@pytest.mark.parametrize("ask", [draw_in_checkpoints, draw_in_blocks, draw_after_a_seed, draw_in_a_task])
def test_no_random_number_is_drawn_twice(ask: Callable[[Any], None]) -> None:
    numbers: list[float] = []

    def draw() -> None:
        if not numbers:
            torch.default_generator.manual_seed(3)
        numbers.append(torch.rand(1).item())

    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(int).result()  # from now on there is another thread
        ask(lambda: elsewhere.submit(draw).result())
    assert numbers == torch.rand(len(numbers), generator=torch.Generator().manual_seed(3)).tolist()
    assert numbers
