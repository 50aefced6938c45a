"""The exercises of notebook 08."""

from __future__ import annotations

import math
import random
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from .base import Exercise, Mistake
from .guard import TroubleError
from .loops import weights

_HOME = "08_mixed_precision"
_LIMIT, _LR = 0.1, 0.1
_ZERO, _BACKWARD, _UNSCALE = "optimizer.zero_grad()", "scaler.scale(loss).backward()", "scaler.unscale_(optimizer)"
_CLIP, _STEP, _UPDATE = "clip_grad_norm_(model.parameters(), 0.1)", "scaler.step(optimizer)", "scaler.update()"
_REFUSED = {  # what PyTorch says, and what it means here
    "No inf checks": "it finds no gradients, they were cleared after backward() had filled them",
    "_scale is None": "nothing has been scaled yet, so there is no scale to divide by",
    "after step()": "step() has been called, and has done the dividing itself",
}
_CALLS = (_ZERO, _BACKWARD, _UNSCALE, _CLIP, _STEP, _UPDATE)


class AmpOrder(Exercise):
    """Six calls, and what each needs to have happened before it."""

    name = "amp_order"
    notebook = _HOME
    title = "Six calls in order"
    level, minutes = "easy", 5
    spec = (
        "Put the six calls of one update with a GradScaler and clipping into the right order in the list `amp_order` "
        "(the loss is computed just before it is scaled)."
    )
    stub = """
amp_order = [
    "scaler.step(optimizer)",
    "clip_grad_norm_(model.parameters(), 0.1)",
    "optimizer.zero_grad()",
    "scaler.update()",
    "scaler.scale(loss).backward()",
    "scaler.unscale_(optimizer)",
]
"""
    hints = (
        "Ask of each call what it reads: `.grad`? The scale? And who has to have written it by then?",
        "`clip_grad_norm_` compares the norm of what is in `.grad` with 0.1. It should be the norm of the gradients "
        "that the step will use.",
        "`update()` decides about the scale of the next update. Nothing of this update may come after it, except "
        "clearing.",
    )
    mistakes = (
        Mistake(
            "clip-first",
            "You clip gradients that are still multiplied by 65,536: their norm is far above 0.1, and after the "
            "division next to nothing is left of the step.",
            [_ZERO, _BACKWARD, _CLIP, _UNSCALE, _STEP, _UPDATE],
        ),
        Mistake(
            "clip-late",
            "The step is taken before anything is clipped: it is as long as if there were no clipping.",
            [_ZERO, _BACKWARD, _UNSCALE, _STEP, _CLIP, _UPDATE],
        ),
        Mistake(
            "cleared",
            "The weights do not move: you clear .grad just before step() reads it.",
            [_BACKWARD, _UNSCALE, _CLIP, _ZERO, _STEP, _UPDATE],
        ),
        Mistake(
            "cleared-early",
            "You clear .grad after backward() has filled it: there is nothing left to clip, nor to step with.",
            [_BACKWARD, _UNSCALE, _ZERO, _CLIP, _STEP, _UPDATE],
        ),
        Mistake(
            "update-early",
            "update() closes the books of this update. step() after it no longer knows that the gradients are "
            "unscaled, and divides them by the scale once more.",
            [_ZERO, _BACKWARD, _UNSCALE, _CLIP, _UPDATE, _STEP],
        ),
    )
    rounds = 3
    relative = 1e-3
    axes = ("", "1 is right")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a small model, a batch whose gradient is longer than the limit, and its bill."""
        return nn.Linear(4, 1), torch.randn(16, 4), torch.full((16, 1), dice.uniform(5.0, 9.0))

    def right(self, model: nn.Module, x: Tensor, y: Tensor) -> Any:
        """Say what clipping and the step are for: clip measures the true norm, and the step is as long as the limit."""
        return {"norm that clip sees": 1.0, "length of the step": 1.0}

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Run the calls in the order that is given; both results as multiples of what they should be."""
        if not isinstance(answer, (list, tuple)) or not all(isinstance(call, str) for call in answer):
            raise TroubleError("A list of texts is wanted, the six of the stub in another order")
        if sorted(answer) != sorted(_CALLS):
            odd = [call for call in answer if call not in _CALLS] or [call for call in _CALLS if call not in answer]
            which = f": look at {odd[0]!r}" if odd else ": one of them is there twice"
            raise TroubleError(f"Each of the six calls must be there once, as the stub writes it{which}")
        model, x, y = arguments
        gradients = torch.autograd.grad(_loss(model, x, y), [*model.parameters()])
        wanted = {"norm that clip sees": float(torch.stack([part.norm() for part in gradients]).norm())}
        wanted["length of the step"] = _LR * _LIMIT
        seen = _done(answer, *arguments)
        return {word: seen[word] / wanted[word] for word in wanted}

    def told(self, *arguments: Any) -> str:
        """Say what the numbers are."""
        return "one update of a small model, in multiples of what each should be"


