"""The axis below a picture of memory: the words of the statements, and one bracket for many micro-batches."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from matplotlib.collections import LineCollection

from ..scenes import Memory
from .canvas import Canvas
from .palette import GREY, INK
from .spread import FIRST, LETTER_WIDTH, StatementLayout, layout_statements, repeated, visible_labels
from .style import own_look

_LONGEST = 11  # letters of a word
_NARROW = 40.0  # CSS pixels: a block of statements that is narrower has no room for their words


class Statements:
    """Lays statements out from left to right and writes their words into the panel's background."""

    def __init__(self, panel: Canvas[Any]) -> None:
        """Make the artists on ``panel.axes``."""
        self._panel, self._axes = panel, panel.axes  # type: ignore[attr-defined]
        self._known: object = None
        self._spread = layout_statements([0], [0], [], 1.0)
        self._brackets = LineCollection([], colors=GREY, linewidths=1.2)
        self._brackets.set_clip_on(False)
        self._brackets.set_transform(self._axes.transData)
        panel.figure.add_artist(self._brackets)
        self._times: list[Any] = []

    def lay_out(self, scene: Memory, ends: list[int], first: list[int], moved: list[bool]) -> StatementLayout:
        """Return the places of all statements and points; words are written anew only when they differ."""
        words = list(scene.statements)
        known = (words, ends, first, moved)
        if known == self._known:
            return self._spread
        self._known = known
        panel = self._panel
        wide = self._axes.bbox.width / (panel.figure.dpi / 100)
        self._spread = layout_statements(ends, first, moved, wide)
        panel.set_limits(self._axes, x=(0.0, wide))
        self._write(words, [*first, len(words)], wide)
        panel.refresh()
        return self._spread

    def _write(self, words: list[str], cuts: list[int], wide: float) -> None:
        places = self._spread.statements
        covered: set[int] = set()
        lines, said = [], []
        for begin, end in pairwise(cuts):
            if (block := repeated(words[begin:end])) is None:
                continue
            at, length, count = block
            at += begin
            left, right = places[at][0], places[at + length * count - 1][1]
            if (right - left) / count < _NARROW and right - left > 24:
                covered |= set(range(at, at + length * count))
                lines.append([(left + 1, -0.02), (left + 1, -0.05), (right - 1, -0.05), (right - 1, -0.02)])
                said.append(((left + right) / 2, _many(words[at : at + length], count, right - left)))
        short = [word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "\u2026" for word in words]
        chosen = visible_labels(short, places, covered, flat=True)
        flat = bool(lines) or set(FIRST) & set(words) <= {words[at] for at in chosen}
        if not flat:
            chosen = visible_labels(short, places, covered, flat=False)
        with own_look():
            middles = [sum(places[at]) / 2 for at in chosen]
            self._axes.set_xticks(middles, [short[at] for at in chosen], parse_math=False, fontsize=9)
            self._bracket(lines, said)
        self._axes.tick_params(axis="x", pad=20 if lines else 2)
        slanted = {"rotation": 50, "ha": "right", "rotation_mode": "anchor"}
        for label in self._axes.get_xticklabels():
            label.set(**({"rotation": 0, "ha": "center"} if flat else slanted))

    def _bracket(self, lines: list[list[tuple[float, float]]], said: list[tuple[float, str]]) -> None:
        across = self._axes.get_xaxis_transform()
        self._brackets.set_transform(across)
        self._brackets.set_segments(lines)
        for old in self._times:
            old.remove()
        look = {"ha": "center", "va": "top", "fontsize": 9, "color": INK, "parse_math": False}
        self._times = [self._axes.text(x, -0.08, text, transform=across, **look) for x, text in said]


def _many(words: list[str], count: int, wide: float) -> str:
    """Say what comes so many times, in what fits: ``16 micro-batches``, ``16 batches``."""
    full = f"{count} micro-batches" if "backward" in words else f"{count} × {words[0]}"
    return next(
        (text for text in (full, f"{count} batches", f"{count} ×") if len(text) * LETTER_WIDTH < wide), f"{count}"
    )
