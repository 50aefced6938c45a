"""The exercises of notebook 05."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from typing import Any

import torch
from torch import nn

from .base import Exercise, Mistake

_HOME = "05_set_to_none"


def _norms(model: nn.Module) -> list[float]:
    return [p.grad.norm().item() for p in model.parameters() if p.grad is not None]


class GradientNorm(Exercise):
    """A norm over gradients of which some are None."""

    name = "gradient_norm"
    notebook = _HOME
    title = "A norm that does not trip"
    level, minutes = "easy", 5
    spec = (
        "Write `gradient_norm(model)`: the norm of all gradients taken together, as `clip_grad_norm_` computes it, for "
        "a model in which some `.grad`, or all of them, may be `None`."
    )
    stub = """
def gradient_norm(model):
    return None  # your answer
"""
    hints = (
        "A parameter without a gradient adds nothing: leave it out.",
        "The norm of everything is the root of the sum of all squares.",
        "Square each gradient's norm, add these up, and take the root of the sum. If there is nothing to add, it is 0.",
    )
    mistakes = (
        Mistake(
            "sum-of-norms",
            "That is the sum of the norms. Square them first, and take the root last.",
            lambda model: sum(_norms(model)),
        ),
        Mistake(
            "no-root",
            "That is the square of it: the root is missing.",
            lambda model: sum(norm**2 for norm in _norms(model)),
        ),
        Mistake(
            "largest",
            "That is the largest norm of one parameter.",
            lambda model: max(_norms(model), default=0.0),
        ),
        Mistake(
            "mean-of-norms",
            "That is the mean of the norms.",
            lambda model: sum(_norms(model)) / max(len(_norms(model)), 1),
        ),
        Mistake(
            "largest-number",
            "That is the largest single number, not the norm.",
            lambda model: max((p.grad.abs().max().item() for p in model.parameters() if p.grad is not None), default=0),
        ),
        Mistake(
            "weights",
            "That is the norm of the weights, not of the gradients.",
            lambda model: math.hypot(*(p.detach().norm().item() for p in model.parameters())),
        ),
        Mistake(
            "nothing-is-not-a-number",
            "With no gradient at all there is nothing to add up: the norm is 0.",
            lambda model: math.hypot(*_norms(model)) if _norms(model) else math.nan,
        ),
    )
    rounds = 20

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a model whose gradients are random, and None for some parameters, now and then for all."""
        shapes = [(dice.randint(2, 6), dice.randint(2, 6)) for _ in range(4)]
        model = nn.Sequential(*[nn.Linear(*shape) for shape in shapes])
        every = dice.random() < 0.35
        for number, p in enumerate(model.parameters()):
            none = number == 2 or (number > 2 and dice.random() < 0.3)
            p.grad = None if every or none else torch.randn_like(p)
        return (model,)

    def right(self, model: nn.Module) -> Any:
        """Ask PyTorch, and let it clip nothing."""
        return float(nn.utils.clip_grad_norm_(model.parameters(), math.inf))

    def told(self, *arguments: Any) -> str:
        """Say how many are missing."""
        every = list(arguments[0].parameters())
        return f"a model of {len(every)} parameters, {sum(p.grad is None for p in every)} of them without a gradient"


@cache
def _profiled(width: int, element_size: int) -> dict[str, int]:
    """Return the bytes that each way of clearing and adding moves, as the profiler sees it in a layer of this size."""
    from ..traffic import traffic

    kind = {2: torch.bfloat16, 4: torch.float32, 8: torch.float64}[element_size]
    layer, x = nn.Linear(width, width + 1, dtype=kind), torch.randn(4, width, dtype=kind)
    seen = traffic(layer, lambda: layer(x).square().mean())
    return {way: seen[way].moved for way in ("zero-fill", "add", "hand-over")}


def _moves(zeros: Callable[[int], float], none: Callable[[int], float]) -> Callable[..., float]:
    """Return an answer that counts so many times the gradients' bytes in a window, with zeros and with None."""

    def answer(parameters: int, element_size: int, window: int, set_to_none: bool) -> float:
        return parameters * element_size * (none if set_to_none else zeros)(window)

    return answer


