"""What the experiments of notebook 12 share: a small network and its data, and instruments that count."""

from __future__ import annotations

import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint_sequential

from .. import _torch
from ..memory import Ledger
from ..tasks import Task

Make = Callable[..., torch.optim.Optimizer]
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


def losses_of(
    loss: Callable[[], Tensor], optimizer: torch.optim.Optimizer, updates: int, zero_grad: bool = True
) -> list[float]:
    """Make updates with the gradient of ``loss()``, with or without clearing, and return the loss before each."""
    losses = []
    for _ in range(updates):
        if zero_grad:
            optimizer.zero_grad()
        now = loss()
        now.backward()
        optimizer.step()
        losses.append(now.item())
    return losses


def two_weights(
    make: Make, set_to_none: bool = True, pause: bool = False, clear: bool = True, **options: Any
) -> list[float]:
    """Return two weights after nine updates that pull them to 0; the options are those of the optimizer.

    pause: whether the three updates in the middle do not use the second weight.
    clear: whether ``zero_grad(set_to_none)`` is called before each update.
    """
    weights = [nn.Parameter(torch.full((1,), value)) for value in (1.0, 2.0)]
    optimizer = make(weights, lr=0.1, **options)
    for update in range(9):
        if clear:
            optimizer.zero_grad(set_to_none=set_to_none)
        used = weights[:1] if pause and update in (3, 4, 5) else weights
        torch.stack([w.square().sum() for w in used]).sum().backward()
        optimizer.step()
    return [w.item() for w in weights]


def peak_ledger(
    model: nn.Sequential,
    x: Tensor,
    make: Make = torch.optim.SGD,
    window: int = 1,
    set_to_none: bool = True,
    cut: int = 0,
) -> Ledger:
    """Return the bytes of the second of two updates, counted; the loss is the mean square of the output.

    window: into how many micro-batches ``x`` is cut.
    cut: segments of which only the first input is kept for backward; 0 for no checkpointing.
    """
    optimizer = make(model.parameters(), lr=0.001)
    for _ in range(2):
        with Ledger(model=model, optimizers=[optimizer], inputs=[x]) as ledger:
            optimizer.zero_grad(set_to_none=set_to_none)
            for part in x.chunk(window):
                y = checkpoint_sequential(model, cut, part, use_reentrant=False) if cut else model(part)
                (y.square().mean() / window).backward()
            optimizer.step()
    return ledger


def peak_bytes(model: nn.Sequential, x: Tensor, make: Make = torch.optim.SGD, window: int = 1, **options: Any) -> int:
    """Return the most bytes alive in the second of two updates; the options are those of ``peak_ledger``."""
    return peak_ledger(model, x, make, window, **options).peak


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


@dataclass(frozen=True)
class ClearingRace:
    """The same training twice: cleared to None, and filled with zeros."""

    same_weights: bool
    """Whether both end with the same weights, to the last bit."""
    seconds: tuple[float, float]
    """Of one update: with None, with zeros; the lower quartile, which little else on the machine disturbs."""
    operations: tuple[int, int]
    """Of one update: with None, with zeros."""
    kept: int
    """Bytes of ``.grad`` that stay where they are filled with zeros."""


def race_clearing(task: Task, updates: int = 200, lr: float = 0.05) -> ClearingRace:
    """Train a task both ways with SGD, taking turns, and compare."""
    device = task.device
    batches = [(x.to(device), y.to(device)) for x, y in task.batches]
    models = {way: task.build(seed=0) for way in (True, False)}
    optimizers = {way: torch.optim.SGD(model.parameters(), lr=lr) for way, model in models.items()}

    def update(way: bool, x: Tensor, y: Tensor) -> float:
        began = time.perf_counter()
        optimizers[way].zero_grad(set_to_none=way)
        task.loss_fn(models[way](x), y).backward()
        optimizers[way].step()
        next(models[way].parameters()).flatten()[0].item()  # waits for a GPU
        return time.perf_counter() - began

    took: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(updates):
        for way in (True, False) if turn % 2 else (False, True):
            took[way].append(update(way, *batches[turn % len(batches)]))
    counts = {}
    for way in models:
        with OperationLog() as log:
            update(way, *batches[0])
        counts[way] = len(log.seen)
    quartile = {way: sorted(times)[len(times) // 4] for way, times in took.items()}
    kept = sum(p.grad.nbytes for p in models[False].parameters() if p.grad is not None)
    same = torch.equal(flat_weights(models[True]), flat_weights(models[False]))
    return ClearingRace(same, (quartile[True], quartile[False]), (counts[True], counts[False]), kept)
