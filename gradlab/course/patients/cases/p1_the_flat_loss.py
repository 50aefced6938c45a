"""The patient ``the-flat-loss``."""

from __future__ import annotations

from ..case import CaseDefinition
from .on_digits import digits_names, loss_on_held_out

PATIENT = CaseDefinition(given=digits_names, held_out=loss_on_held_out(), bound=1.5, still=("loss", "norm"))
