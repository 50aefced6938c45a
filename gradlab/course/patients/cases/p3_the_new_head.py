"""The patient ``the-new-head``."""

from __future__ import annotations

from typing import Any

from torch import nn

from ..case import CaseDefinition
from ..run_loop import LoopOutcome
from .on_digits import digits_names, loss_on_held_out


def names_with_an_old_head() -> dict[str, Any]:
    """Return what the loop is given; the head that ``build()`` makes can be told from a new one."""
    names = digits_names()

    def build() -> nn.Module:
        model: nn.Module = names["build"]()
        model[4].is_old = True  # type: ignore[index]
        return model

    return {**names, "build": build}


def has_a_new_head(outcome: LoopOutcome, cured: LoopOutcome) -> str:
    """Say if the old head is still in place."""
    parts = list(outcome.names["model"].children())
    return "The model still has its old head." if not parts or hasattr(parts[-1], "is_old") else ""


PATIENT = CaseDefinition(given=names_with_an_old_head, held_out=loss_on_held_out(), bound=0.5, also=has_a_new_head)
