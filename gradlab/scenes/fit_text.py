"""Will it fit, in words: the peak and its cause, the card, and what would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..formatting import bytes_text
from .memory_text import caused, fits, listed, percent

_WORTH = 0.05  # of the peak: what is less would not help


def needs(what: str, at_peak: Mapping[str, int], statement: str, module: str) -> str:
    """Say what a peak is: ``llama-8b, batch 1, needs 131 GiB at its peak (while backward ran, in layers.31)``."""
    return f"{what} needs {bytes_text(sum(at_peak.values()))} at its peak ({caused(statement, module)})"


def verdict(at_peak: Mapping[str, int], cards: Sequence[tuple[str, int]]) -> str:
    """Say whether a peak fits: one card with its bytes, or several by their names."""
    if len(cards) != 1:
        return fits(at_peak, cards)
    (name, holds), peak = cards[0], sum(at_peak.values())
    if peak <= holds:
        return f"fits {a(name)} ({bytes_text(holds)}), of which it takes {percent(peak / holds)}"
    return f"does not fit {a(name)} ({bytes_text(holds)})"


def helps(at_peak: Mapping[str, int], holds: int, recipe: Any, *, statement: str, checkpoint: bool, batch: int) -> str:
    """Say what would make a peak smaller that does not fit into ``holds`` bytes, the largest share first.

    Only what can help: there is no use in a smaller batch when the weights alone are too much. ``recipe`` is a Recipe.
    """
    weights = at_peak.get("weights", 0)
    if weights > holds:
        return f"The weights alone are {bytes_text(weights)}: whatever else is changed, one such card cannot hold them."
    both = weights + at_peak.get("gradients", 0)
    if both > holds:
        return f"Weights and gradients alone are {bytes_text(both)}, more than one such card can hold."
    smaller = ["checkpointing"] * (not checkpoint) + ["AMP"] * (recipe.amp == "off")
    smaller.append("a smaller batch with a longer window" if batch > 1 else "a shorter context")
    ideas = {"activations": f"{listed(smaller, 'or')} (activations: {{}})"}
    if recipe.optimizer != "sgd":
        ideas["optimizer"] = "sgd, which keeps no state (optimizer: {})"
    if not recipe.set_to_none and statement != "step":
        ideas["gradients"] = "set_to_none, so that the old gradients are gone before forward (gradients: {})"
    if statement == "step" and recipe.optimizer in ("adam", "adamw"):
        ideas["other"] = "foreach=False, so that the optimizer needs no copy of all weights at once (other: {})"
    peak = sum(at_peak.values())
    worth = [name for name in sorted(ideas, key=lambda n: -at_peak.get(n, 0)) if at_peak.get(name, 0) > _WORTH * peak]
    if not worth:
        return f"Nearly all of it is weights, gradients and optimizer state: {bytes_text(both + at_peak['optimizer'])}."
    return f"What would help: {'; '.join(ideas[name].format(bytes_text(at_peak[name])) for name in worth)}."


def a(card: str) -> str:
    """Put the article before a card's name: ``a T4``, ``an H100``."""
    return f"{'an' if card[:1] in 'AEFHILMNORSX' else 'a'} {card}"
