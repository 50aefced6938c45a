"""The patient ``three-mistakes``, which is healthy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..case import CaseDefinition
from ..run_loop import LoopOutcome
from .on_digits import digits_names, held_out_digits


def loss_on_changed_digits(names: Mapping[str, Any]) -> float:
    """Return the loss on held-out digits after a small, nasty change of each picture."""
    x, y = held_out_digits()
    x = x.clone().requires_grad_()
    loss_fn = torch.nn.functional.cross_entropy
    (slope,) = torch.autograd.grad(loss_fn(names["model"](x), y), x)
    with torch.no_grad():
        return float(loss_fn(names["model"](x + 0.05 * slope.sign()), y))


def still_changed(outcome: LoopOutcome, cured: LoopOutcome) -> str:
    """Say if the pictures are no longer changed before they are learned."""
    last, _ = digits_names()["batches"][-1]
    x = outcome.names.get("x")
    if isinstance(x, torch.Tensor) and x.shape == last.shape and not torch.equal(x.detach(), last):
        return ""
    return "The network learns from the pictures as they are: they are no longer changed before the update."


PATIENT = CaseDefinition(
    given=digits_names,
    held_out=loss_on_changed_digits,
    bound=1.0,
    measure="loss on 297 held-out digits after a nasty change",
    also=still_changed,
)
