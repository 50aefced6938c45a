"""The doctor's own memory stays bounded, and a healthy loop never waits for its device because of it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from gradlab.doctor import watch

pytestmark = pytest.mark.slow

X = torch.ones(1, 2)


def tiny(rate: float = 1e-6) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Linear(2, 1)
    return model, torch.optim.SGD(model.parameters(), lr=rate)


def never_cleared() -> Iterator[None]:
    model, optimizer = tiny()
    while True:
        model(X).sum().backward()
        optimizer.step()
        yield


def only_called() -> Iterator[None]:
    model, _ = tiny()
    while True:
        model(X)
        yield


def edited_by_hand() -> Iterator[None]:
    model, optimizer = tiny()
    while True:
        optimizer.zero_grad()
        model(X).sum().backward()
        for p in model.parameters():
            p.grad = p.grad * 0.5
        optimizer.step()
        yield


def a_new_optimizer_each_time() -> Iterator[None]:
    model, _ = tiny()
    while True:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
        optimizer.zero_grad()
        model(X).sum().backward()
        optimizer.step()
        yield


def a_new_model_each_time() -> Iterator[None]:
    while True:
        model, optimizer = tiny()
        model(X).sum().backward()
        optimizer.step()
        yield


def steps_that_fail() -> Iterator[None]:
    model, optimizer = tiny()
    broken = torch.optim.LBFGS(model.parameters())
    with pytest.raises(ZeroDivisionError):
        broken.step(lambda: 1 / 0)
    del broken
    while True:
        optimizer.zero_grad()
        model(X).sum().backward()
        optimizer.step()
        yield


@pytest.mark.parametrize(
    ("loop", "updates"),
    [
        (never_cleared, 400),
        (only_called, 800),
        pytest.param(edited_by_hand, 300, marks=pytest.mark.nightly),
        pytest.param(a_new_optimizer_each_time, 400, marks=pytest.mark.nightly),
        (a_new_model_each_time, 1_000),
        pytest.param(steps_that_fail, 2_000, marks=pytest.mark.nightly),
    ],
)
def test_memory_is_bounded(loop: Callable[[], Iterator[None]], updates: int) -> None:
    """By Python's count of small objects: an update has about five events, and each is more than one of them."""
    with watch():  # PyTorch and the doctor load modules at their first use
        warm = loop()
        for _ in range(50):
            next(warm)
    del warm
    gc.collect()
    before, after = sys.getallocatedblocks(), []
    with watch() as report:
        steps = loop()
        for _ in range(2):
            for _ in range(updates // 2):
                next(steps)
            gc.collect()
            after.append(sys.getallocatedblocks() - before)
    half, full = after
    assert "failed" not in report.watched
    assert full - half < 2_000, after
    assert full < 25_000


def count_waits(loop: Callable[[], Iterator[None]], updates: int) -> int:
    """Return the number of reads of a number from a tensor: on a GPU, each waits for the device."""
    with watch():
        steps = loop()
        for _ in range(60):  # the first updates read some gradients
            next(steps)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            for _ in range(updates):
                next(steps)
    return sum(op.count for op in profile.key_averages() if op.key in ("aten::item", "aten::_local_scalar_dense"))


def test_a_healthy_loop_never_waits_for_its_device():
    def with_all() -> Iterator[None]:
        model, optimizer = tiny()
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
        while True:
            for _ in range(2):
                (model(X).sum() / 2).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=False)
            yield

    assert count_waits(with_all, 100) == 0


def test_edited_gradients_are_waited_for_once_many_events():
    assert count_waits(edited_by_hand, 150) <= 5  # not once an update and a parameter: that would be 300


def test_the_learners_own_modes_do_not_see_the_doctor():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.names: list[str] = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    def names() -> list[str]:
        with Counting() as counting:
            steps = never_cleared()
            for _ in range(60):
                next(steps)
        return [name for name in counting.names if "profiler" not in name]

    bare = names()
    with watch() as report:
        watched = names()
    assert report.codes == ["missing-zero-grad"]
    assert watched == bare
