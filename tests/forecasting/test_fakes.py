"""Fake tensors: results of operations have the real shapes and types; and the copy of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab.forecasting.fake_mode import FakeTensors

F = nn.functional
NARROW = torch.bfloat16


# The operations whose fakes are corrected.
OPERATIONS: dict[str, Callable[..., Any]] = {
    "losses": lambda a, b: (F.mse_loss(a, b), F.smooth_l1_loss(a, b), F.soft_margin_loss(a, b), F.l1_loss(a, b)),
    "summed losses": lambda a, b: (F.mse_loss(a, b, reduction="sum"), F.mse_loss(a, b, reduction="none")),
    "entropy": lambda a, b: F.binary_cross_entropy(a.sigmoid(), b.sigmoid()),
    "layer norm": lambda a, b: torch.ops.aten.native_layer_norm(a.to(NARROW), [6], b[0], b[1], 1e-5),
    "narrow layer norm": lambda a, b: torch.ops.aten.native_layer_norm(a.to(NARROW), [6], b[0].to(NARROW), None, 1e-5),
    "batch norm": lambda a, b: torch.ops.aten.native_batch_norm(
        a.to(NARROW), b[0], b[1], b[2].clone(), b[3].clone(), True, 0.1, 1e-5
    ),
}


def layout(result: Any) -> list[Any]:
    """Type, shape, layout in memory and size of memory of every tensor."""
    if isinstance(result, Tensor):
        memory = result.untyped_storage().nbytes()
        return [(result.dtype, tuple(result.shape), result.stride(), result.storage_offset(), memory)]
    return [entry for each in result for entry in layout(each)]


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_fake_operation_makes_what_the_real_one_makes(name: str) -> None:
    operation = OPERATIONS[name]
    real = layout(operation(torch.rand(4, 6), torch.rand(4, 6)))
    with FakeTensors():
        assert layout(operation(torch.rand(4, 6), torch.rand(4, 6))) == real


@pytest.mark.parametrize("layer", ["batch", "group", "layer"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_gradients_of_norms_are_of_the_right_type(layer: str, dtype: torch.dtype) -> None:
    def run() -> list[Any]:
        norm = {"batch": nn.BatchNorm2d(4), "group": nn.GroupNorm(2, 4), "layer": nn.LayerNorm([3, 3])}[layer]
        x = torch.rand(2, 4, 3, 3, dtype=dtype, requires_grad=True)
        dtypes: list[Any] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: dtypes.append(layout(t.detach())) or t, lambda t: t):
            output = norm(x)
        output.sum().backward()
        return [layout(output.detach()), dtypes, *(layout(t.grad) for t in (x, *norm.parameters()))]

    real = run()
    with FakeTensors():
        assert run() == real


def test_a_copied_model_shares_what_was_shared() -> None:
    """Tied weights, a view of a buffer, and a constant that is no buffer; what it leaves alone is in test_untouched."""
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8).requires_grad_(False)).double()
    model[1].weight = model[0].weight
    model.register_buffer("whole", torch.rand(16, 8))
    model.register_buffer("part", model.whole[4:6])
    model.constant = torch.rand(1000)
    model[0].weight.grad = torch.ones(8, 8).double()
    fakes = FakeTensors()
    twin = fakes.copy(model)
    assert twin[1].weight is twin[0].weight
    assert twin.part.untyped_storage()._cdata == twin.whole.untyped_storage()._cdata
    assert twin.whole.untyped_storage()._cdata != model.whole.untyped_storage()._cdata
    assert [(n, p.shape, p.dtype, p.requires_grad) for n, p in twin.named_parameters()] == [
        (n, p.shape, p.dtype, p.requires_grad) for n, p in model.named_parameters()
    ]
    assert {type(t).__name__ for t in (*twin.parameters(), *twin.buffers(), twin.constant)} == {"FakeTensor"}
    assert isinstance(twin[0].weight, nn.Parameter)
    assert twin[0].weight.grad is None
    with torch.device("meta"):
        large = nn.Linear(2**20, 2**20)
    assert fakes.copy(large).weight.device.type == "cpu"
