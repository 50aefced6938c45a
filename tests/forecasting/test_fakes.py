"""Fake tensors: what they say of an operation is what the operation does; and the copy of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab.forecasting.fake_mode import FakeTensors

F = nn.functional
WIDE, NARROW = torch.float32, torch.bfloat16


def in_place(function: Callable[..., Any], tensors: list[Tensor], *others: Any) -> Tensor:
    """The first of the tensors after the function has changed them all."""
    function(tensors, *others)
    return tensors[0]


# Every operation that has a short way or a correction, each with plain, transposed and broadcast arguments.
OPERATIONS: dict[str, Callable[..., Any]] = {
    "add_": lambda a, b: a.add_(b),
    "mul_": lambda a, b: a.mul_(b),
    "mul_ scalar": lambda a, b: a.mul_(0.5),
    "lerp_": lambda a, b: a.lerp_(b, 0.1),
    "addcmul_": lambda a, b: a.addcmul_(a, b),
    "addcdiv_": lambda a, b: a.addcdiv_(a, b, value=2),
    "zero_": lambda a, b: a.zero_(),
    "views": lambda a, b: (a.t(), a.view(-1), a.transpose(0, 1), a[1:3], a[:, None].expand(4, 2, 6), a.detach()),
    "mm": lambda a, b: (a.mm(b.t()), a.t() @ b),
    "linear": lambda a, b: (F.linear(a, b, b[:, 0]), F.linear(a, b)),
    "sums": lambda a, b: (a + b, a + 1, a + 1.0, a + b[0], a.t() + b.t(), a + b.double()),
    "products": lambda a, b: (a * b, a * 2, a * b.t()[:, :1].t(), a / b, a / 3, -a, a.t() * b.t(), a.to(NARROW) * b),
    "powers": lambda a, b: (a.sqrt(), a.rsqrt(), a**2, a.t() ** 0.5),
    "reductions": lambda a, b: (a.mean(1), a.mean(-1, keepdim=True), a.sum(0), a.sum((0, 1)), a.to(NARROW).sum(1)),
    "units": lambda a, b: (F.silu(a), F.gelu(a), F.gelu(a.t(), approximate="tanh")),
    "types": lambda a, b: (a.to(NARROW), a.t().to(torch.float64), a.long(), a.to(NARROW).float()),
    "whole numbers": lambda a, b: (
        a.long() + 1,
        a.long() + 1.0,
        a.long() + True,
        a.long() * 1.0,
        a.long() / 2,
        a.long().sum(0),
        (a > b) + a,
    ),
    "foreach": lambda a, b: [*torch._foreach_sqrt([a, b.t()]), in_place(torch._foreach_add_, [a], 1.0)],
    "foreach with numbers": lambda a, b: [in_place(torch._foreach_mul_, [a], 2.0), in_place(torch._foreach_zero_, [b])],
    "foreach with lists": lambda a, b: [
        in_place(torch._foreach_lerp_, [a], [b], 0.1),
        in_place(torch._foreach_addcmul_, [a], [b], [b]),
        in_place(torch._foreach_addcdiv_, [a], [b], [b], [0.5]),
        in_place(torch._foreach_div_, [a], [2.0]),
    ],
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
    fakes = FakeTensors()
    with fakes:
        once, again = (layout(operation(torch.rand(4, 6), torch.rand(4, 6))) for _ in range(2))
    assert once == real
    assert again == real  # from memory


@pytest.mark.parametrize("layer", ["batch", "group", "layer"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_gradients_of_norms_are_of_the_right_type(layer: str, dtype: torch.dtype) -> None:
    def run() -> list[Any]:
        norm = {"batch": nn.BatchNorm2d(4), "group": nn.GroupNorm(2, 4), "layer": nn.LayerNorm([3, 3])}[layer]
        x = torch.rand(2, 4, 3, 3, dtype=dtype, requires_grad=True)
        seen: list[Any] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(layout(t.detach())) or t, lambda t: t):
            output = norm(x)
        output.sum().backward()
        return [layout(output.detach()), seen, *(layout(t.grad) for t in (x, *norm.parameters()))]

    real = run()
    with FakeTensors():
        assert run() == real


def test_a_wrong_shape_is_an_error_as_it_is_with_memory() -> None:
    with FakeTensors():
        for wrong in (lambda: torch.rand(2, 3) @ torch.rand(4, 5), lambda: torch.rand(3) + torch.rand(4)):
            with pytest.raises(RuntimeError):
                wrong()
        with pytest.raises(RuntimeError):
            torch.rand(3).add_(torch.rand(4))


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
