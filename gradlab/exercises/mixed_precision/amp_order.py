"""The exercise ``amp_order``: six calls in order."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from ..base import Exercise, Mistake
from ..guard import TroubleError
from ..loops import weights

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
    notebook = "08_mixed_precision"
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
