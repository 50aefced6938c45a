"""The exercises of notebook 02."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .base import Exercise, Mistake

_HOME = "02_backward_adds"


def _each(keep: Callable[[Tensor, Any], Any], *, clear: bool = False) -> Callable[[Tensor, list[Tensor]], list[Any]]:
    """Return a wrong answer: ``keep(w, before)`` is put into the list after each backward."""

    def answer(w: Tensor, losses: list[Tensor]) -> list[Any]:
        kept = []
        for loss in losses:
            if clear:
                w.grad = None
            before = w.grad  # the tensor itself, no copy of it
            loss.backward()
            kept.append(keep(w, before))
        return kept

    return answer


class GradientOfEach(Exercise):
    """What one backward added: the difference of two sums, where the first one must be a copy."""

    name = "gradient_of_each"
    notebook = _HOME
    title = "One arrow at a time"
    level, minutes = "easy", 5
    spec = (
        "Write `gradient_of_each(w, losses)`: call `backward()` on each loss, never clear, and return a list with the "
        "gradient of each loss alone."
    )
    stub = """
def gradient_of_each(w, losses):
    return None  # your answer
"""
    hints = (
        "What a `backward()` adds is `.grad` after it minus `.grad` before it.",
        "`before = w.grad` is a second name for the same tensor: it changes too. What makes a copy?",
        "The first time `.grad` is None, and there is nothing to subtract.",
    )
    mistakes = (
        Mistake(
            "one-tensor",
            "The same numbers in every place: the list holds one tensor many times. Keep a copy, with clone().",
            _each(lambda w, before: w.grad),
        ),
        Mistake(
            "running-sums",
            "These are the sums so far, one longer than the next: subtract what was there before.",
            _each(lambda w, before: w.grad.clone() if w.grad is not None else None),
        ),
        Mistake(
            "minus-itself",
            "After the first all are zero: `.grad` minus itself. What you kept from before is no copy.",
            _each(lambda w, before: w.grad.clone() if before is None else w.grad - before),  # type: ignore[union-attr]
        ),
        Mistake(
            "cleared",
            "The list is right, but you cleared on the way: `w.grad` must hold the sum of all at the end.",
            _each(lambda w, before: w.grad, clear=True),
        ),
        Mistake(
            "nothing-in-grad",
            "The list is right, but nothing is left in `w.grad`, and the sum is still needed. Did you clear after each "
            "loss, or use autograd.grad, which leaves `.grad` alone?",
            lambda w, losses: [torch.autograd.grad(loss, w)[0] for loss in losses],
        ),
    )
    axes = ("the gradients in the list, the last two numbers: w.grad", "gradient")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return two weights and three to five losses of them."""
        w = torch.randn(2, requires_grad=True)
        return w, [((torch.randn(4, 2) @ w - torch.randn(4)) ** 2).mean() for _ in range(dice.randint(3, 5))]

    def right(self, w: Tensor, losses: list[Tensor]) -> Any:
        """Take the gradients from autograd.grad, which never touches .grad."""
        rows = [torch.autograd.grad(loss, w)[0] for loss in losses]
        return {"the list": rows, "w.grad at the end": sum(rows)}

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Compare the list, and what is in .grad afterwards."""
        w, losses = arguments
        rows = answer(w, losses)
        return {"the list": rows, "w.grad at the end": torch.zeros(2) if w.grad is None else w.grad}

    def told(self, *arguments: Any) -> str:
        """Say how many losses there are."""
        return f"{len(arguments[1])} losses of two weights"

    def drawn(self, value: Any) -> Any:
        """Draw the list, and what is left in .grad."""
        return torch.stack([*value["the list"], value["w.grad at the end"]]).detach().reshape(-1)


def _states(w: float, xs: list[float]) -> list[float]:
    """Return the memory before each step, and after the last: h = w * h + x, from 0."""
    states = [0.0]
    for x in xs:
        states.append(w * states[-1] + x)
    return states


def _by_hand(
    use: Callable[[float, int, int, list[float]], float], factor: float = 2.0
) -> Callable[[float, list[float], float], float]:
    """Return an answer that sums ``use(w, step, steps, states)`` over the steps."""

    def answer(w: float, xs: list[float], goal: float) -> float:
        states = _states(w, xs)
        return factor * (states[-1] - goal) * sum(use(w, t, len(xs), states) for t in range(len(xs)))

    return answer


class MemoryGradient(Exercise):
    """The chain rule for a shared weight, by hand."""

    name = "memory_gradient"
    notebook = _HOME
    title = "Sum over the uses"
    level, minutes = "medium", 8
    spec = (
        "A memory starts at `h = 0` and does `h = w * h + x` for each `x` in `xs`; the loss is `(h - goal)**2` at the "
        "end: write `memory_gradient(w, xs, goal)`, its derivative with respect to `w`, without autograd."
    )
    stub = """
