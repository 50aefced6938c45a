"""The patient ``killed-at-night``."""

from __future__ import annotations

import math

from ..case import CaseDefinition
from ..run_loop import LoopOutcome
from .on_digits import digits_names, loss_on_held_out


def still_logs(outcome: LoopOutcome, cured: LoopOutcome) -> str:
    """Say if the mean loss is no longer computed, or if graphs still pile up."""
    nodes = [row.nodes for row in outcome.history.rows]
    if nodes and nodes[-1] > 4 * nodes[0]:
        return f"The loop still holds on to {nodes[-1]:,} graph nodes; after its first update it held {nodes[0]:,}."
    try:
        mean, right = float(outcome.names["mean_loss"]), float(cured.names["mean_loss"])
    except (KeyError, TypeError, ValueError):
        return "The mean of all losses is no longer computed: `mean_loss` is not a number."
    if math.isclose(mean, right, rel_tol=1e-3):
        return ""
    return f"`mean_loss` is {mean:.4f}, but the mean of all losses is {right:.4f}."


PATIENT = CaseDefinition(
    given=digits_names,
    held_out=loss_on_held_out(),
    bound=2.0,
    also=still_logs,
    shows_nodes=True,
    still=("nodes", "loss"),
)
