"""A Ledger beside other threads: it counts its own thread alone, and what the others run is as it was."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules import module
from torch.optim import optimizer
from torch.utils.hooks import RemovableHandle

from gradlab import Ledger
from gradlab._process import Patches


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    """Threads take turns 500 times as often."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


class Loop:
    """A model that trains, always in the same way; in each update a layer is made and dropped."""

    def __init__(self, width: int = 32) -> None:
        generator = torch.Generator().manual_seed(0)
        self.model = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))
        for parameter in self.model.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator) / width
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.x = torch.randn(4, width, generator=generator)
        self.updates = 0

    def update(self) -> None:
        self.optimizer.zero_grad()
        self.model(self.x).square().mean().backward()
        self.optimizer.step()
        nn.BatchNorm1d(2)
        self.updates += 1

    def weights(self) -> list[Tensor]:
        return [parameter.detach().clone() for parameter in self.model.parameters()]

    def ledger(self) -> Ledger:
        return Ledger(self.model, self.optimizer, self.x)


@contextmanager
def beside(work: Callable[[], Any]) -> Iterator[list[BaseException]]:
    """Do some work again and again in another thread, meanwhile; its first error is raised at the end."""
    stop, going, errors = threading.Event(), threading.Event(), list[BaseException]()

    def repeat() -> None:
        try:
            while not stop.is_set():
                work()
                going.set()
        except BaseException as error:
            errors.append(error)
            going.set()

    thread = threading.Thread(target=repeat, name="trainer")
    thread.start()
    assert going.wait(60)
    try:
        yield errors
    finally:
        stop.set()
        thread.join()
    if errors:
        raise errors[0]


def counts(updates: int = 30) -> Any:
    """Return the numbers of a Ledger on a few updates."""
    loop = Loop()
    with loop.ledger() as ledger:
        for _ in range(updates):
            loop.update()
    return ledger.peak, ledger.at_peak, ledger.by_category, ledger.timeline


@pytest.mark.slow
def test_another_model_in_another_thread_is_not_counted() -> None:
    alone, other = counts(), Loop(512)

    def train() -> None:
        other.update()
        torch.get_rng_state()

    with beside(train):
        assert [counts() for _ in range(3)] == [alone] * 3


def a_ledger(loop: Loop) -> None:
    with loop.ledger():
        pass


def a_ledger_that_counts(loop: Loop) -> None:
    with loop.ledger():
        loop.update()


@pytest.mark.slow
@pytest.mark.parametrize(("use", "updates"), [(a_ledger, 250), (a_ledger_that_counts, 150)])
def test_training_beside_ledgers_that_come_and_go(use: Callable[[Loop], None], updates: int) -> None:
    plain, alone, other = Loop(), Loop(), Loop()
    with beside(lambda: use(other)):
        for _ in range(updates):
            plain.update()
    for _ in range(updates):
        alone.update()
    assert all(map(torch.equal, plain.weights(), alone.weights()))


def test_nothing_is_searched_while_another_thread_runs() -> None:
    loop = Loop()
    with beside(loop.update):
        with pytest.raises(RuntimeError, match=r"^Ledger: thread 'trainer' is also running your .*Ledger\(model, "):
            Ledger().__enter__()
        with Ledger(nn.Linear(2, 2)) as ledger:
            pass
        assert ledger.peak == 24
    with Ledger() as ledger:
        pass
    assert ledger.peak >= sum(parameter.nbytes for parameter in loop.model.parameters())


KINDS: dict[str, Callable[..., RemovableHandle]] = {
    "forward": module.register_module_forward_hook,
    "always": lambda hook: module.register_module_forward_hook(hook, always_call=True),
    "before forward": module.register_module_forward_pre_hook,
    "parameter": module.register_module_parameter_registration_hook,
    "buffer": module.register_module_buffer_registration_hook,
    "before step": optimizer.register_optimizer_step_pre_hook,
    "after step": optimizer.register_optimizer_step_post_hook,
}


