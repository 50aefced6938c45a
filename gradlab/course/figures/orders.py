"""orders_figure: loops whose lines stand in many orders, each with its loss and with what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from ...drawing import ACTIVATIONS, FAINT, GRADIENTS, GREY, INK, LOSS, OPTIMIZER, WRONG, own_look, tint

# What a line touches gives it its colour; zero_grad leaves nothing behind, so its box is empty and dashed.
_LOOKS: dict[str, dict[str, Any]] = {
    "zero": {"facecolor": "white", "edgecolor": GREY, "linestyle": (0, (3, 2))},
    "forward": {"facecolor": tint(ACTIVATIONS, 0.75), "edgecolor": ACTIVATIONS},
    "backward": {"facecolor": tint(GRADIENTS, 0.75), "edgecolor": GRADIENTS},
    "step": {"facecolor": tint(OPTIMIZER, 0.6), "edgecolor": OPTIMIZER},
}
_PLAIN: dict[str, Any] = {"facecolor": FAINT, "edgecolor": GREY}
# All lengths in inches.
_GIVEN, _TOKEN, _GAP, _CURVE, _BETWEEN = 0.6, 1.02, 0.05, 1.05, 0.15
_SIGN, _LETTER = 0.2, 0.12
_ROW, _HEAD, _BELOW = 0.44, 0.5, 0.25


@dataclass(frozen=True)
class Trial:
    """One loop that was run: its lines in order, the loss after each round, and the verdict in a few words."""

    order: tuple[str, ...]
    losses: Sequence[float]
    verdict: str
    good: bool
    """Whether it trained: a tick, or a cross and another colour."""
    stopped: bool = False
    """Whether an error ended it: a cross where the curve ends."""
    given: str = ""
    """What it was given before its first round, in a word."""


def orders_figure(groups: Mapping[str, Sequence[Trial]], columns: int = 2, note: str = "") -> Figure:
    """Draw groups of trials under their headings, one below the other, in so many columns.

    A verdict that all rows of a group share is written once, behind its heading. All curves share one scale, from 0 to
    the largest loss of all; ``note`` stands below them. Raises ValueError for no groups or no column.
    """
    if not groups or columns < 1:
        raise ValueError(f"orders_figure: groups and columns must be at least one, got {len(groups)} and {columns}")
    trials = list(chain.from_iterable(groups.values()))
    tokens = max(len(trial.order) for trial in trials)
    margin = _GIVEN if any(trial.given for trial in trials) else 0.05
    shared = {heading: _shared(members) for heading, members in groups.items()}
    longest = max(0 if shared[heading] else len(t.verdict) for heading, members in groups.items() for t in members)
    wide = margin + tokens * (_TOKEN + _GAP) + _CURVE + _SIGN + _LETTER * longest + _BETWEEN
    rounds = max(len(trial.losses) for trial in trials)
    top = max(chain.from_iterable(trial.losses for trial in trials))
    columns = min(columns, len(groups))
    each = -(-len(groups) // columns)
    stacks = [list(groups.items())[at : at + each] for at in range(0, len(groups), each)]
    high = max(sum(_HEAD + _BELOW + _ROW * len(members) for _, members in stack) for stack in stacks)
    high += _ROW if note else 0.0
    with own_look():
        figure = Figure(figsize=(wide * len(stacks), high), dpi=100)
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set(xlim=(0, wide * len(stacks)), ylim=(high, 0))
        axes.set_axis_off()
        for column, stack in enumerate(stacks):
            y = 0.0
            for heading, members in stack:
                said = f"{heading}   {shared[heading]}".rstrip()
                axes.text(column * wide + margin, y + 0.3, said, fontsize=16, weight="bold", va="center")
                y += _HEAD
                for trial in members:
                    _draw(
                        axes,
                        trial,
                        column * wide + margin,
                        y,
                        tokens,
                        rounds,
                        top,
                        "" if shared[heading] else trial.verdict,
                    )
                    y += _ROW
                y += _BELOW
        axes.text(margin, high - _ROW / 2, note, fontsize=15, color=GREY, va="center")
    return figure


def _shared(members: Sequence[Trial]) -> str:
    """Return the verdict that all have, "" if they differ."""
    return members[0].verdict if len({trial.verdict for trial in members}) == 1 else ""


def _draw(axes: Axes, trial: Trial, x: float, y: float, tokens: int, rounds: int, top: float, word: str) -> None:
    """Draw one row; the upper left corner of its first box is at (x, y)."""
    middle, tall = y + _ROW / 2, _ROW - 0.1
    if trial.given:
        before: dict[str, Any] = {"fontsize": 15, "color": GREY, "ha": "right", "va": "center_baseline"}
        axes.text(x - 0.07, middle, trial.given, **before)
    for at, line in enumerate(trial.order):
        left = x + at * (_TOKEN + _GAP)
        look = _LOOKS.get(line, _PLAIN) | {"boxstyle": "round,pad=0,rounding_size=0.08", "linewidth": 1.5}
        axes.add_patch(FancyBboxPatch((left, middle - tall / 2), _TOKEN, tall, **look))
        axes.text(left + _TOKEN / 2, middle, line, fontsize=15, ha="center", va="center_baseline")
    left, colour = x + tokens * (_TOKEN + _GAP) + 0.12, INK if trial.good else WRONG
    across, bottom = (_CURVE - 0.24) / max(rounds - 1, 1), middle + tall / 2
    axes.plot([left, left + _CURVE - 0.24], [bottom, bottom], color=FAINT, linewidth=1)
    ends = [(left + at * across, bottom - tall * loss / top) for at, loss in enumerate(trial.losses)]
    if ends:
        axes.plot(*zip(*ends, strict=True), color=LOSS if trial.good else WRONG, linewidth=2)
    if trial.stopped:
        end = ends[-1] if ends else (left, bottom - tall)
        axes.plot(*end, marker="x", markersize=9, markeredgewidth=2.5, color=WRONG)
    sign = "\N{CHECK MARK}" if trial.good else "\N{BALLOT X}"
    says: dict[str, Any] = {"fontsize": 15, "color": colour, "va": "center_baseline"}
    axes.text(left + _CURVE - 0.1, middle, f"{sign} {word}".rstrip(), **says)
