"""The exercises of notebook 09."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..ledger import Ledger
from .base import Exercise, Mistake

_HOME = "09_gpu_memory"
_OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
}
_OUT = 64  # units of the layer that the bytes are counted on


def _numbers(sgd: int = 2, momentum: int = 3, adamw: int = 4, size: float = 4) -> Callable[[int, str], float]:
    """Return an answer that counts so many numbers a parameter, of so many bytes each."""
    kept = {"sgd": sgd, "momentum": momentum, "adamw": adamw}
    return lambda parameters, optimizer: parameters * kept[optimizer] * size


class BytesAfterStep(Exercise):
    """What is alive once an update is over."""

    name = "bytes_after_step"
    notebook = _HOME
    title = "After the step"
    level, minutes = "easy", 5
    spec = (
        "Write `bytes_after_step(parameters, optimizer)`: the bytes of weights, gradients and optimizer state just "
        'after `step()`, all in float32, for a model with so many parameters; `optimizer` is `"sgd"`, `"momentum"` '
        'or `"adamw"`.'
    )
    stub = """
def bytes_after_step(parameters, optimizer):
    return None  # your answer
"""
    hints = (
        "How many numbers does each keep for one weight? Do not forget the weight itself, nor its gradient.",
        "SGD keeps nothing of its own, momentum one number a weight, AdamW two.",
        "A float32 takes 4 bytes, so it is 4 times the parameters times 2, 3 or 4.",
    )
    mistakes = (
        Mistake("numbers", "That is how many numbers there are. A float32 takes 4 bytes.", _numbers(size=1)),
        Mistake("two-bytes", "Float32 takes 4 bytes a number, not 2.", _numbers(size=2)),
        Mistake("bits", "4 bytes are 32 bits; bytes are wanted.", _numbers(size=32)),
        Mistake("no-gradients", "The gradients are missing: after `step()` they are still there.", _numbers(1, 2, 3)),
        Mistake("no-state", "The optimizer's state is missing.", _numbers(2, 2, 2)),
        Mistake("one-average", "AdamW keeps two numbers a weight.", _numbers(adamw=3)),
        Mistake("two-buffers", "Momentum keeps one number a weight.", _numbers(momentum=4)),
        Mistake("sgd-keeps", "Plain SGD keeps nothing.", _numbers(sgd=3)),
    )
    rounds = 4
    relative = 0.01  # AdamW also counts its steps, a number for each tensor
    axes = ("", "bytes after the step")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a number of parameters."""
        return (_OUT * dice.randrange(40, 200),)

    def right(self, parameters: int) -> Any:
        """Let each optimizer step once, and add up the bytes of all tensors that there are then."""
        return {name: _alive(nn.Linear(parameters // _OUT - 1, _OUT), make) for name, make in _OPTIMIZERS.items()}

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Ask for all three optimizers."""
        return {name: answer(*arguments, name) for name in _OPTIMIZERS}

    def told(self, *arguments: Any) -> str:
        """Say how many."""
        return f"{arguments[0]:,} parameters"


def _alive(model: nn.Module, make: Callable[[Any], torch.optim.Optimizer]) -> int:
    optimizer = make(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    kept = [part for state in optimizer.state.values() for part in state.values() if isinstance(part, Tensor)]
    both = [part for parameter in model.parameters() for part in (parameter, parameter.grad) if part is not None]
    return sum(part.nbytes for part in (*both, *kept))


def _evaluation(add: Callable[[Any, Tensor], Any], *, graph: bool = False, mean: bool = True) -> Callable[..., Any]:
    """Return an evaluation that adds up in this way, with or without a graph for backward()."""

    def evaluate(model: nn.Module, batches: Any) -> Any:
        total: Any = 0
        with torch.set_grad_enabled(graph):
            for x, y in batches:
                total = add(total, cross_entropy(model(x), y))
        return total / len(batches) if mean else total

    return evaluate


def _in_eval_mode(model: nn.Module, batches: Any) -> Any:
    model.eval()
    return _evaluation(lambda total, loss: total + loss, graph=True)(model, batches)


def _switched_off(model: nn.Module, batches: Any) -> Any:
    said = _evaluation(lambda total, loss: total + loss)(model, batches)
    torch.set_grad_enabled(False)
    return said


class Evaluate(Exercise):
    """An evaluation that saves activations for nobody."""

    name = "evaluate"
    notebook = _HOME
    title = "The evaluation that grows"
    level, minutes = "medium", 8
    spec = (
        "`evaluate` returns the mean loss over batches of equal size, and the more batches, the more memory it takes: "
        "mend it so that it keeps nothing for a `backward()` that never comes."
    )
    stub = """
def evaluate(model, batches):
    total = 0
    for x, y in batches:
        total = total + cross_entropy(model(x), y)
    return total / len(batches)
"""
    hints = (
        "What does `total` remember, besides a number?",
        "Two things are wanted: no growth from batch to batch, and nothing saved within a batch. One context manager "
        "does both.",
        "`with torch.no_grad():` around the loop.",
    )
    mistakes = (
        Mistake(
            "grows",
            "Every batch still leaves its activations behind: `total` holds a graph, and the graph holds them.",
            _evaluation(lambda total, loss: total + loss, graph=True),
        ),
        Mistake(
            "one-batch",
            "It grows no more. But each forward pass still saves its activations: for whom?",
            _evaluation(lambda total, loss: total + loss.item(), graph=True),
        ),
        Mistake(
            "eval-mode",
            "`eval()` tells dropout and BatchNorm what to do. It does not change what is saved.",
            _in_eval_mode,
        ),
        Mistake(
            "stays-off",
            "It saves nothing, but gradients stay off afterwards: the next training will fail.",
            _switched_off,
        ),
        Mistake("sum", "That is the sum, not the mean.", _evaluation(lambda total, loss: total + loss, mean=False)),
        Mistake("last", "That is the last batch's loss alone.", _evaluation(lambda total, loss: loss, mean=False)),
        Mistake(
            "last-share",
            "That is the last batch's share: `total` must add up.",
            _evaluation(lambda total, loss: loss),
        ),
    )
    rounds = 2
    seconds = 10.0  # it is run under a ledger, which is slow where many run at once

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a small classifier and a dozen or so batches."""
        rows, model = dice.randrange(20, 40), nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10))
        many = dice.randrange(8, 14)
        return model, [(torch.randn(rows, 16), torch.randint(10, (rows,))) for _ in range(many)]

    def right(self, model: nn.Module, batches: Any) -> Any:
        """Take all rows at once: the batches are of equal size."""
        x, y = (torch.cat(parts) for parts in zip(*batches, strict=True))
        return {"mean loss": cross_entropy(model(x), y).item(), "kept for backward": "nothing"}

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Run it under a ledger, on two batches and on all, and say in words what it keeps."""
        model, batches = arguments
        (_, few), (said, most) = (_kept(answer, model, some) for some in (batches[:2], batches))
        words = "nothing" if most == 0 else "one batch at a time" if most < 1.5 * few else "every batch"
        words += ", in eval mode" * (most > 0 and not model.training)
        words += ", but gradients stay off" * (not torch.is_grad_enabled())
        words += ", but there are gradients now" * any(p.grad is not None for p in model.parameters())
        torch.set_grad_enabled(True)
        mean = said.item() if isinstance(said, Tensor) and said.numel() == 1 else said
        return {"mean loss": mean, "kept for backward": words}

    def told(self, *arguments: Any) -> str:
        """Say how many."""
        return f"{len(arguments[1])} batches of {len(arguments[1][0][0])} rows"

    def drawn(self, value: Any) -> Any:
        """Draw nothing: one of the two is a text."""
        return


def _kept(answer: Any, model: nn.Module, batches: Any) -> tuple[Any, int]:
    """Return what an evaluation says, and the most bytes that it keeps for backward()."""
    with Ledger(model, (), batches) as ledger:
        said = answer(model, batches)
    return said, max((point.high["activations"] for point in ledger.timeline), default=0)


class _Meter:
    """Measures the peak of an update with so many rows; it may be asked three times, and remembers for what."""

    __name__ = "peak_of"

    def __init__(self, widths: list[int], peaks: dict[Any, int], asked: list[int]) -> None:
        """Keep what was measured in ``peaks``, and the rows that the learner asks for in ``asked``."""
        self.widths, self.peaks, self.asked, self.calls = tuple(widths), peaks, asked, 0

    def __call__(self, rows: int) -> int:
        """Return the peak in bytes, three times."""
        self.calls += 1
        if self.calls > 3:
            raise RuntimeError("peak_of is called a fourth time; three are allowed, and two are enough")
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= 4096:
            raise ValueError(f"peak_of wants a whole number of rows, 1 to 4,096, not {rows!r}")
        self.asked.append(rows)
        return self.at(rows)

    def at(self, rows: int) -> int:
        """Return the peak in bytes, without counting the call."""
        if (self.widths, rows) not in self.peaks:
            parts = [part for a, b in pairwise(self.widths) for part in (nn.Linear(a, b), nn.ReLU())]
            model, x = nn.Sequential(*parts), torch.ones(rows, self.widths[0])
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            with Ledger(model, [optimizer], x) as ledger:
                model(x).square().mean().backward()
                optimizer.step()
            self.peaks[self.widths, rows] = ledger.peak
        return self.peaks[self.widths, rows]

    def line(self, few: int, many: int) -> tuple[float, float]:
        """Return the straight line through two measurements: bytes at 0 rows, bytes a row."""
        slope = (self.at(many) - self.at(few)) / (many - few)
        return self.at(few) - slope * few, slope


def _through(meter: _Meter, budget: int) -> int:
    """Use the rows that the learner measured, wherever they are."""
    few, many = [*sorted(set(meter.asked)), 1, 2][:2] if len(set(meter.asked)) > 1 else (1, 2)
    constant, slope = meter.line(few, many)
    return int((budget - constant) // slope) if slope else 0


def _share(meter: _Meter, budget: int) -> int:
    rows = meter.asked[0] if meter.asked else 200
    return int(budget // (meter.at(rows) / rows))


def _sound(meter: _Meter, budget: int) -> float:
    constant, slope = meter.line(150, 200)
    return (budget - constant) / slope


class LargestBatch(Exercise):
    """A line through two measurements, if both are on it."""

    name = "largest_batch"
    notebook = _HOME
    title = "The largest batch"
    level, minutes = "harder", 15
    spec = (
        "Write `largest_batch(peak_of, budget)`: the largest batch, a whole number of rows, with which an update of "
        "some model stays within `budget` bytes; `peak_of(rows)` measures the peak of an update with so many rows, and "
        "may be called three times."
    )
    stub = """
def largest_batch(peak_of, budget):
    return None  # your answer
"""
    hints = (
        "On the mountain each row adds the same number of bytes. So the peak is a straight line: a part that does not "
        "grow, and a part for each row.",
        "Two points give a line, if both are on it. With very few rows the peak stands elsewhere: at the end of "
        "`backward()`, where the gradients are. Which numbers of rows are safe?",
        "Measure 150 and 200 rows. Bytes a row: the difference, divided by 50. Then see how many more rows fit into "
        "what is left of the budget, rounded down.",
    )
    mistakes = (
        Mistake("share", "Bytes divided by rows: part of the peak does not grow with the rows.", _share),
        Mistake(
            "no-constant",
            "Only what each row adds is in it: weights and gradients take their part of the budget first.",
            lambda meter, budget: int(budget // meter.line(150, 200)[1]),
        ),
        Mistake(
            "too-few-rows", "With so few rows the peak is not on the mountain yet: measure larger batches.", _through
        ),
        Mistake("one-too-many", "One row too many: round down.", lambda meter, budget: int(_sound(meter, budget)) + 1),
        Mistake("not-whole", "A part of a row is none: round down to a whole number.", _sound),
    )
    rounds = 3
    seconds = 20.0  # a measurement takes its time where many run at once

    def __init__(self) -> None:
        """Keep measurements, so that trying typical mistakes does not repeat them."""
        self._peaks: dict[Any, int] = {}
        self._asked: dict[Any, list[int]] = {}

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a meter for a random net, and a budget that is made from the answer."""
        widths = [dice.randrange(24, 48)] * dice.randrange(4, 7)
        self._right = dice.randrange(250, 400)
        meter = _Meter(widths, self._peaks, self._asked.setdefault((*widths, self._right), []))
        at, more = (meter.at(self._right + one) for one in (0, 1))
        return meter, at + dice.randrange(more - at)

    def right(self, peak_of: Any, budget: int) -> Any:
        """Return the batch that the budget was made from."""
        return self._right

    def told(self, *arguments: Any) -> str:
        """Say how much there is."""
        return f"a budget of {arguments[1]:,} bytes"


EXERCISES = (BytesAfterStep, Evaluate, LargestBatch)