def memory_gradient(w, xs, goal):
    return None  # your answer
"""
    hints = (
        "w is used once a step. Each use has a slope of its own: the h that it was multiplied with.",
        "What a use does to its own step is passed on, times w, by every step after it.",
        "Keep all h in a list. Then walk backwards: start with `arriving = 2 * (h - goal)`; at each step add "
        "`arriving * (h before the step)`, then multiply `arriving` by w.",
    )
    mistakes = (
        Mistake(
            "writes",
            "Always zero: on the way back you write each use over the one before. The first step comes last, and its h "
            "is 0. Add.",
            lambda w, xs, goal: 0.0,
        ),
        Mistake(
            "last-use-only",
            "That is what the last step alone contributes. w is used in the earlier steps too.",
            _by_hand(lambda w, t, steps, h: h[t] if t == steps - 1 else 0.0),
        ),
        Mistake(
            "not-passed-on",
            "You add the uses, but each must still pass through the steps after it: times w for each of them.",
            _by_hand(lambda w, t, steps, h: h[t]),
        ),
        Mistake(
            "mean",
            "That is the mean over the steps. The chain rule adds; nothing is divided.",
            _by_hand(lambda w, t, steps, h: h[t] * w ** (steps - 1 - t) / steps),
        ),
        Mistake(
            "lost-two",
            "Half of it: the derivative of the square brings a 2.",
            _by_hand(lambda w, t, steps, h: h[t] * w ** (steps - 1 - t), factor=1.0),
        ),
    )

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a weight, three to five inputs and a goal that is missed."""
        w = dice.choice((-1, 1)) * dice.uniform(0.4, 1.4)
        xs = [round(dice.choice((-1, 1)) * dice.uniform(0.3, 2), 2) for _ in range(dice.randint(3, 5))]
        return round(w, 2), xs, round(_states(w, xs)[-1] + dice.choice((-1, 1)) * dice.uniform(0.5, 2), 2)

    def right(self, w: float, xs: list[float], goal: float) -> Any:
        """Let autograd do it."""
        weight = torch.tensor(w, dtype=torch.float64, requires_grad=True)
        h = torch.zeros((), dtype=torch.float64)
        for x in xs:
            h = weight * h + x
        return torch.autograd.grad((h - goal) ** 2, weight)[0].item()

    def told(self, *arguments: Any) -> str:
        """Give the whole case: it can be done on paper."""
        return f"w={arguments[0]}, xs={arguments[1]}, goal={arguments[2]}"


def _chunked(
    w: Tensor,
    xs: Tensor,
    ys: Tensor,
    size: int,
    *,
    again: bool = False,
    clear: bool = False,
    short: bool = True,
    every: bool = True,
) -> Any:
    """Run the loop that is asked for, or begin the memory again, clear, leave out the short last chunk or losses."""
    h = torch.zeros(())
    for at in range(0, len(xs), size):
        h = torch.zeros(()) if again else h.detach()
        if clear:
            w.grad = None
        if at + size > len(xs) and not short:
            break
        loss = torch.zeros(())
        for x, y in zip(xs[at : at + size], ys[at : at + size], strict=True):
            h = torch.tanh(w * h + x)
            loss = (loss if every else 0.0) + (h - y) ** 2
        loss.backward()
    return w.grad