def _with_zeros(window: int) -> int:
    """Return what is right for zeros: the fill, and an add for each micro-batch."""
    return 1 + 3 * window


def _with_none(window: int) -> int:
    """Return what is right for None: the first is handed over, the others are added."""
    return 3 * (window - 1)


class BytesMoved(Exercise):
    """What clearing and adding read and write in a window."""

    name = "bytes_moved"
    notebook = _HOME
    title = "Count the bytes of a window"
    level, minutes = "medium", 10
    spec = (
        "Write `bytes_moved(parameters, element_size, window, set_to_none)`: the bytes that clearing and accumulation "
        "read and write in one update with `window` micro-batches, if every gradient can be handed over."
    )
    stub = """
def bytes_moved(parameters, element_size, window, set_to_none):
    return None  # your answer
"""
    hints = (
        "Go through the window: what does the first `backward()` find in `.grad`, and what does the second find?",
        "An add is two reads and a write. Filling with zeros is a write.",
        "With zeros: one fill, then `window` times an add. With `None`: the first is free, and the others are adds.",
    )
    mistakes = (
        Mistake(
            "numbers",
            "Those are numbers, not bytes.",
            lambda p, e, w, none: p * (_with_none if none else _with_zeros)(w),
        ),
        Mistake(
            "bits",
            "Those are bits, not bytes.",
            lambda p, e, w, none: 8 * p * e * (_with_none if none else _with_zeros)(w),
        ),
        Mistake(
            "as-claimed",
            "That is the article's count. The table in the notebook has another.",
            _moves(lambda w: 3 * w, lambda w: w),
        ),
        Mistake(
            "no-fill",
            "The zeros have to be written, too: one more write.",
            _moves(lambda w: 3 * w, _with_none),
        ),
        Mistake(
            "first-written",
            "With None the first gradient is handed over: nothing is written.",
            _moves(_with_zeros, lambda w: 1 + 3 * (w - 1)),
        ),
        Mistake(
            "first-copied",
            "With None the first gradient is handed over, not copied.",
            _moves(_with_zeros, lambda w: 2 + 3 * (w - 1)),
        ),
        Mistake(
            "first-added",
            "With None the first backward() finds nothing to add to.",
            _moves(_with_zeros, lambda w: 3 * w),
        ),
        Mistake(
            "one-read",
            "An add reads twice: what is there, and what comes.",
            _moves(lambda w: 1 + 2 * w, lambda w: 2 * (w - 1)),
        ),
        Mistake(
            "none-is-free",
            "Only the first backward() of a window finds None. The others add.",
            _moves(_with_zeros, lambda w: 0),
        ),
        Mistake(
            "fill-each-time",
            "zero_grad() runs once in a window, not before each micro-batch.",
            _moves(lambda w: 4 * w, lambda w: 0),
        ),
        Mistake(
            "no-window",
            "backward() runs once for each micro-batch of the window.",
            _moves(lambda w: 4, lambda w: 0),
        ),
    )

    rounds = 30

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return the size of a layer, the size of its numbers, a window and one of the two ways to clear."""
        width = dice.randint(3, 12)
        return (width + 1) ** 2, dice.choice((2, 4, 8)), dice.randint(1, 6), dice.random() < 0.5

    def right(self, parameters: int, element_size: int, window: int, set_to_none: bool) -> Any:
        """Count what the profiler sees of a real layer of this size."""
        seen = _profiled(math.isqrt(parameters) - 1, element_size)
        first = seen["hand-over"] if set_to_none else seen["zero-fill"] + seen["add"]
        return first + (window - 1) * seen["add"]

    def told(self, *arguments: Any) -> str:
        """Name all four."""
        return "bytes_moved({}, {}, {}, {})".format(*arguments)


def _levels(activations: Sequence[int], gradients: Sequence[int]) -> list[int]:
    """Return the bytes alive after 0, 1, 2, ... layers of backward, the last layer first, with None."""
    trades = [gradient - activation for activation, gradient in zip(activations, gradients, strict=True)]
    return list(accumulate(reversed(trades), initial=sum(activations)))


def _saved(pick: Callable[[list[int]], list[int]]) -> Callable[..., int]:
    """Return an answer that looks for the peak among some of the levels only."""
    return lambda a, g: sum(a) + sum(g) - max(pick(_levels(a, g)))


class Saved(Exercise):
    """When None lowers the peak, and by how much."""

    name = "saved"
    notebook = _HOME
    title = "Will it help?"
    level, minutes = "harder", 15
    spec = (
        "Write `saved(activations, gradients)`: by how many bytes `None` lowers the peak of an update, compared with "
        "zeros, if the peak is in forward or `backward()`; you get two lists, from the first layer to the last."
    )
    stub = """
