"""Memory in words: what a peak comes from, and how it stands against a card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..formatting import bytes_text

_CALLS = ("zero_grad", "backward", "step", "update", "unscale_", "clip_grad_norm_")
"""Statements that are known by what they call; the others by what they assign or by how they begin."""


def caused(statement: str, module: str = "") -> str:
    """Say where a peak lies: ``while backward ran, in head``."""
    at = f"while {statement} ran" if statement in _CALLS else f"at {statement}"
    if not module:
        return at
    # the parts of a Sequential have numbers for names
    return f"{at}, in {'module ' if module.isdigit() else ''}{module}"


def against(card: str, holds: float, peak: float) -> str:
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


def fits(bars: Mapping[str, float], cards: Sequence[tuple[str, int]]) -> str:
    """Say which of the cards a peak fits: ``fits A100-80 and H100, not T4, L4 or A100-40``."""
    total = sum(bars.values())
    fit = [name for name, holds in cards if total <= holds]
    other = [name for name, holds in cards if total > holds]
    if not cards:
        return ""
    if not other:
        return f"fits {listed(fit, 'and')}"
    if not fit:
        largest, holds = max(cards, key=lambda card: card[1])
        if len(cards) == 1:
            return f"does not fit {largest}: {times(total / holds)} what it holds"
        return f"fits none: {times(total / holds)} what {largest} holds"
    return f"fits {listed(fit, 'and')}, not {listed(other, 'or')}"


def listed(names: Sequence[str], last: str) -> str:
    """Write a list in words: ``T4, L4 or A100-40``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}" if names else ""