def _loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return nn.functional.mse_loss(model(x), y)


def _done(order: Any, model: nn.Module, x: Tensor, y: Tensor) -> dict[str, float]:
    """Do the calls one by one and measure; a call that PyTorch refuses raises."""
    optimizer = torch.optim.SGD(model.parameters(), lr=_LR)
    scaler = torch.amp.GradScaler("cpu")
    seen: list[float] = []
    calls = {
        _ZERO: optimizer.zero_grad,
        _BACKWARD: lambda: scaler.scale(_loss(model, x, y)).backward(),
        _UNSCALE: lambda: scaler.unscale_(optimizer),
        _CLIP: lambda: seen.append(float(clip_grad_norm_(model.parameters(), _LIMIT))),
        _STEP: lambda: scaler.step(optimizer),
        _UPDATE: scaler.update,
    }
    before = weights(model)
    for call in order:
        try:
            calls[call]()
        except (AssertionError, RuntimeError) as error:
            why = next((words for part, words in _REFUSED.items() if part in str(error)), str(error))
            raise TroubleError(f"PyTorch refuses {call}: {why}") from None
    return {"norm that clip sees": seen[0], "length of the step": float((weights(model) - before).norm())}


def _power_above(value: float) -> float:
    """Return the smallest power of two, from 1, that is not below a value."""
    return 2.0 ** max(0, math.ceil(math.log2(value)))


class SmallestScale(Exercise):
    """Where fp16 begins, and what rounding does there."""

    name = "smallest_scale"
    notebook = _HOME
    title = "The smallest scale that saves them all"
    level, minutes = "medium", 8
    spec = (
        "Write `smallest_scale(gradients)`: the smallest power of two (1, 2, 4, ...) with which no gradient that "
        "is not 0 becomes 0 in fp16, for a float32 tensor that may hold zeros and negative numbers."
    )
    stub = """
def smallest_scale(gradients):
    return None  # your answer
"""
    hints = (
        "You need not know any limit: try 1, then 2, then 4, and look at what `(gradients * scale).half()` does.",
        "Count the zeros before and after: `(gradients != 0).sum()` must stay what it was.",
    )
    mistakes = (
        Mistake(
            "no-rounding",
            "Twice as much as needed: fp16 rounds to the nearest number, so what is above half of its smallest one is "
            "rounded up to it and not down to 0.",
            lambda gradients: _power_above(2.0**-24 / _smallest(gradients)),
        ),
        Mistake(
            "normal",
            "Far more than needed: you go by the smallest number that has full precision (finfo.tiny). Below it come "
            "the subnormal numbers, and they are not 0.",
            lambda gradients: _power_above(2.0**-14 / _smallest(gradients)),
        ),
        Mistake(
            "no-power",
            "Large enough, nearly, but not a power of two: multiplying by another number may round every gradient.",
            lambda gradients: max(1.0, 2.0**-25 / _smallest(gradients)),
        ),
        Mistake(
            "signs",
            "The negative gradients do not count for you: it is the size that must not be too small.",
            lambda gradients: _power_above(1.0001 * 2.0**-25 / float(gradients[gradients > 0].min())),
        ),
        Mistake(
            "largest",
            "That is the other end: the largest scale with which none becomes inf. It saves them, too, but the "
            "smallest one is wanted.",
            lambda gradients: 2.0 ** math.floor(math.log2(65519.0 / float(gradients.abs().max()))),
        ),
    )

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return gradients of many sizes: the smallest is negative, some are 0."""
        sizes = 2.0 ** (torch.rand(40) * 12 - 30)
        sizes[dice.randrange(40)] = 2.0 ** dice.uniform(-40.0, -36.0)
        signs = torch.where(torch.rand(40) < 0.5, -1.0, 1.0)
        signs[sizes.argmin()] = -1.0
        return (torch.cat([sizes * signs, torch.zeros(5), 2.0**-30 * torch.ones(1)])[torch.randperm(46)],)

    def right(self, gradients: Tensor) -> Any:
        """Try one scale after the other on the type itself."""
        scale = 1.0
        while (gradients * scale).half().count_nonzero() < gradients.count_nonzero():
            scale *= 2
        return scale

    def told(self, *arguments: Any) -> str:
        """Name the smallest size."""
        return f"gradients of which the smallest is {_smallest(arguments[0]):.3g} in size"


def _smallest(gradients: Tensor) -> float:
    return float(gradients[gradients != 0].abs().min())


def _scales(
    overflowed: Any,
    scale: float,
    interval: int,
    *,
    cleared: bool = True,
    counted: bool = True,
    eager: bool = False,
    late: int = 0,
) -> list[float]:
    """Return the scale after each update: the rule of update(), or with a mistake in its counting."""
    scales, good = [], 0
    for bad in overflowed:
        if bad:
            scale, good = scale / 2, (0 if cleared else good)
        else:
            good += 1
            if eager or good >= interval + late:
                scale, good = scale * 2, (0 if counted else good)
        scales.append(scale)
    return scales


def _back_to_start(overflowed: Any, scale: float, interval: int) -> list[float]:
    scales, good, now = [], 0, scale
    for bad in overflowed:
        good = 0 if bad else good + 1
        now = scale if bad else now
        if good == interval:
            now, good = now * 2, 0
        scales.append(now)
    return scales


class ScalesAfter(Exercise):
    """The whole of GradScaler.update()."""

    name = "scales_after"
    notebook = _HOME
    title = "Be the scaler"
    level, minutes = "harder", 12
    spec = (
        "Write `scales_after(overflowed, scale, growth_interval)`: for each update of a run (True where its gradients "
        "overflowed) the scale after it, in a list, as a `GradScaler` that starts at `scale` would have it."
    )
    stub = """
