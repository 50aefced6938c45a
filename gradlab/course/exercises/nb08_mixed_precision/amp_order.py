"""The exercise ``amp_order``."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.nn.utils import clip_grad_norm_

from ..definition import Case, Definition
from ..guard import TroubleError
from ..loops import all_weights

LIMIT, LR = 0.1, 0.1
ZERO, BACKWARD, UNSCALE = "optimizer.zero_grad()", "scaler.scale(loss).backward()", "scaler.unscale_(optimizer)"
CLIP, STEP, UPDATE = "clip_grad_norm_(model.parameters(), 0.1)", "scaler.step(optimizer)", "scaler.update()"
CALLS = (ZERO, BACKWARD, UNSCALE, CLIP, STEP, UPDATE)
REFUSED = {  # what PyTorch says, and what it means here
    "No inf checks": "it finds no gradients, they were cleared after backward() had filled them",
    "_scale is None": "nothing has been scaled yet, so there is no scale to divide by",
    "after step()": "step() has been called, and has done the dividing itself",
}


def case(rng: random.Random) -> Case:
    """Return a small model, and a batch whose gradient is longer than the limit."""
    model, x, y = nn.Linear(4, 1), torch.randn(16, 4), torch.full((16, 1), rng.uniform(5.0, 9.0))
    text = "one update of a small model, in multiples of what each should be"
    return Case(model, x, y, text=text, expect={"norm that clip sees": 1.0, "length of the step": 1.0})


def observe(answer: object, model: nn.Module, x: Tensor, y: Tensor) -> dict[str, float]:
    """Run the calls in the order that is given; both results as multiples of what they should be."""
    if not isinstance(answer, (list, tuple)) or not all(isinstance(call, str) for call in answer):
        raise TroubleError("A list of texts is wanted, the six of the stub in another order")
    if sorted(answer) != sorted(CALLS):
        odd = [call for call in answer if call not in CALLS] or [call for call in CALLS if call not in answer]
        which = f": look at {odd[0]!r}" if odd else ": one of them is there twice"
        raise TroubleError(f"Each of the six calls must be there once, as the stub writes it{which}")
    true_norm = torch.stack([part.norm() for part in torch.autograd.grad(mse_loss(model(x), y), [*model.parameters()])])
    seen, moved = run(answer, model, x, y)
    return {"norm that clip sees": seen / float(true_norm.norm()), "length of the step": moved / (LR * LIMIT)}


def run(order: Sequence[str], model: nn.Module, x: Tensor, y: Tensor) -> tuple[float, float]:
    """Make the calls one by one; return the norm that clip sees and the length of the step."""
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=LR), torch.amp.GradScaler("cpu")
    seen: list[float] = []
    calls = {
        ZERO: optimizer.zero_grad,
        BACKWARD: lambda: scaler.scale(mse_loss(model(x), y)).backward(),
        UNSCALE: lambda: scaler.unscale_(optimizer),
        CLIP: lambda: seen.append(float(clip_grad_norm_(model.parameters(), LIMIT))),
        STEP: lambda: scaler.step(optimizer),
        UPDATE: scaler.update,
    }
    before = all_weights(model)
    for call in order:
        try:
            calls[call]()
        except (AssertionError, RuntimeError) as error:
            why = next((words for part, words in REFUSED.items() if part in str(error)), str(error))
            raise TroubleError(f"PyTorch refuses {call}: {why}") from None
    return seen[0], float((all_weights(model) - before).norm())


DEFINITION = Definition(
    case=case,
    observe=observe,
    mistakes={
        "clip-first": [ZERO, BACKWARD, CLIP, UNSCALE, STEP, UPDATE],
        "clip-late": [ZERO, BACKWARD, UNSCALE, STEP, CLIP, UPDATE],
        "cleared": [BACKWARD, UNSCALE, CLIP, ZERO, STEP, UPDATE],
        "cleared-early": [BACKWARD, UNSCALE, ZERO, CLIP, STEP, UPDATE],
        "update-early": [ZERO, BACKWARD, UNSCALE, CLIP, UPDATE, STEP],
    },
    rounds=3,
    relative=1e-3,
    axes=("", "1 is right"),
)
