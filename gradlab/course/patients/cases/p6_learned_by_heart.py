"""The patient ``learned-by-heart``."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ..case import CaseDefinition
from .on_digits import digits_names, held_out_digits, loss_on_held_out


def noisy_names() -> dict[str, Any]:
    """Return 128 pictures with three wrong labels in ten, and 297 others with the right ones."""
    names = digits_names()
    generator = torch.Generator().manual_seed(0)
    noisy = []
    for x, y in names["batches"][:2]:
        wrong = torch.rand(len(y), generator=generator) < 0.3
        noisy.append((x, torch.where(wrong, torch.randint(10, y.shape, generator=generator), y)))
    new_x, new_y = held_out_digits()
    return {"noisy": noisy, "new_x": new_x, "new_y": new_y, "loss_fn": names["loss_fn"], "build_with_dropout": build}


def build() -> nn.Module:
    """Return a network with dropout; the run has seeded its weights."""
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 10))


PATIENT = CaseDefinition(
    given=noisy_names,
    held_out=loss_on_held_out(),
    bound=1.0,
    curve=("losses", "loss on new pictures", "epochs"),
    still=("curve", "loss"),
)
