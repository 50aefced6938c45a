"""The patient ``the-second-update``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..case import CaseDefinition
from ..run_loop import LoopOutcome


def wave_names() -> dict[str, Any]:
    """Return 300 values of a sine wave, as a sequence of one number each."""
    return {"wave": torch.sin(torch.arange(0, 60, 0.2)).view(-1, 1, 1)}


def loss_further_on(names: Mapping[str, Any]) -> float:
    """Return the error on a piece of the wave that no update has seen."""
    wave = torch.sin(torch.arange(60, 80, 0.2)).view(-1, 1, 1)
    with torch.no_grad():
        out, _ = names["model"]["rnn"](wave[:-1], torch.zeros(1, 1, 16))
        return float((names["model"]["head"](out) - wave[1:]).square()[10:].mean())


def carries_state(outcome: LoopOutcome, cured: LoopOutcome) -> str:
    """Say if the state is no longer carried from one piece to the next."""
    kept = outcome.names.get("state")
    if isinstance(kept, torch.Tensor) and bool(kept.detach().abs().sum()):
        return ""
    return "The network no longer remembers: after the loop `state` is not what the last piece left in it."


PATIENT = CaseDefinition(
    given=wave_names,
    held_out=loss_further_on,
    bound=0.1,
    measure="squared error on a later piece of the wave",
    also=carries_state,
)