def tables() -> dict[str, tuple[int, list[Any]]]:
    """PyTorch's own dictionaries of hooks: which object each is, and its keys."""
    modules = module, optimizer
    named = {name: value for each in modules for name, value in vars(each).items() if name.startswith("_global_")}
    return {name: (id(value), [*value]) for name, value in named.items() if isinstance(value, dict)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("begins", "ends"), [("before", "during"), ("during", "after")])
def test_hooks_of_others_come_and_go_as_without(kind: str, begins: str, ends: str) -> None:
    before, loop, calls = tables(), Loop(), list[int]()
    assert len(before) >= 11

    def called() -> bool:
        calls.clear()
        loop.update()
        return bool(calls)

    def register() -> RemovableHandle:
        return KINDS[kind](lambda *_: calls.append(1))

    handle = register() if begins == "before" else None
    with loop.ledger():
        handle = handle or register()
        assert called()
        if ends == "during":
            handle.remove()
            assert not called()
    assert called() == (ends == "after")
    handle.remove()
    assert not called()
    assert tables() == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_ledger_begins_and_ends_inside_a_hook(kind: str) -> None:
    """PyTorch is just going through its hooks, and finds the same ones after this one has run."""
    loop, other, runs, calls = Loop(), Loop(), list[int](), list[int]()

    def open_ledger() -> None:
        with other.ledger():
            runs.append(1)

    def first(*_: object) -> None:
        thread = threading.Thread(target=open_ledger)
        thread.start()
        thread.join()

    with KINDS[kind](first), KINDS[kind](lambda *_: calls.append(1)):
        loop.update()
    assert runs == calls != []


class Nested(torch.autograd.Function):
    """Runs a backward pass inside a backward pass, and so on; the innermost one does an update."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, depth: int, update: Callable[[], None]) -> Tensor:
        ctx.inner = depth - 1, update
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        depth, update = ctx.inner
        with torch.enable_grad():
            nested(depth, update) if depth else update()
        return grad, None, None


def nested(depth: int, update: Callable[[], None]) -> None:
    Nested.apply(torch.ones(1, requires_grad=True), depth, update).sum().backward()


def test_a_thread_of_autograds_works_for_the_ledger() -> None:
    """Beyond 60 passes inside one another PyTorch takes a thread of its own, as it does for a GPU."""
    threads, results = list[int](), list[Any]()
    for depth in (2, 70):
        loop = Loop()

        def update(loop: Loop = loop) -> None:
            threads.append(threading.get_ident())
            loop.update()

        with loop.ledger() as ledger, beside(Loop(64).update):
            nested(depth, update)
        results.append((ledger.by_category, {point.module for point in ledger.timeline}))
    assert threads[0] == threading.get_ident() != threads[1]
    assert results[0] == results[1]
    state = sum(momentum["momentum_buffer"].nbytes for momentum in loop.optimizer.state.values())
    assert results[0][0]["optimizer"] == state
    assert results[0][1] >= {"0", "1", "2"}


class Owner:
    """Has a function, and lets another thread run in the moment when that is put back."""

    def __init__(self) -> None:
        self.function = self.original = abs
        self.back, self.goes_on = threading.Event(), threading.Event()

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "function" and "goes_on" in vars(self) and value is self.original:
            self.back.set()
            self.goes_on.wait(0.3)  # where the other thread has to wait, too, it never comes
        super().__setattr__(name, value)


def test_a_replacement_that_begins_while_another_ends() -> None:
    owner = Owner()
    replacement = Patches((owner, "function", lambda original: lambda x: original(x)))
    leave = threading.Event()

    def begin() -> None:
        owner.back.wait()
        with replacement:
            owner.goes_on.set()
            leave.wait()

    thread = threading.Thread(target=begin)
    thread.start()
    with replacement:
        assert owner.function is not abs
    leave.set()
    thread.join()
    assert owner.function is abs
