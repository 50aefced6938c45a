"""Run every loop of the two ranks in two real processes, and hold them against one process with all samples."""

from __future__ import annotations

import json
import math
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import mse_loss

from ...processes import launch
from .loop import LR, MOMENTS, SAMPLES_EACH, LoopSettings, all_settings

Vector = tuple[float, float]
IN_ALL = 9
"""As many as the longest loop needs: three windows of three."""
_SECONDS = 60.0


@dataclass(frozen=True)
class MicroSeen:
    """One micro-batch in one rank."""

    own: Vector
    """What this rank's samples added to ``.grad``."""
    before: Vector
    """``.grad`` with that, before any all-reduce."""
    after: Vector
    """``.grad`` when ``backward()`` has ended."""
    sent: tuple[int, ...]
    """Bytes of each all-reduce of this backward pass, as this rank handed them in."""


@dataclass(frozen=True)
class UpdateSeen:
    """One update in one rank."""

    cleared: Vector | None
    """``.grad`` when the first micro-batch came; None where there was none."""
    micros: tuple[MicroSeen, ...]
    weights: Vector
    """After the step."""


TwoRanksSeen = tuple[tuple[UpdateSeen, ...], tuple[UpdateSeen, ...]]
"""What rank 0 and rank 1 saw, update by update."""


class CannotStartError(RuntimeError):
    """The processes could not be run here; the message says why, for a learner."""


@cache
def make_data() -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs (micro-batches x samples x 2) and targets (micro-batches x samples x 1).

    The samples of a micro-batch have different answers: the first are best described by the weights (2.4, -0.4), the
    last by (0.6, 2.2). So the ranks disagree, as ranks do, and what each wants alone is not what both want together.
    """
    generator = torch.Generator().manual_seed(0)
    turns = torch.rand(IN_ALL, 1, generator=generator) + torch.arange(SAMPLES_EACH) * 0.375
    sizes = 1.0 + 0.6 * torch.rand(IN_ALL, SAMPLES_EACH, generator=generator)
    inputs = torch.stack([sizes * (math.pi * turns).cos(), sizes * (math.pi * turns).sin()], dim=-1)
    along = torch.linspace(0.0, 1.0, SAMPLES_EACH).unsqueeze(-1)
    wanted = torch.tensor([2.4, -0.4]) * (1 - along) + torch.tensor([0.6, 2.2]) * along
    noise = 0.4 * torch.randn(IN_ALL, SAMPLES_EACH, generator=generator)
    return inputs, ((inputs * wanted).sum(-1) + noise).unsqueeze(-1)


@cache
def run_ranks() -> dict[LoopSettings, TwoRanksSeen]:
    """Run all loops in two processes, once; raises CannotStartError with words for a learner where that fails."""
    settings = list(all_settings())
    inputs, targets = make_data()
    loops = [
        {"source": each.source, "updates": each.updates, "accumulate": each.accumulate, "split": each.split}
        for each in settings
    ]
    with tempfile.TemporaryDirectory(prefix="gradlab-ranks-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        text = files(__package__).joinpath("rank.py").read_text(encoding="utf-8")
        (place / "rank.py").write_text(text, encoding="utf-8")
        given = {"inputs": inputs.tolist(), "targets": targets.tolist(), "loops": loops}
        (place / "loops.json").write_text(json.dumps(given), encoding="utf-8")
        try:
            result = launch(place / "rank.py", processes=2, seconds=_SECONDS)
        except (OSError, RuntimeError, ValueError) as error:
            raise CannotStartError(f"Two processes could not be started here: {error}") from error
        if not result:
            raise CannotStartError(result.error)
        seen = [json.loads((place / f"seen-{rank}.json").read_text(encoding="utf-8")) for rank in (0, 1)]
    return {each: (_updates(seen[0][at]), _updates(seen[1][at])) for at, each in enumerate(settings)}


def whole_gradient(weights: Vector, first: int, accumulate: int) -> Vector:
    """Return the gradient of the mean loss over all samples of a window, which begins at micro-batch ``first``."""
    inputs, targets = (part[first : first + accumulate].flatten(0, 1) for part in make_data())
    w = torch.tensor([weights], requires_grad=True)
    (gradient,) = torch.autograd.grad(mse_loss(inputs @ w.T, targets), w)
    return gradient[0, 0].item(), gradient[0, 1].item()


@cache
def one_process(accumulate: int) -> tuple[Vector, ...]:
    """Return the weights of one process that gets all samples, from the start and after each update."""
    path: list[Vector] = [(0.0, 0.0)]
    for update in range(MOMENTS // (2 + 2 * accumulate)):
        (w1, w2), (g1, g2) = path[-1], whole_gradient(path[-1], update * accumulate, accumulate)
        path.append((w1 - LR * g1, w2 - LR * g2))
    return tuple(path)


@cache
def best_weights() -> Vector:
    """Return the weights with the least loss over all micro-batches."""
    inputs, targets = (part.flatten(0, 1) for part in make_data())
    best = torch.linalg.lstsq(inputs, targets).solution.flatten()
    return best[0].item(), best[1].item()


def _updates(seen: list[dict[str, Any]]) -> tuple[UpdateSeen, ...]:
    return tuple(
        UpdateSeen(
            None if update["cleared"] is None else _vector(update["cleared"]),
            tuple(
                MicroSeen(
                    _vector(micro["own"]), _vector(micro["before"]), _vector(micro["after"]), tuple(micro["sent"])
                )
                for micro in update["micros"]
            ),
            _vector(update["weights"]),
        )
        for update in seen
    )


def _vector(numbers: list[float]) -> Vector:
    first, second = numbers
    return first, second
