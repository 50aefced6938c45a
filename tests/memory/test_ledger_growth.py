"""``Ledger.growth()`` against the tensors that a loop keeps, measured by the loop itself after each update."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab import Ledger

UPDATES = 10


class Loop:
    """A training loop that keeps tensors; ``sizes`` has the bytes of what it keeps, after each update."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.stored: Any = []
        self.total: Any = 0
        self.sizes: list[int] = []
        self.alive: list[int] = []

    def train(self, keep: Callable[..., None], updates: int = UPDATES, set_to_none: bool = True) -> Ledger:
        with Ledger(self.model, self.optimizer) as ledger:
            for update in range(updates):
                x = torch.randn(4 + update, 8)
                self.optimizer.zero_grad(set_to_none)
                output = self.model(x)
                loss = output.pow(2).mean()
                loss.backward()
                keep(self, update, x, output, loss)
                self.optimizer.step()
                del x, output, loss
                self.sizes.append(sum(bytes_of(self.stored).values()))
                self.alive.append(ledger.current)
        return ledger


def bytes_of(tensors: Any) -> dict[int, int]:
    return {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}


def number_of(function: Any, text: str) -> int:
    lines, start = inspect.getsourcelines(function)
    return start + next(number for number, line in enumerate(lines) if text in line)


def keep_batch(loop: Loop, update: int, x: Tensor, output: Tensor, loss: Tensor) -> None:
    loop.stored.append(x)


def keep_copy(loop: Loop, update: int, x: Tensor, output: Tensor, loss: Tensor) -> None:
    loop.stored.append(output.detach().clone())


def keep_loss(loop: Loop, update: int, x: Tensor, output: Tensor, loss: Tensor) -> None:
    loop.stored.append(loss)


def keep_output(loop: Loop, update: int, x: Tensor, output: Tensor, loss: Tensor) -> None:
    loop.stored.append(output)


def keep_gradients(loop: Loop, update: int, x: Tensor, output: Tensor, loss: Tensor) -> None:
    loop.stored.append(loop.model[0].weight.grad)


LEAKS = [
    (keep_batch, Loop.train, "x = torch", "", "inputs"),
    (keep_copy, keep_copy, "clone()", "", "other"),
    (keep_loss, Loop.train, "loss = output", "", "other"),
    (keep_output, Loop.train, "output = self", "2", "activations"),
    (keep_gradients, Loop.train, "loss.backward()", "0", "other"),
]


@pytest.mark.parametrize(("keep", "function", "text", "module", "category"), LEAKS, ids=lambda part: str(part)[:20])
def test_a_leak_has_its_line_module_and_bytes(keep: Any, function: Any, text: str, module: str, category: str) -> None:
    loop = Loop()
    ledger = loop.train(keep)
    growth = ledger.growth()
    # What an update makes is old when the next one has ended.
    bytes_grown = loop.sizes[growth.last - 2] - loop.sizes[growth.first - 2]
    (row,) = growth.rows
    assert row.line.startswith(f"test_ledger_growth.py:{number_of(function, text)}: ")
    assert text in row.line
    assert (row.bytes, row.module, row.category) == (bytes_grown, module, category)
    assert str(growth) in repr(ledger)
    assert f"{bytes_grown / (growth.last - growth.first):,.0f} bytes for each update" in str(growth)
    assert "self.optimizer.step()" in growth.clock


def test_all_rows_are_the_growth_of_what_is_alive() -> None:
    def keep(loop: Loop, update: int, *_: Any) -> None:
        loop.stored += [torch.ones(30), torch.ones(20).double()]
        loop.stored.append(loop.model[0](torch.ones(2, 8)))  # its graph keeps the input, too

    loop = Loop()
    growth = loop.train(keep).growth()
    assert len(growth.rows) == 3
    assert growth.last - growth.first == 3
    grown = loop.alive[growth.last - 1] - loop.alive[growth.first - 1]
    assert growth.bytes == grown == 3 * (30 * 4 + 20 * 8 + 2 * 64 * 4 + 2 * 8 * 4)
    assert [row.bytes for row in growth.rows] == sorted((row.bytes for row in growth.rows), reverse=True)