def scales_after(overflowed, scale, growth_interval):
    return None  # your answer
"""
    hints = (
        "Two things to remember from one update to the next: the scale, and how many good updates came in a row.",
        "After an overflow the scale is halved. And the row of good updates?",
        "After `growth_interval` good updates in a row the scale is doubled, and the row begins again.",
    )
    mistakes = (
        Mistake(
            "not-in-a-row",
            "You count all good updates. They must come in a row: an overflow sets the count back to 0.",
            lambda *all: _scales(*all, cleared=False),
        ),
        Mistake(
            "never-begins-again",
            "After the first growth you double at every good update: the count must begin again at 0.",
            lambda *all: _scales(*all, counted=False),
        ),
        Mistake(
            "eager",
            "You double after every good update: what is growth_interval for?",
            lambda *all: _scales(*all, eager=True),
        ),
        Mistake(
            "one-late",
            "You double one good update too late: after growth_interval of them, not after one more.",
            lambda *all: _scales(*all, late=1),
        ),
        Mistake(
            "back-to-start",
            "After an overflow you go back to the scale of the start. It is halved, from where it is.",
            _back_to_start,
        ),
        Mistake(
            "before",
            "Each scale comes one update late: you note it before update() and not after it.",
            lambda overflowed, scale, interval: [scale, *_scales(overflowed, scale, interval)[:-1]],
        ),
    )
    axes = ("update", "scale (powers of two)")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a run of sixty updates, with overflows apart and in a row."""
        interval = dice.randint(3, 5)
        overflowed = [dice.random() < 0.12 for _ in range(60)]
        # What every mistake needs to show: growth, growth again, an overflow in the middle of a row, two overflows.
        overflowed[: 5 * interval + 1] = [False] * (2 * interval + 1) + [True, True] + [False] * (3 * interval - 2)
        overflowed[2 * interval + 4] = True
        return overflowed, 2.0 ** dice.randint(4, 12), interval

    def right(self, overflowed: list[bool], scale: float, growth_interval: int) -> Any:
        """Ask a real GradScaler, whose gradients are made to overflow where they shall."""
        weight = torch.zeros(1, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.0)
        scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=growth_interval)
        scaler.scale(torch.zeros(()))
        scales = []
        for bad in overflowed:
            weight.grad = torch.full((1,), math.inf if bad else 1.0)
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        return scales

    def drawn(self, value: Any) -> Any:
        """Draw powers of two: the scale doubles and halves."""
        return [math.log2(scale) for scale in value]

    def told(self, *arguments: Any) -> str:
        """Say how the run begins."""
        overflowed, scale, interval = arguments
        return f"overflowed = {overflowed[:12]} and so on, scale = {scale:g}, growth_interval = {interval}"


EXERCISES = (AmpOrder, SmallestScale, ScalesAfter)
