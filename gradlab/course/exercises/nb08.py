"""The checks of the exercises in notebook 08; ``nb08.md`` has their tasks, hints and solutions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.nn.utils import clip_grad_norm_

from ..._checks import brief
from ..figures.curves import CourseFigure
from ..instruments.loss_scale import draw_gradients, measure_outcome
from .checking import Case, Definition, TroubleError, variant
from .loops import all_weights, gradient

LIMIT, LR = 0.1, 0.1
SCALES = [2**power for power in range(31)]
ZERO, BACKWARD, UNSCALE = "optimizer.zero_grad()", "scaler.scale(loss).backward()", "scaler.unscale_(optimizer)"
CLIP, STEP, UPDATE = "clip_grad_norm_(model.parameters(), 0.1)", "scaler.step(optimizer)", "scaler.update()"
CALLS = (ZERO, BACKWARD, UNSCALE, CLIP, STEP, UPDATE)


def amp_order_case(rng: random.Random) -> Case:
    """Return a case with a small model, and a batch whose gradient has a norm above ``LIMIT``."""
    model, x, y = nn.Linear(4, 1), torch.randn(16, 4), torch.full((16, 1), rng.uniform(5.0, 9.0))
    return (model, x, y), "one update of a small model, in multiples of what each should be"


def amp_order_observe(answer: object, model: nn.Module, x: Tensor, y: Tensor) -> dict[str, float]:
    """Run an answer's calls; return the norm seen by clipping and the step's length, each divided by its target."""
    if not isinstance(answer, (list, tuple)) or sorted(map(str, answer)) != sorted(CALLS):
        raise TroubleError("Each of the six calls must be in the list once, as the stub writes it")
    true_norm = gradient(mse_loss(model(x), y), model).norm().item()
    clipped_norm, moved = run(answer, model, x, y)
    return {"norm that clip sees": clipped_norm / true_norm, "length of the step": moved / (LR * LIMIT)}


def run(order: Sequence[str], model: nn.Module, x: Tensor, y: Tensor) -> tuple[float, float]:
    """Run the calls in ``order``, and return the norm that clip_grad_norm_ measures and the length of the step."""
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=LR), torch.amp.GradScaler("cpu")
    norms: list[float] = []
    calls = {
        ZERO: optimizer.zero_grad,
        BACKWARD: lambda: scaler.scale(mse_loss(model(x), y)).backward(),
        UNSCALE: lambda: scaler.unscale_(optimizer),
        CLIP: lambda: norms.append(float(clip_grad_norm_(model.parameters(), LIMIT))),
        STEP: lambda: scaler.step(optimizer),
        UPDATE: scaler.update,
    }
    before = all_weights(model)
    for call in order:
        try:
            calls[call]()
        except (AssertionError, RuntimeError) as error:
            raise TroubleError(f"PyTorch raises an error in {call}: {error}".rstrip(".")) from None
    return norms[0], float((all_weights(model) - before).norm())


amp_order = Definition(
    case=amp_order_case,
    observe=amp_order_observe,
    mistakes={
        "clip-first": [ZERO, BACKWARD, CLIP, UNSCALE, STEP, UPDATE],
        "clip-late": [ZERO, BACKWARD, UNSCALE, STEP, CLIP, UPDATE],
        "cleared": [BACKWARD, UNSCALE, CLIP, ZERO, STEP, UPDATE],
    },
    rounds=3,
    relative=1e-3,
)


def smallest_scale_observe(scale: Any) -> str:
    """Describe whether ``scale`` saves over 99% of fp16 gradients from underflow, and whether half of it would, too."""
    if isinstance(scale, bool) or scale not in SCALES:
        raise TroubleError(f"A power of two from 1 to {SCALES[-1]:,} is expected, but yours is {brief(scale)}")
    outcomes = [measure_outcome("fp16", each) for each in (scale, scale / 2)]
    lost, with_half = (outcome.count("zero") / outcome.total for outcome in outcomes)
    if lost >= 0.01:
        return f"too small: {lost:.1%} become 0"
    return "enough, and half of it is not" if with_half >= 0.01 else "enough, but half of it is, too"


smallest_scale = Definition(
    case=lambda rng: ((), ""),
    observe=smallest_scale_observe,
    draw=lambda scale: CourseFigure(draw_gradients(measure_outcome("fp16", scale or SCALES[16])), size=(560, 330)),
    mistakes={"half": 512, "none-lost": 2**20, "unscaled": 1},
    rounds=1,
)


def scales_after_case(rng: random.Random) -> Case:
    """Return a case with sixty flags (True for an update that overflows), an initial scale, and a growth interval."""
    interval = rng.randint(3, 5)
    overflowed = [rng.random() < 0.12 for _ in range(60)]
    # Two growths, two overflows in a row, and an overflow soon after another one are enough to detect each mistake.
    overflowed[: 5 * interval + 1] = [False] * (2 * interval + 1) + [True, True] + [False] * (3 * interval - 2)
    overflowed[2 * interval + 4] = True
    scale = 2.0 ** rng.randint(4, 12)
    text = f"overflowed = {overflowed[:12]} and so on, scale = {scale:g}, growth_interval = {interval}"
    return (overflowed, scale, interval), text


scales_after = Definition(
    case=scales_after_case,
    mistakes={
        "not-in-a-row": variant("scales_after", ("0 if bad else in_a_row + 1", "in_a_row + (not bad)")),
        "never-begins-again": variant("scales_after", ("* 2, 0", "* 2, growth_interval - 1")),
        "before": variant("scales_after", ("= [], 0", "= [scale], 0"), ("return scales", "return scales[:-1]")),
    },
)
