"""CUDA's rules against PyTorch's own code for CUDA on fake CUDA tensors, which need no GPU.

Without gradients a fake CUDA tensor passes through autocast's kernels for CUDA and through all code that chooses by the
device, on a build without CUDA, too, once a stub implements the device. So the operations that reach the dispatcher
below are those that a GPU would run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from gradlab.forecasting.cuda_rules import cuda_rules
from gradlab.forecasting.fake_mode import FakeTensors

F = nn.functional
AMP = {"off": None, "bf16": torch.bfloat16, "fp16": torch.float16}

CALLS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "linear": lambda a, b: F.linear(a, b, b[:, 0]),
    "matmul": lambda a, b: (a @ b.t(), a.mm(b.t()), torch.einsum("ij,kj->ik", a, b), a.mv(b[0])),
    "bmm": lambda a, b: (a[None].bmm(b.t()[None]), torch.baddbmm(a[None, :, :4], a[None], b.t()[None])),
    "addmm": lambda a, b: (torch.addmm(a[:, :4], a, b.t()), torch.addmv(a[:, 0], a, b[0])),
    "convolution": lambda a, b: (
        F.conv1d(a[None], b[:, :4, None]),
        F.conv2d(a[None, None], b[None, None, :3, :3]),
        F.conv_transpose2d(a[None, None], b[None, None, :2, :2]),
    ),
    "softmax": lambda a, b: (F.softmax(a, -1), F.log_softmax(a, -1), F.softmax(a, -1, dtype=torch.float64)),
    "softmax of a product": lambda a, b: F.softmax(a @ b.t(), -1) @ b,
    "cross entropy": lambda a, b: F.cross_entropy(a @ b.t(), a[:, 0].long()),
    "smoothed cross entropy": lambda a, b: F.cross_entropy(a @ b.t(), a[:, 0].long(), label_smoothing=0.1),
    "losses": lambda a, b: (F.mse_loss(a @ b.t(), b[:, :4]), F.l1_loss(a, b), F.smooth_l1_loss(a, b)),
    "other losses": lambda a, b: (
        F.kl_div(a, b, reduction="batchmean"),
        F.binary_cross_entropy_with_logits(a @ b.t(), b[:, :4]),
    ),
    "layer norm": lambda a, b: F.layer_norm(a @ b.t(), (4,), b[0, :4], b[1, :4]),
    "group norm": lambda a, b: F.group_norm((a @ b.t())[None], 2, b[:, 0], b[:, 1]),
    "batch norm": lambda a, b: F.batch_norm(a @ b.t(), b[0, :4].clone(), b[1, :4].clone(), training=True),
    "powers": lambda a, b: ((a @ b.t()) ** 2, (a @ b.t()).exp(), (a @ b.t()).rsqrt(), 2 ** (a @ b.t())),
    "norms": lambda a, b: ((a @ b.t()).norm(), (a @ b.t()).norm(dim=1), torch.linalg.vector_norm(a @ b.t())),
    "sums": lambda a, b: ((a @ b.t()).sum(), (a @ b.t()).sum(1), (a @ b.t()).mean(), (a @ b.t()).cumsum(0), a.prod()),
    "promotion": lambda a, b: (torch.addcmul(a, a @ b.t() @ b, b), torch.atan2(a, b), torch.dot(a[0], b[0])),
    "joining": lambda a, b: (torch.cat([a, b]), torch.stack([a @ b.t(), b[:, :4]]), torch.where(a > b, a, b)),
    "distance": lambda a, b: torch.cdist(a, b),
    "dropout": lambda a, b: (F.dropout(a @ b.t(), 0.1), F.dropout(a, 0.0), F.dropout(a, 0.5, training=False)),
    "rnn cell": lambda a, b: torch.rnn_tanh_cell(a, b, torch.cat([a, a[:2]]), torch.cat([a, a[:2]])),
}


@pytest.fixture(autouse=True)
def _device_guard() -> Iterator[None]:
    """Let the guard of the meta device, which does nothing, answer for CUDA where PyTorch was built without it."""
    if torch.version.cuda is not None:
        yield
        return
    kinds = torch._C._autograd.DeviceType
    library = ctypes.CDLL(str(next((Path(torch.__file__).parent / "lib").glob("libc10.*"))))
    guards = (ctypes.c_void_p * (int(kinds.Meta) + 1)).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    guards[int(kinds.CUDA)] = guards[int(kinds.Meta)]
    yield
    guards[int(kinds.CUDA)] = None


class Recorder(TorchDispatchMode):
    """The name of every operation, and the types that it is given and gives."""

    def __init__(self) -> None:
        super().__init__()
        self.recorded: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func not in (torch.ops.prim.device.default, torch.ops.aten.detach.default):
            self.recorded.append((str(func), kinds(args), kinds(result)))
        return result


def kinds(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.dtype, tuple(value.shape)
    return (
        [kinds(each) for each in value if isinstance(each, (Tensor, list, tuple))]
        if isinstance(value, (list, tuple))
        else None
    )


def on_cuda(call: Callable[[Tensor, Tensor], Any], dtype: torch.dtype | None) -> list[Any]:
    """The operations that reach the dispatcher of fake CUDA tensors, under CUDA's own autocast."""
    before = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    with FakeTensors(), torch.no_grad():
        a, b = torch.empty(4, 6, device="cuda"), torch.empty(4, 6, device="cuda")
        torch.set_autocast_enabled("cuda", dtype is not None)
        torch.set_autocast_dtype("cuda", dtype or torch.float16)
        try:
            with Recorder() as recorder:
                call(a, b)
        finally:
            torch.set_autocast_enabled("cuda", before[0])
            torch.set_autocast_dtype("cuda", before[1])
            torch.clear_autocast_cache()
    return in_order(recorder.recorded)


def in_order(recorded: list[Any]) -> list[Any]:
    """Sorted, since C++ casts the arguments of an operation in an order that depends on the compiler."""
    return sorted(recorded, key=str)


def by_our_rules(call: Callable[[Tensor, Tensor], Any], dtype: torch.dtype | None) -> list[Any]:
    with cuda_rules(), FakeTensors(cuda=True), torch.no_grad():
        a, b = torch.empty(4, 6), torch.empty(4, 6)
        autocast = nullcontext() if dtype is None else torch.autocast("cuda", dtype=dtype)
        with autocast, Recorder() as recorder:
            call(a, b)
    return in_order(recorder.recorded)


@pytest.mark.parametrize("amp", AMP)
@pytest.mark.parametrize("name", CALLS)
def test_an_operation_does_what_pytorch_does_with_it_on_cuda(name: str, amp: str) -> None:
    assert by_our_rules(CALLS[name], AMP[amp]) == on_cuda(CALLS[name], AMP[amp])
