"""A watch beside other threads: it follows its own thread alone, and changes nothing in the others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from gradlab.doctor import watch


class OlderThread:
    """A thread that runs before a watch begins, and calls ``work`` on request."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work, self._requested = work, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        if self._requested.wait(60):
            self._work()

    def do(self) -> None:
        self._requested.set()
        self._thread.join()


class Loop:
    """A small model that trains in the right way."""

    def __init__(self) -> None:
        self.model = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.x = torch.ones(4, 3)

    def update(self) -> None:
        self.optimizer.zero_grad()
        self.model(self.x).square().mean().backward()
        self.optimizer.step()
        nn.Sequential(nn.Linear(1, 1))


def test_what_an_older_thread_differentiates_is_not_counted() -> None:
    weight = nn.Parameter(torch.ones(2))
    thread = OlderThread(lambda: torch.autograd.grad(weight.sum(), weight))
    with watch() as report:
        thread.do()
    assert not report.trained
    assert "torch.autograd.grad" not in report.watched


def test_a_step_inside_another_threads_backward_is_not_counted() -> None:
    loop, other = Loop(), Loop()

    def step_in_backward() -> None:
        other.model.bias.register_post_accumulate_grad_hook(lambda _: other.optimizer.step())
        other.model(other.x).sum().backward()

    thread = OlderThread(step_in_backward)
    before = other.model.bias.item()
    loop.model.bias.register_hook(lambda _: thread.do())
    with watch(loop.model, loop.optimizer) as report:
        loop.update()
    assert other.model.bias.item() != before
    assert report.watched == "Watched 1 backward pass, 1 update of self.optimizer (SGD)."


class Spied(nn.Parameter):
    """Notes which threads read its gradient."""

    readers: set[threading.Thread]

    @property
    def grad(self) -> Tensor | None:
        self.readers.add(threading.current_thread())
        return torch.Tensor.grad.__get__(self)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        torch.Tensor.grad.__set__(self, value)


def test_a_thread_that_still_trains_when_the_watch_ends() -> None:
    """Its gradients are not read at the end: it may be writing to them, and PyTorch crashes then."""
    loop, trained, over = Loop(), threading.Event(), threading.Event()
    weight = loop.model.weight = Spied(torch.ones(1, 3))
    weight.readers = set()
    loop.optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.1)

    def train() -> None:
        loop.update()
        trained.set()
        over.wait(60)

    thread = threading.Thread(target=train)
    with watch(loop.model, loop.optimizer) as report:
        weight.readers.clear()
        thread.start()
        assert trained.wait(60)
    over.set()
    thread.join()
    assert weight.readers == {thread}
    assert "1 backward pass" in report.watched
