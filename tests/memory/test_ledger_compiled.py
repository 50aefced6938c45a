"""A compiled model within a Ledger is refused in one sentence, and runs on as it did when the Ledger has gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab import Ledger


class Backend:
    """Counts what is compiled."""

    def __init__(self) -> None:
        self.compiled = 0

    def __call__(self, graph: torch.fx.GraphModule, _: Any) -> Callable[..., Any]:
        self.compiled += 1
        return graph.forward


@pytest.fixture
def backend() -> Iterator[Backend]:
    from torch import _dynamo  # takes a second to import, which each worker would spend

    _dynamo.reset()
    yield Backend()
    _dynamo.reset()


class Small(nn.Module):
    """A class of its own: PyTorch does not compile a Sequential by its method."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 32), nn.Linear(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).tanh())


def by_module(model: Small, backend: Backend) -> nn.Module:
    return torch.compile(model, backend=backend)


def by_method(model: Small, backend: Backend) -> nn.Module:
    model.compile(backend=backend)
    return model


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Using `torch.compile")  # where there are hooks on all modules
@pytest.mark.parametrize("called_before", [False, True])
@pytest.mark.parametrize("make", [by_module, by_method])
def test_a_compiled_model_is_refused(make: Callable[..., nn.Module], called_before: bool, backend: Backend) -> None:
    model, x = Small(), torch.randn(16, 8)
    expected = model(x)
    compiled = make(model, backend)
    if called_before:
        compiled(x)
    refused = "^Ledger: Small is compiled, .* without torch.compile"
    with pytest.raises(RuntimeError, match=refused):
        Ledger(compiled)
    with pytest.raises(RuntimeError, match=refused), Ledger(nn.Linear(2, 2)):  # a model that it does not know
        compiled(x)
    before = backend.compiled
    assert torch.equal(compiled(x), expected)
    assert backend.compiled == (before if called_before else before + 1)
