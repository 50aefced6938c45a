"""A compiled model within a Ledger: it runs eagerly, nothing is compiled anew, and the Ledger says so."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import Tensor, nn
from torch._dynamo import eval_frame

from gradlab import Ledger

NOTE = "a compiled model is counted as it runs eagerly"
pytestmark = pytest.mark.filterwarnings("ignore:Using `torch.compile")  # of any global module hook


class Backend:
    """Counts what is compiled."""

    def __init__(self) -> None:
        self.compiled = 0

    def __call__(self, graph: torch.fx.GraphModule, _: Any) -> Callable[..., Any]:
        self.compiled += 1
        return graph.forward


@pytest.fixture
def backend() -> Iterator[Backend]:
    torch._dynamo.reset()
    yield Backend()
    torch._dynamo.reset()


class Small(nn.Module):
    """A class of its own: PyTorch does not compile a Sequential by its method."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 32), nn.Linear(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).tanh())


def parts() -> tuple[Small, Tensor]:
    torch.manual_seed(0)
    return Small(), torch.randn(16, 8)


def by_module(model: Small, backend: Backend) -> nn.Module:
    return torch.compile(model, backend=backend)


def by_method(model: Small, backend: Backend) -> nn.Module:
    model.compile(backend=backend)
    return model


def in_part(model: Small, backend: Backend) -> nn.Module:
    model.first = torch.compile(model.first, backend=backend)
    return model


@pytest.mark.parametrize("make", [by_module, by_method, in_part])
def test_a_compiled_model_is_counted_as_an_eager_one(make: Callable[..., nn.Module], backend: Backend) -> None:
    stance = eval_frame._stance
    model, x = parts()
    with Ledger(model, (), x) as plain:
        model(x).sum().backward()
    assert NOTE not in repr(plain)

    model, x = parts()
    compiled = make(model, backend)
    compiled(x)
    before = backend.compiled
    assert before >= 1
    with Ledger(compiled, (), x) as ledger:
        compiled(x).sum().backward()
    assert backend.compiled == before
    assert NOTE in repr(ledger).splitlines()[-1]
    assert (ledger.peak, ledger.at_peak) == (plain.peak, plain.at_peak)
    assert {point.module for point in ledger.timeline} == {point.module for point in plain.timeline}
    assert eval_frame._stance is stance
    compiled(x)
    assert backend.compiled == before  # and what was compiled still is


def test_compiled_within_the_block_and_closed_in_any_order(backend: Backend) -> None:
    stance, compile_, (model, x) = eval_frame._stance, torch.compile, parts()
    first, second = Ledger(model), Ledger(model)
    first.__enter__()
    second.__enter__()
    compiled = torch.compile(model, backend=backend)
    compiled(x)
    first.__exit__(None, None, None)
    compiled(x)
    second.__exit__(None, None, None)
    assert backend.compiled == 0
    assert NOTE in repr(first)
    assert (eval_frame._stance, torch.compile) == (stance, compile_)
    compiled(x)
    assert backend.compiled == 1


def test_a_ledger_alone_imports_no_compiler_and_finds_one_that_is_imported_later() -> None:
    code = """
import sys, torch
from gradlab import Ledger
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
    def forward(self, x):
        return self.layer(x).tanh()
model = Model()
with Ledger(model) as ledger:
    model(torch.ones(1, 2)).sum().backward()
    assert "torch._dynamo" not in sys.modules
    compiled = []
    model.compile(backend=lambda graph, _: compiled.append(1) or graph.forward)
    model(torch.ones(1, 2))
    assert compiled == [] and "eagerly" in repr(ledger)
model(torch.ones(1, 2))
assert compiled == [1]
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)


def test_a_ledger_within_compiled_code_leaves_it_alone(backend: Backend) -> None:
    stance, (model, x) = eval_frame._stance, parts()

    def inside(x: Tensor) -> Tensor:
        with Ledger(model):
            return model(x * 2).sum()

    assert torch.equal(torch.compile(inside, backend=backend)(x), inside(x))
    assert eval_frame._stance is stance