def nothing(*_: Any) -> None:
    """Keep nothing."""


def keep_the_last_three(loop: Loop, update: int, x: Tensor, *_: Any) -> None:
    loop.stored = deque([*loop.stored, x], maxlen=3)


def fill_a_cache(loop: Loop, update: int, *_: Any) -> None:
    if update < 4:
        loop.stored.append(torch.ones(1000))


def keep_one_late(loop: Loop, update: int, *_: Any) -> None:
    if update == 6:  # between the last two ends that are compared
        loop.stored.append(torch.ones(1000))


def add_up(loop: Loop, update: int, x: Tensor, output: Tensor, loss: Tensor) -> None:
    loop.total += loss


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("keep", [nothing, keep_the_last_three, fill_a_cache, keep_one_late, add_up])
def test_what_does_not_grow_is_no_growth(keep: Any, set_to_none: bool) -> None:
    ledger = Loop().train(keep, set_to_none=set_to_none)
    growth = ledger.growth()
    assert growth.rows == ()
    assert growth.bytes == 0
    assert "Growth: none" in str(growth)
    assert "not counted" in str(growth)
    assert "Growth" not in repr(ledger)


def test_outputs_that_a_hook_keeps_are_activations() -> None:
    stored, copies = [], []

    def hook(module: nn.Module, inputs: object, output: Tensor) -> None:
        stored.append(output)
        copies.append(output * 2)

    model = Loop().model
    model[0].register_forward_hook(hook)
    with torch.no_grad(), Ledger(model) as ledger:
        for batch in range(UPDATES):
            model(torch.ones(4 + batch, 8))
    growth = ledger.growth()
    outputs, copied = growth.rows if growth.rows[0].category == "activations" else growth.rows[::-1]
    grown = sum(t.untyped_storage().nbytes() for t in stored[growth.first - 2 : growth.last - 2])
    assert growth.unit == "call"
    assert (outputs.bytes, outputs.module, outputs.line) == (grown, "0", growth.clock)
    assert (copied.bytes, copied.category) == (grown, "other")
    assert "copies.append(output * 2)" in copied.line
    old = stored[:-2]  # whether the last two stay is not known yet
    assert ledger.by_category["activations"] == sum(t.nbytes for t in old)


def test_graphs_that_are_kept_have_no_bytes_and_it_says_so() -> None:
    faulty, mended = Loop(), Loop()
    ledgers = [faulty.train(add_up), mended.train(lambda loop, *_: add_up(loop, *_[:-1], _[-1].detach()))]
    assert faulty.total.grad_fn is not None
    assert mended.total.grad_fn is None
    assert ledgers[0].by_category == ledgers[1].by_category
    assert all("graph are not storages" in str(ledger.growth()) for ledger in ledgers)


def test_one_of_two_optimizers_ends_the_update() -> None:
    loop, second = Loop(), nn.Linear(8, 8)
    other = torch.optim.SGD(second.parameters(), momentum=0.9)

    def keep(loop: Loop, update: int, x: Tensor, *_: Any) -> None:
        other.zero_grad()
        second(x).sum().backward()
        other.step()
        other.step()
        loop.stored.append(x)

    growth = loop.train(keep, updates=6).growth()
    assert [row.category for row in growth.rows] == ["inputs"]


def test_it_waits_for_three_updates_and_forgets() -> None:
    loop = Loop()
    ledger = loop.train(keep_batch, updates=2)
    assert ledger.growth().rows == ()
    assert "at least 3 updates" in str(ledger.growth())
    assert loop.train(keep_batch, updates=3).growth().last == 3
    again = loop.train(keep_batch, updates=5)
    again.forget()
    assert again.growth().first == 0


def test_a_notebook_shows_the_same_text() -> None:
    text = repr(Loop().train(keep_batch).growth())
    assert text.startswith("Growth: ")
    assert "keep_batch" not in text
    assert "torch.randn(4 + update, 8)" in text
