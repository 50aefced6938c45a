"""The exercises of notebook 09."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ...memory import Ledger
from .checking import Case, Definition

OUT = 64  # units of the layer that the bytes are counted on
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
}


def bytes_after_step_case(rng: random.Random) -> Case:
    parameters = OUT * rng.randrange(40, 200)
    return Case(parameters, text=f"{parameters:,} parameters")


def bytes_after_step_reference(parameters: int) -> dict[str, int]:
    """Let each optimizer step once, and add up the bytes of all tensors that there are then."""
    return {name: bytes_after(make, nn.Linear(parameters // OUT - 1, OUT)) for name, make in OPTIMIZERS.items()}


def bytes_after(make: Callable[..., torch.optim.Optimizer], model: nn.Module) -> int:
    optimizer = make(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    tensors = [part for state in optimizer.state.values() for part in state.values() if isinstance(part, Tensor)]
    tensors += [part for parameter in model.parameters() for part in (parameter, parameter.grad) if part is not None]
    return sum(part.nbytes for part in tensors)


def bytes_after_step_observe(answer: Callable[[int, str], object], parameters: int) -> dict[str, object]:
    return {name: answer(parameters, name) for name in OPTIMIZERS}


def numbers(sgd: int, momentum: int, adamw: int, size: int = 4) -> Callable[[int, str], int]:
    """Make an answer that counts this many numbers a parameter, of ``size`` bytes each."""
    counts = {"sgd": sgd, "momentum": momentum, "adamw": adamw}
    return lambda parameters, optimizer: parameters * counts[optimizer] * size


bytes_after_step = Definition(
    case=bytes_after_step_case,
    reference=bytes_after_step_reference,
    observe=bytes_after_step_observe,
    mistakes={
        "numbers": numbers(2, 3, 4, size=1),
        "no-gradients": numbers(1, 2, 3),
        "no-state": numbers(2, 2, 2),
        "one-average": numbers(2, 3, 3),
    },
    rounds=4,
    relative=0.01,  # AdamW also counts its steps, a number for each tensor
    axes=("", "bytes after the step"),
)


def evaluate_case(rng: random.Random) -> Case:
    rows, model = rng.randrange(20, 40), nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10))
    batches = [(torch.randn(rows, 16), torch.randint(10, (rows,))) for _ in range(rng.randrange(8, 14))]
    return Case(model, batches, text=f"{len(batches)} batches of {rows} rows")


def evaluate_reference(model: nn.Module, batches: Any) -> dict[str, object]:
    """Take all rows at once: the batches are of equal size."""
    x, y = (torch.cat(parts) for parts in zip(*batches, strict=True))
    return {"mean loss": cross_entropy(model(x), y).item(), "kept for backward": "nothing"}


def evaluate_observe(answer: Callable[..., object], model: nn.Module, batches: Any) -> dict[str, object]:
    """Run it on two batches and on all, and say in words what it keeps."""
    (_, few), (mean, most) = (kept(answer, model, some) for some in (batches[:2], batches))
    words = "nothing" if most == 0 else "one batch at a time" if most < 1.5 * few else "every batch"
    words += ", in eval mode" * (most > 0 and not model.training)
    words += ", but gradients stay off" * (not torch.is_grad_enabled())
    words += ", but there are gradients now" * any(p.grad is not None for p in model.parameters())
    torch.set_grad_enabled(True)
    if isinstance(mean, Tensor) and mean.numel() == 1:
        mean = mean.item()
    return {"mean loss": mean, "kept for backward": words}


def kept(answer: Callable[..., object], model: nn.Module, batches: Any) -> tuple[object, int]:
    """Return what an evaluation returns, and the most bytes that it keeps for backward()."""
    with Ledger(model, (), batches) as ledger:
        mean = answer(model, batches)
    return mean, max((point.high["activations"] for point in ledger.timeline), default=0)


def growing(model: nn.Module, batches: Any, item: bool = False) -> Any:
    total: Any = 0
    for x, y in batches:
        loss = cross_entropy(model(x), y)
        total = total + (loss.item() if item else loss)
    return total / len(batches)


evaluate = Definition(
    case=evaluate_case,
    reference=evaluate_reference,
    observe=evaluate_observe,
    mistakes={
        "grows": growing,
        "one-batch": lambda model, batches: growing(model, batches, item=True),
        "eval-mode": lambda model, batches: growing(model.eval(), batches),
    },
    plot_values=lambda value: None,
    rounds=2,
)


@cache  # the typical mistakes measure again
def peak(width: int, layers: int, rows: int) -> int:
    """Measure the peak of an update in bytes."""
    parts = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())]
    model, x = nn.Sequential(*parts), torch.ones(rows, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with Ledger(model, [optimizer], x) as ledger:
        model(x).square().mean().backward()
        optimizer.step()
    return ledger.peak


class PeakOf:
    """What an answer measures with, three times."""

    __name__ = "peak_of"

    def __init__(self, width: int, layers: int) -> None:
        self.net, self.calls = (width, layers), 0

    def __call__(self, rows: int) -> int:
        """Measure the peak in bytes."""
        self.calls += 1
        if self.calls > 3:
            raise RuntimeError("peak_of is called a fourth time; three are allowed, and two are enough")
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= 4096:
            raise ValueError(f"peak_of wants a whole number of rows, 1 to 4,096, not {rows!r}")
        return peak(*self.net, rows)


def largest_batch_case(rng: random.Random) -> Case:
    """Return a random net, and a budget that is made from the answer."""
    width, layers, rows = rng.randrange(24, 48), rng.randrange(4, 7) - 1, rng.randrange(250, 400)
    fits, too_much = peak(width, layers, rows), peak(width, layers, rows + 1)
    budget = fits + rng.randrange(too_much - fits)
    return Case(PeakOf(width, layers), budget, text=f"a budget of {budget:,} bytes", expect=rows)


def by_line(peak_of: PeakOf, budget: int, few: int, many: int) -> int:
    """Find the rows by a straight line through two measurements."""
    low, high = peak_of(few), peak_of(many)
    return few + int((budget - low) // ((high - low) / (many - few)))


def no_constant(peak_of: PeakOf, budget: int) -> int:
    return int(budget // ((peak_of(200) - peak_of(150)) / 50))


largest_batch = Definition(
    case=largest_batch_case,
    mistakes={
        "no-constant": no_constant,
        "too-few-rows": lambda peak_of, budget: by_line(peak_of, budget, 1, 2),
        "one-too-many": lambda peak_of, budget: by_line(peak_of, budget, 150, 200) + 1,
    },
    rounds=3,
)
