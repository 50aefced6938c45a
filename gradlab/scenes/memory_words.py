"""Memory in words, and a forecast as a scene."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from ..formatting import bytes_text, join_words
from ..memory import CATEGORIES, MemoryPoint
from .kinds import Memory, StatementLabel

_CALLS = frozenset(
    {
        StatementLabel.ZERO_GRAD,
        StatementLabel.BACKWARD,
        StatementLabel.STEP,
        StatementLabel.UPDATE,
        StatementLabel.UNSCALE,
        StatementLabel.CLIP,
    }
)
"""Statements that are known by what they call; the others by what they assign or by how they begin."""
_WORTH = 0.05  # of the peak: what is less would not help


def peak_location(statement: str, module: str = "") -> str:
    """Say where a peak lies: ``while backward ran, in head``."""
    at = f"while {statement} ran" if statement in _CALLS else f"at {statement}"
    if not module:
        return at
    # the parts of a Sequential have numbers for names
    return f"{at}, in {'module ' if module.isdigit() else ''}{module}"


def share_of_gpu(card: str, holds: float, peak: float) -> str:
    """Say how much of a card a peak takes: ``T4 holds 15 GiB: 0.003 % used at the peak``."""
    if peak > holds > 0:
        return f"{card} holds {bytes_text(holds)}: the peak needs {times(peak / holds)} that"
    return f"{card} holds {bytes_text(holds)}: {percent(peak / holds if holds else 0.0)} used at the peak"


def percent(share: float) -> str:
    """Write a share of 1 in percent with the figures that matter: ``27 %``, ``0.003 %``."""
    of = share * 100
    if of >= 99.5 or of == 0:
        return f"{of:.0f} %"
    if of < 0.0005:
        return "under 0.001 %"
    return f"{of:.0f} %" if of >= 10 else f"{float(f'{of:.1g}'):g} %"


def times(ratio: float) -> str:
    """Write how many times as much: ``1.3 times``, ``82 times``."""
    if ratio >= 9.95:
        return f"{ratio:,.0f} times"
    return f"{ratio:.2g} times" if ratio >= 1.1 else f"{max(ratio, 1.01):.2f} times"


def which_fit(bars: Mapping[str, float], cards: Sequence[tuple[str, int]]) -> str:
    """Say which of the cards a peak fits: ``fits A100-80 and H100, not T4, L4 or A100-40``."""
    total = sum(bars.values())
    fit = [name for name, holds in cards if total <= holds]
    other = [name for name, holds in cards if total > holds]
    if not cards:
        return ""
    if not other:
        return f"fits {join_words(fit)}"
    if not fit:
        largest, holds = max(cards, key=lambda card: card[1])
        if len(cards) == 1:
            return f"does not fit {largest}: {times(total / holds)} what it holds"
        return f"fits none: {times(total / holds)} what {largest} holds"
    return f"fits {join_words(fit)}, not {join_words(other, 'or')}"


def need_sentence(what: str, at_peak: Mapping[str, int], statement: str, module: str) -> str:
    """Say what a peak is: ``llama-8b, batch 1, needs 131 GiB at its peak (while backward ran, in layers.31)``."""
    return f"{what} needs {bytes_text(sum(at_peak.values()))} at its peak ({peak_location(statement, module)})"


def fit_sentence(at_peak: Mapping[str, int], cards: Sequence[tuple[str, int]]) -> str:
    """Say whether a peak fits: one card with its bytes, or several by their names."""
    if len(cards) != 1:
        return which_fit(at_peak, cards)
    (name, holds), peak = cards[0], sum(at_peak.values())
    if peak <= holds:
        return f"fits {with_article(name)} ({bytes_text(holds)}), of which it takes {percent(peak / holds)}"
    return f"does not fit {with_article(name)} ({bytes_text(holds)})"


def suggestions(
    at_peak: Mapping[str, int], holds: int, recipe: Any, *, statement: str, checkpoint: bool, batch: int
) -> str:
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
    smaller.append("a smaller batch and a larger accumulate" if batch > 1 else "a shorter context")
    ideas = {"activations": f"{join_words(smaller, 'or')} (activations: {{}})"}
    if recipe.optimizer != "sgd":
        ideas["optimizer"] = "sgd, which keeps no state (optimizer: {})"
    if not recipe.set_to_none and statement != StatementLabel.STEP:
        ideas["gradients"] = "set_to_none, so that the old gradients are gone before forward (gradients: {})"
    if statement == StatementLabel.STEP and recipe.optimizer in ("adam", "adamw"):
        ideas["other"] = "foreach=False, so that the optimizer needs no copy of all weights at once (other: {})"
    peak = sum(at_peak.values())
    worth = [name for name in sorted(ideas, key=lambda n: -at_peak.get(n, 0)) if at_peak.get(name, 0) > _WORTH * peak]
    if not worth:
        return f"Nearly all of it is weights, gradients and optimizer state: {bytes_text(both + at_peak['optimizer'])}."
    return f"What would help: {'; '.join(ideas[name].format(bytes_text(at_peak[name])) for name in worth)}."


def with_article(card: str) -> str:
    """Put the article before a card's name: ``a T4``, ``an H100``."""
    return f"{'an' if card[:1] in 'AEFHILMNORSX' else 'a'} {card}"


def forecast_scene(points: Sequence[MemoryPoint], card: tuple[str, int] | None = None) -> Memory:
    """Return the scene of one update, the second, which is the one that a forecast is about."""
    statements, starts, at = [], [], 0
    for _, group in groupby(points, key=lambda point: (point.number, point.statement)):
        interval = list(group)
        statements.append(interval[0].statement)
        starts.append(2 * at)
        at += len(interval)
    return Memory(
        statements,
        starts,
        {name: [size for p in points for size in (p.high[name], p.bytes[name])] for name in CATEGORIES},
        [(0, 2)],
        [module for point in points for module in (point.module, point.module)],
        card,
        note="forecast",
    )
