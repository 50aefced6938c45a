"""Bytes and kernels of clearing and accumulating: the profile against a dispatch mode, and against sums by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from gradlab import tasks
from gradlab.course.grad_traffic import WAYS, bytes_moved, count_kernels, find_moves, traffic

WRITES_ONLY = ("zero_", "copy_", "fill_")  # these do not read what they write over


class Seen(TorchDispatchMode):
    """Counts (operation, bytes read, bytes written) of everything that writes into a tensor that exists."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[tuple[str, int, int]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._overloadpacket.__name__
        flat = [t for arg in args for t in (arg if isinstance(arg, list) else [arg]) if isinstance(t, Tensor)]
        if name.startswith("_foreach"):
            self.count.update((name.removeprefix("_foreach_"), 0, bytes_of(tensor)) for tensor in flat)
        elif name.endswith("_") and func._schema.is_mutable:
            read = sum(map(bytes_of, flat[1:] if name in WRITES_ONLY else flat))
            self.count[name, read, bytes_of(flat[0])] += 1
        return func(*args, **(kwargs or {}))


def bytes_of(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def seen(work: Callable[[], object]) -> Counter[tuple[str, int, int]]:
    with Seen() as mode:
        work()
    return mode.count


def by_dispatch(model: nn.Module, loss: Callable[[], Tensor], foreach: bool | None) -> dict[str, tuple[int, int, int]]:
    """(kernels, read, written) of each way: what backward does beyond the backward that hands over."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0, foreach=foreach)

    def backward(none: bool, keep: bool = False) -> Counter[tuple[str, int, int]]:
        optimizer.zero_grad(set_to_none=none)
        kept: list[Tensor] = []
        handles = [p.register_hook(kept.append) for p in model.parameters()] if keep else []
        value = loss()
        found = seen(value.backward)
        for handle in handles:
            handle.remove()
        return found

    plain = backward(none=True)
    extra = {
        "zero-fill": seen(lambda: optimizer.zero_grad(set_to_none=False)),
        "add": backward(none=False) - plain,
        "assign": backward(none=True, keep=True) - plain,
        "hand-over": Counter(),
    }
    optimizer.zero_grad()
    return {
        way: (sum(count.values()), *(sum(op[i] * n for op, n in count.items()) for i in (1, 2)))
        for way, count in extra.items()
    }


def perceptron(dtype: torch.dtype) -> tuple[nn.Module, Callable[[], Tensor]]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(dtype)
    x = torch.randn(5, 8, dtype=dtype)
    return model, lambda: model(x).square().mean()


def images() -> tuple[nn.Module, Callable[[], Tensor]]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten())
    x = torch.randn(3, 1, 8, 8)
    return model, lambda: model(x).square().mean()


@pytest.mark.parametrize("foreach", [None, False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_profile_dispatch_and_arithmetic_agree(dtype: torch.dtype, foreach: bool | None) -> None:
    model, loss = perceptron(dtype)
    size = {torch.float32: 4, torch.bfloat16: 2, torch.float64: 8}[dtype] * (8 * 16 + 16 + 16 * 4 + 4)
    found = traffic(model, loss, foreach=foreach)
    expected = by_dispatch(model, loss, foreach)
    for row in found:
        assert (row.kernels, row.read, row.written) == expected[row.way]
        assert row.moved == row.arithmetic
    assert {row.way: (row.read, row.written) for row in found} == {
        "zero-fill": (0, size),
        "add": (2 * size, size),
        "assign": (size, size),
        "hand-over": (0, 0),
    }
    assert [row.kernels for row in found] == [4, 4, 4, 0]


def test_convolution_with_batch_norm() -> None:
    model, loss = images()
    model.eval()  # no running average, which writes in place too
    found = traffic(model, loss)
    assert {row.way: (row.kernels, row.read, row.written) for row in found} == by_dispatch(model, loss, None)


def test_a_real_transformer_hands_over() -> None:
    task = tasks.text(device="cpu")
    model, (x, y) = task.build(), task.batches[0]
    found = traffic(model, lambda: task.loss_fn(model(x), y))
    size = sum(bytes_of(p) for p in model.parameters())
    assert [row.moved for row in found] == [size, 3 * size, 2 * size, 0]


class Sum(nn.Module):
    """Its gradient is one number, expanded: there is no buffer to hand over."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(3, 5))

    def forward(self) -> Tensor:
        return self.w.sum()


class Pair(nn.Module):
    """One gradient tensor for two parameters: the first must copy, the second may have it."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Parameter(torch.ones(7)), nn.Parameter(torch.ones(7))

    def forward(self) -> Tensor:
        return ((self.a + self.b) * torch.arange(7.0)).sum()


@pytest.mark.parametrize(("model", "copied", "size"), [(Sum(), 1, 60), (Pair(), 1, 28)])
def test_what_cannot_be_handed_over_is_copied(model: nn.Module, copied: int, size: int) -> None:
    row = traffic(model, model)["hand-over"]
    assert (row.copied, row.kernels, row.read, row.written, row.arithmetic) == (copied, copied, size, size, 0)
    # The oracle: is .grad the storage that reached the parameter?
    arrived: dict[nn.Parameter, int] = {}
    for p in model.parameters():
        p.register_hook(lambda grad, p=p: arrived.update({p: grad.untyped_storage().data_ptr()}))
    model().backward()
    handed = [p.grad.untyped_storage().data_ptr() == arrived[p] for p in model.parameters() if p.grad is not None]
    assert handed.count(False) == copied
    assert f"{copied} of {len(handed)} gradients" in repr(traffic(model, model))


def test_frozen_and_unused_parameters_do_not_count() -> None:
    model, loss = perceptron(torch.float32)
    model.unused = nn.Parameter(torch.ones(50))
    model[0].weight.requires_grad_(False)
    found = traffic(model, loss)
    assert found.gradients == 3
    assert found["zero-fill"].written == found["zero-fill"].arithmetic == 4 * (16 + 16 * 4 + 4)


def test_it_leaves_everything_as_it_was() -> None:
    model, loss = images()
    loss().backward()
    grads = {p: (p.grad, p.grad.clone()) for p in model.parameters() if p.grad is not None}
    state = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    traffic(model, loss)
    with pytest.raises(ValueError, match="loss must return"):
        traffic(model, lambda: torch.zeros(2))
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert all(p.grad is grad and torch.equal(grad, before) for p, (grad, before) in grads.items())
    assert not any(p._backward_hooks for p in model.parameters())


def test_ways_are_chosen_and_the_table_is_read() -> None:
    model, loss = perceptron(torch.float32)
    found = traffic(model, loss, ways=["hand-over", "add"])
    assert [row.way for row in found] == ["hand-over", "add"]
    lines = repr(found).splitlines()
    assert lines[0].split() == ["way", "kernels", "bytes", "read", "bytes", "written", "by", "arithmetic"]
    assert lines[2].split() == ["add", "4", "1,696", "848", "2,544"]
    assert "a CPU launches no kernels" in lines[-1]
    assert WAYS == ("zero-fill", "add", "assign", "hand-over")


class Table(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 2, sparse=True)

    def forward(self) -> Tensor:
        return self.words(torch.tensor([1, 3])).sum()


def halved() -> nn.Module:
    """Work goes on where the gradient is put into .grad: that is not accumulation."""

    def halve(parameter: Tensor) -> None:
        assert parameter.grad is not None
        parameter.grad.mul_(0.5)

    model = Sum()
    model.w.register_post_accumulate_grad_hook(halve)
    return model


@pytest.mark.parametrize(
    ("words", "make"),
    [
        (r"model must be an nn.Module, got 3", lambda: (3, Sum())),
        (r"loss must be a function", lambda: (Sum(), 3)),
        (r"loss must return a tensor with one value.*got 1.0", lambda: (Sum(), lambda: 1.0)),
        (r"loss must depend on the model", lambda: (Sum(), Sum())),
        (r"model must have a parameter", lambda: (nn.ReLU(), Sum())),
        (r"must be dense, got one of layout torch.sparse_coo", lambda: (model := Table(), model)),
        (r"backward ran aten::mul_.*take hooks off", lambda: (model := halved(), model)),
    ],
)
def test_bad_input_is_named(words: str, make: Callable[[], tuple[Any, Any]]) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        traffic(*make())


def test_bad_options_are_named() -> None:
    model = Sum()
    with pytest.raises(ValueError, match=r"ways must be a list out of 'zero-fill', .*got 'add'"):
        traffic(model, model, ways="add")
    with pytest.raises(ValueError, match=r"ways .*got \['steal'\]"):
        traffic(model, model, ways=["steal"])
    with pytest.raises(ValueError, match=r"foreach must be True, False or None, got 'yes'"):
        traffic(model, model, foreach="yes")  # type: ignore[arg-type]
    with pytest.raises(KeyError, match=r"'add'.*got 'steal'"):
        traffic(model, model, ways=["add"])["steal"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA GPU")
def test_kernels_on_a_gpu() -> None:
    model, _ = perceptron(torch.float32)
    model.cuda()
    x = torch.randn(5, 8, device="cuda")
    found = traffic(model, lambda: model(x).square().mean())
    assert [row.moved for row in found] == [row.arithmetic for row in found]
    assert found["add"].kernels == found["assign"].kernels == 4
    assert found["hand-over"].kernels == 0
    together = traffic(model, lambda: model(x).square().mean(), ways=["zero-fill"], foreach=True)["zero-fill"]
    assert 0 < together.kernels < 4
    assert together.written == together.arithmetic


def test_foreach_reaches_the_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = torch._foreach_zero_
    monkeypatch.setattr(torch, "_foreach_zero_", lambda grads: (calls.append(len(grads)), real(grads))[1])
    model, loss = perceptron(torch.float32)
    traffic(model, loss, foreach=False)
    assert calls == []
    traffic(model, loss, foreach=True)
    assert set(calls) == {4}


def test_many_tensors_in_one_kernel_count_all_of_grad() -> None:
    # What a GPU's profile shows: the operation on the list, its kernels, and nothing below it.
    event = SimpleNamespace(name="aten::_foreach_zero_", cpu_children=[], kernels=["fill"], input_shapes=[[]])
    assert find_moves(event) == [event]
    assert count_kernels(event) == 1
    assert bytes_moved(event, ["TensorList"], 4096) == (0, 4096)
