"""What the experiments of notebook 12 share: a small network and its data, and instruments that count."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from .. import _torch

# Operations that change their first tensor without reading it.
_OVERWRITES = ("zero_", "fill_", "copy_", "_foreach_zero_")


def _usual_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def small_net(device: str = "") -> nn.Sequential:
    """Return the same network each time: 4 inputs, 8 hidden units, 1 output; the random numbers go on as they were.

    Without a device it goes to the GPU if there is one, as ``small_batch`` does.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device or _usual_device())


def small_batch(device: str = "") -> tuple[Tensor, Tensor]:
    """Return the same 12 samples each time: inputs (12, 4) and targets (12, 1)."""
    generator = torch.Generator().manual_seed(1)
    inputs, targets = torch.randn(12, 4, generator=generator), torch.randn(12, 1, generator=generator)
    place = device or _usual_device()
    return inputs.to(place), targets.to(place)


def linear_stack(width: int, depth: int, device: str = "cpu") -> nn.Sequential:
    """Return ``depth`` square layers of this width, with a ReLU behind each."""
    layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)]
    return nn.Sequential(*layers).to(device)


def flat_weights(model: nn.Module) -> Tensor:
    """Return all weights in one row, as a copy."""
    return nn.utils.parameters_to_vector(model.parameters()).detach().clone()


def flat_grads(model: nn.Module) -> Tensor:
    """Return ``.grad`` of all weights in one row, as a copy."""
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def batch_grads(model: nn.Module, x: Tensor, y: Tensor, reduction: str = "mean") -> Tensor:
    """Return the gradient of the squared error of this batch alone, in one row; ``.grad`` stays as it is."""
    loss = nn.functional.mse_loss(model(x), y, reduction=reduction)
    return nn.utils.parameters_to_vector(torch.autograd.grad(loss, list(model.parameters())))


def grad_of(tensor: Tensor) -> Tensor | None:
    """Return ``.grad``, without the warning that PyTorch gives for a tensor that is no leaf."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The .grad attribute")
        return tensor.grad


def fails(call: Callable[..., object], *args: Any) -> bool:
    """Return whether a call raises an error."""
    try:
        call(*args)
    except (AttributeError, RuntimeError, TypeError):
        return True
    return False


class OperationLog(_torch.TorchDispatchMode):
    """Notes every operation within: its name, its devices, its bytes, and the storages that it makes.

    Views compute nothing and do not count. Bytes are shapes times element size, each operand once, caches left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        """``"add_"``, ``"mm"``, in the order in which they ran."""
        self.seen: list[set[str]] = []
        """On which devices the tensors of each operation were."""
        self.read = self.written = 0
        """Bytes."""
        self.made = self.freed = 0
        """Storages that operations made, and those of them that were freed again within."""
        self._alive: dict[int, weakref.ref[Any]] = {}

    @property
    def moved(self) -> int:
        """Bytes read and written together."""
        return self.read + self.written

    @property
    def transfers(self) -> int:
        """How many operations had tensors on more than one device."""
        return sum(len(devices) > 1 for devices in self.seen)

    def __exit__(self, *error: Any) -> None:
        self._alive.clear()  # what dies from now on does not count
        super().__exit__(*error)

    def __torch_dispatch__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = call(*args, **(kwargs or {}))
        if call.namespace == "aten" and not call.is_view:
            name = call.overloadpacket.__name__
            given = dict(zip((each.name for each in call._schema.arguments), args, strict=False)) | (kwargs or {})
            changes = [each.name for each in call._schema.arguments if each.alias_info and each.alias_info.is_write]
            changed = list(_tensors([given[each] for each in changes if each in given]))
            kept = list(_tensors([value for each, value in given.items() if each not in changes]))
            self.names.append(name)
            self.seen.append({each.device.type for each in _tensors([given, result])})
            self.read += sum(each.nbytes for each in (kept if name in _OVERWRITES else kept + changed))
            if not name.startswith(("empty", "new_empty")):  # they reserve a place and write nothing
                self.written += sum(each.nbytes for each in changed or _tensors(result))
            for each in () if changed else _tensors(result):
                self._note(each)
        return result

    def _note(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata

        def died(_: object) -> None:
            if self._alive.pop(key, None) is not None:
                self.freed += 1

        if key not in self._alive:
            self.made += 1
            self._alive[key] = weakref.ref(storage, died)


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in a value, a list, a tuple or a dictionary of values."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tensors(each)


def is_deprecated(call: Callable[[], object]) -> bool:
    """Return whether a call is gone, or warns that it will be."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except AttributeError:
            return True
    return any(issubclass(each.category, (FutureWarning, DeprecationWarning)) for each in caught)
