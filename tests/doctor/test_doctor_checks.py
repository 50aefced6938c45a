"""Checks that no loop of the corpus covers: a trainer's wrapper of an optimizer, and numbers of the whole run."""

from __future__ import annotations

import torch
from torch import nn

from gradlab.doctor import watch


class Wrapper(torch.optim.Optimizer):
    """A trainer's wrapper of an optimizer, such as accelerate's."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    param_groups = property(lambda self: self.optimizer.param_groups)
    state = property(lambda self: self.optimizer.state)
    defaults = property(lambda self: self.optimizer.defaults)

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none)

    def step(self, closure: None = None) -> None:
        self.optimizer.step(closure)


def train(updates: int, schedules: int = 1) -> str:
    net = nn.Linear(3, 1)
    opt = Wrapper(torch.optim.SGD(net.parameters(), lr=0.1))
    scheduler = torch.optim.lr_scheduler.StepLR(opt, 1000)
    with watch() as report:
        for _ in range(updates):
            opt.zero_grad()
            net(torch.randn(4, 3)).square().mean().backward()
            opt.step()
            for _ in range(schedules):
                net(torch.randn(4, 3)).square().mean().backward() if schedules > 1 else None
                scheduler.step()
    return report.text


def test_a_wrapper_is_no_optimizer_of_its_own():
    assert train(8).startswith("No findings. Watched 8 backward passes, 8 updates of opt (SGD).\n")


def test_the_pace_is_told_with_the_numbers_of_the_whole_run():
    assert "160 steps of the scheduler, 40 of opt" in train(40, schedules=4)