class Truncated(Exercise):
    """Backpropagation through time in chunks."""

    name = "truncated"
    notebook = _HOME
    title = "A long sequence in pieces"
    level, minutes = "harder", 12
    spec = (
        "A memory does `h = torch.tanh(w * h + x)` for each `x`, and each step adds `(h - y)**2` to the loss: write "
        "`truncated(w, xs, ys, size)`, which goes through the sequence in chunks of `size` steps, detaches `h` between "
        "them, and returns `w.grad`."
    )
    stub = """
def truncated(w, xs, ys, size):
    h = torch.zeros(())
    return None  # your answer
"""
    hints = (
        "`for start in range(0, len(xs), size)` gives the beginning of each chunk, also of a shorter last one.",
        "In each chunk: `h = h.detach()`, a loss that starts at 0, the steps `xs[start:start + size]`, then one "
        "`backward()`.",
        "The value of h goes on into the next chunk. Only its graph stays behind.",
    )
    mistakes = (
        Mistake(
            "whole",
            "That is the gradient of the whole sequence: nothing was cut off. Is there an `h = h.detach()`? Without "
            "the `h =` it changes nothing.",
            lambda w, xs, ys, size: _chunked(w, xs, ys, len(xs)),
        ),
        Mistake(
            "every-step",
            "You detach at every step: then no step knows of the one before. Detach once a chunk.",
            lambda w, xs, ys, size: _chunked(w, xs, ys, 1),
        ),
        Mistake(
            "begins-again",
            "The memory is lost between the chunks: `detach()` keeps the value of h, zeros do not.",
            lambda *all: _chunked(*all, again=True),
        ),
        Mistake(
            "last-chunk-only",
            "Only the last chunk is in `.grad`: you cleared on the way, or the loss of the others had no backward().",
            lambda *all: _chunked(*all, clear=True),
        ),
        Mistake(
            "last-step-only",
            "In each chunk the loss of the last step only: `loss = ...` throws away that of the steps before it. Add.",
            lambda *all: _chunked(*all, every=False),
        ),
        Mistake(
            "short-dropped",
            "The last chunk is shorter than the others, and you left it out.",
            lambda *all: _chunked(*all, short=False),
        ),
        Mistake(
            "mean",
            "Divided by the number of chunks: here the losses are added, so the gradients are too.",
            lambda w, xs, ys, size: _chunked(w, xs, ys, size) / math.ceil(len(xs) / size),
        ),
    )

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a weight, a sequence that no chunk size divides, and the size."""
        size = dice.randint(2, 4)
        steps = size * dice.randint(2, 3) + dice.randint(1, size - 1)
        w = torch.tensor(dice.choice((-1, 1)) * dice.uniform(0.6, 1.2), requires_grad=True)
        return w, torch.randn(steps), torch.tanh(torch.randn(steps)), size

    def right(self, w: Tensor, xs: Tensor, ys: Tensor, size: int) -> Any:
        """Carry the slope of h along with h, forwards, and forget it where a chunk begins; no graph at all."""
        weight, h, slope, total = w.item(), 0.0, 0.0, 0.0
        for t, (x, y) in enumerate(zip(xs.tolist(), ys.tolist(), strict=True)):
            slope = 0.0 if t % size == 0 else slope
            after = math.tanh(weight * h + x)
            slope = (1 - after**2) * (h + weight * slope)
            h = after
            total += 2 * (h - y) * slope
        return total

    def told(self, *arguments: Any) -> str:
        """Say how long the sequence is."""
        w, xs, _, size = arguments
        return f"w={w.item():.2f}, {len(xs)} steps in chunks of {size}"


EXERCISES = (GradientOfEach, MemoryGradient, Truncated)
