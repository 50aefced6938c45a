"""The Ledger as a learner meets it: what it counts, where it says things happen, entered twice, given nonsense."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab import Ledger
from gradlab.memory.timeline import CATEGORIES, MOST_POINTS, OTHER, CategoryTotals, MemoryPoint


class Twice(nn.Module):
    """Calls one layer twice, in a module inside a module."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Linear(64, 64)
        self.head = nn.Sequential(nn.Tanh(), nn.Linear(64, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.shared(self.shared(x).sin()))


@pytest.fixture
def parts() -> Iterator[tuple[nn.Module, Tensor, torch.optim.Optimizer]]:
    gc.collect()
    torch.manual_seed(0)
    model = Twice()
    yield model, torch.randn(128, 64), torch.optim.Adam(model.parameters())
    del model
    gc.collect()


def weight(model: nn.Module) -> int:
    return sum(p.nbytes for p in model.parameters())


# What was there before it started.


def test_what_is_alive_when_it_starts_is_found_and_sorted(parts: Any) -> None:
    model, x, optimizer = parts
    others = Ledger()
    with others:
        start = others.by_category
    del others
    model(x).sum().backward()
    optimizer.step()
    batch, spare = torch.randn(100, 64), torch.randn(1000)
    scale = torch.ones(100, 64)
    with Ledger() as ledger:
        first = ledger.by_category
        assert first["weights"] == start["weights"]
        assert first["gradients"] - start["gradients"] == weight(model)
        assert first["optimizer"] - start["optimizer"] == 2 * weight(model) + 4 * len(list(model.parameters()))
        model(scale.requires_grad_() * batch)  # what is learned is no batch
        now = ledger.by_category
        assert now["inputs"] == batch.nbytes
        assert now["other"] == first["other"] - batch.nbytes
    assert first["other"] >= spare.nbytes + x.nbytes + batch.nbytes


def test_what_it_is_told_is_not_searched_for(parts: Any) -> None:
    model, x, optimizer = parts
    spare = torch.randn(1000)
    ledger = Ledger(model, [optimizer], {"batch": [(x, None)]})
    with ledger:
        assert ledger.by_category == dict(zip(CATEGORIES, (weight(model), 0, x.nbytes, 0, 0, 0), strict=True))
        spare.add_(1)
        assert ledger.by_category["other"] == spare.nbytes


# What counts as what.


def test_the_life_of_one_update(parts: Any) -> None:
    model, x, optimizer = parts
    with Ledger(model, optimizer, x) as ledger:
        loss = model(x).pow(2).mean()
        # saved: what sin and the second call of shared were given, what tanh returned, pow's base
        forward = ledger.by_category
        assert forward["activations"] == 3 * 128 * 64 * 4 + 128 * 4 * 4
        assert forward["gradients"] == forward["optimizer"] == 0
        loss.backward()
        backward = ledger.by_category
        assert backward["activations"] == 0
        assert backward["gradients"] == weight(model)
        optimizer.step()
        assert ledger.by_category["optimizer"] == 2 * weight(model) + 4 * 4
        optimizer.zero_grad(set_to_none=False)
        assert ledger.by_category["gradients"] == weight(model)
        optimizer.zero_grad()
        assert ledger.by_category["gradients"] == 0


def test_a_view_counts_as_the_whole_that_it_keeps() -> None:
    layer = nn.Linear(8, 8)
    with Ledger(layer) as ledger:
        big = torch.randn(1000, 8)
        view = big[:2]
        del big
        assert ledger.by_category["other"] == 32_000
        layer(view)
        assert ledger.by_category["inputs"] == 32_000


def test_autocast_keeps_its_copies_until_its_block_ends() -> None:
    layer, x = nn.Linear(64, 64, bias=False), torch.randn(4, 64)
    with Ledger(layer, (), x) as ledger:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = layer(x)
            in_block = ledger.by_category
            layer(x)
            assert ledger.by_category["other"] == in_block["other"]  # the copy is used again
        after = ledger.by_category
    assert in_block["other"] - after["other"] == 64 * 64 * 2
    assert after["other"] == y.nbytes
    assert after["activations"] == x.numel() * 2


def test_gradients_set_kept_and_taken_away_by_hand() -> None:
    p = nn.Parameter(torch.randn(100))
    with Ledger(nn.ParameterList([p])) as ledger:
        p.grad = torch.ones(100)
        assert ledger.by_category["gradients"] == 400
        grad, p.grad = p.grad, None
        assert (ledger.by_category["gradients"], ledger.by_category["other"]) == (0, 400)
        p.grad = grad
        assert ledger.by_category["gradients"] == 400
        p.grad = p.detach()  # a weight stays a weight
        assert ledger.by_category["gradients"] == 0
        optimizer = torch.optim.SGD([p], lr=0.1, momentum=0.9)
        p.grad = grad
        optimizer.step()
        p.grad = optimizer.state[p]["momentum_buffer"]
        assert ledger.by_category["optimizer"] == 400
        p.grad = None
        assert ledger.by_category["optimizer"] == 400  # state stays state


@pytest.mark.filterwarnings("error")
def test_a_buffer_computed_from_a_parameter_has_no_gradient() -> None:
    model = nn.Linear(10, 10, bias=False)
    model.register_buffer("twice", 2 * model.weight)  # PyTorch warns if the .grad of such a tensor is read
    with Ledger(model) as ledger:
        assert ledger.by_category["weights"] == 800
        model.get_buffer("twice").sum().backward()
        assert ledger.by_category["gradients"] == 400


# Entered again.


def test_entered_inside_and_after_itself_and_beside_another(parts: Any) -> None:
    model, x, _ = parts
    ledger, other = Ledger(model, (), x), Ledger(model, (), x)
    with ledger:
        with ledger, other:
            model(x).sum().backward()
        assert ledger.by_category == other.by_category
        assert ledger.peak == other.peak
        assert ledger.at_peak == other.at_peak
        extra = torch.randn(1000)
        assert ledger.by_category["other"] == 4000
    later = torch.randn(50)
    with ledger:
        later.add_(1)
        assert ledger.by_category["other"] == 4200
    del extra
    assert ledger.by_category["other"] == 200


@pytest.mark.parametrize("grows", [True, False])
def test_a_long_timeline_is_halved_and_keeps_its_highest_moments(grows: bool) -> None:
    totals = CategoryTotals()
    sizes = range(1, 3 * MOST_POINTS)
    for number, size in enumerate(sizes if grows else reversed(sizes)):
        totals.begin_interval(("line", "", number))
        totals.change(OTHER, size)
        totals.change(OTHER, -size)
    points = totals.points()
    assert MOST_POINTS / 2 <= len(points) <= MOST_POINTS
    assert max(point.top for point in points) == totals.peak == totals.peak_at.top == max(sizes)
    assert all(point.total == 0 for point in points)


# Where things happen.


def sites_of(ledger: Ledger) -> list[tuple[str, str]]:
    """Statement (the text after the line's number) and module of every stretch, repetitions left out."""
    sites = [(point.statement.partition(": ")[2], point.module) for point in ledger.timeline]
    return [site for site, _ in itertools.groupby(sites)]


def test_statement_and_module_of_every_stretch(parts: Any) -> None:
    model, x, optimizer = parts
    loss_fn = nn.MSELoss()
    y = torch.randn(128, 4)

    def train() -> None:
        optimizer.zero_grad()
        output = model(x)
        loss = loss_fn(output, y)
        loss.backward()
        optimizer.step()

    with Ledger(model, optimizer, (x, y)) as ledger:
        train()
    sites = [site for site in sites_of(ledger) if site != ("", "")]
    forward = [("output = model(x)", name) for name in ("shared", "Twice", "shared", "head.0", "head.1")]
    backward = [("loss.backward()", name) for name in ("", "MSELoss", "head.1", "head.0", "shared", "Twice", "shared")]
    expected = [
        ("optimizer.zero_grad()", ""),
        *forward,
        ("loss = loss_fn(output, y)", "MSELoss"),
        *backward,
        ("optimizer.step()", ""),
    ]
    assert sites == expected
    line = train.__code__.co_firstlineno + 4
    assert f"test_ledger.py:{line}: loss.backward()" in [point.statement for point in ledger.timeline]


def test_the_place_of_the_peak() -> None:
    class Wide(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.repeat(1, 1000).sum(1)

    model, x = nn.Sequential(nn.Linear(8, 8), nn.Sequential(Wide())), torch.randn(50, 8)
    with Ledger(model, (), x) as ledger:
        y = model(x)
        y.sum()
    point = ledger.peak_at
    assert isinstance(point, MemoryPoint)
    assert point.statement.endswith(": y = model(x)")
    assert point.module == "1.0"
    assert point.high == ledger.at_peak
    assert point.top == ledger.peak >= 50 * 8000 * 4
    assert "model(x) in 1.0" in repr(ledger)


# Bad arguments.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "digits"}, "model must be a torch.nn.Module, got 'digits'"),
        ({"model": nn.Linear}, "model must be a torch.nn.Module, got <class"),
        ({"optimizers": [torch.optim.SGD]}, "optimizers must be torch.optim.Optimizer, got <class"),
        ({"optimizers": 3}, "optimizers must be torch.optim.Optimizer"),
        ({"optimizers": None}, "optimizers must be torch.optim.Optimizer, got None"),
        ({"inputs": "x"}, "inputs must be tensors"),
        ({"inputs": 5}, "inputs must be tensors"),
    ],
)
def test_a_bad_argument_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=f"Ledger: {message}"):
        Ledger(**arguments)


def test_what_this_pytorch_lacks_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger()
    assert "not available" not in repr(ledger)
    monkeypatch.delattr(torch._C, "_current_autograd_node")
    lost = "memory in backward is not counted by module"
    assert repr(ledger).endswith(f"not available: {lost} (this PyTorch has no torch._C._current_autograd_node)")