def saved(activations, gradients):
    return None  # your answer
"""
    hints = (
        "With zeros the peak is where all activations are there. How many bytes is that?",
        "With `None`, write down what is alive after 0, 1, 2, ... layers of `backward()`, the last layer first: the "
        "activations of the layers still to come, and the gradients of those that are done.",
        "The peak with `None` is the largest of these. The answer is the difference of the two peaks.",
    )
    mistakes = (
        Mistake(
            "all-gradients",
            "Not always all of the gradients: at the peak some may have come.",
            lambda a, g: sum(g),
        ),
        Mistake("nothing", "It does help: at the peak some gradients are still to come.", lambda a, g: 0),
        Mistake(
            "two-ends",
            "You look at the two ends only: the peak may lie in between.",
            _saved(lambda levels: [levels[0], levels[-1]]),
        ),
        Mistake(
            "other-way",
            "You go from the first layer to the last: backward() goes the other way.",
            lambda a, g: sum(a) + sum(g) - max(_levels(a[::-1], g[::-1])),
        ),
        Mistake("peak-with-none", "That is the peak with None, not the difference.", lambda a, g: max(_levels(a, g))),
        Mistake("peak-with-zeros", "That is the peak with zeros, not the difference.", lambda a, g: sum(a) + sum(g)),
        Mistake("not-before", "The moment before backward() counts, too.", _saved(lambda levels: levels[1:])),
        Mistake("not-after", "The moment after the last layer counts, too.", _saved(lambda levels: levels[:-1])),
        Mistake(
            "each-by-itself",
            "That is each layer by itself, but the layers are alive together.",
            lambda a, g: sum(map(min, a, g)),
        ),
        Mistake("difference-of-sums", "That is the difference of the sums.", lambda a, g: sum(a) - sum(g)),
    )
    rounds = 32

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return the bytes of a few layers, activations and gradients, the peak before, after or in backward."""
        count, kind = dice.randint(4, 7), dice.choice(("before", "after", "between", "mixed", "mixed"))
        if kind == "between":  # the last layers take more than they give back, the first ones less
            low, high = (sorted(dice.randint(*ends) for _ in range(count)) for ends in ((1, 60), (60, 100)))
            last = dice.randint(1, count - 1)
            return high[last:] + low[:last], low[last:] + high[:last]
        ends = {"before": (80, 100, 1, 70), "after": (1, 30, 40, 100), "mixed": (1, 100, 1, 100)}[kind]
        return [dice.randint(*ends[:2]) for _ in range(count)], [dice.randint(*ends[2:]) for _ in range(count)]

    def right(self, activations: list[int], gradients: list[int]) -> Any:
        """Walk back through the layers, and note the most that is alive with each way to clear."""
        with_zeros = with_none = most = sum(activations)
        with_zeros += sum(gradients)
        for activation, gradient in zip(reversed(activations), reversed(gradients), strict=True):
            with_none += gradient - activation
            most = max(most, with_none)
        return with_zeros - most

    def told(self, *arguments: Any) -> str:
        """Write both lists."""
        return "saved({}, {})".format(*arguments)


EXERCISES: tuple[type[Exercise], ...] = (GradientNorm, BytesMoved, Saved)
