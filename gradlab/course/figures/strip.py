"""One update in a thin strip, the same at the end of each notebook's core, with one more part explained each time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ...drawing import BATCH_STYLES, Area, Arrow, Axes, Axis, Drawing, Line, Mark, Text, box_points
from .curves import CourseFigure

STRIP_SIZE = (820, 216)
"""CSS pixels."""
_CALLS = ("zero_grad()", "forward", "backward()", "step()")
_EXPLAINED = {
    "00": {0: "empties .grad", 2: "adds to .grad", 3: "reads .grad"},
    "01": {1: "records a graph", 2: "multiplies slopes, adds uses"},
    "02": {2: "lays arrows head to tail", 3: "moves against their sum"},
    "03": {4: "left out: old arrows stay, momentum 1"},
    "04": {0: "clears first what step() reads"},
    "05": {0: "leaves None, which takes no bytes"},
    "06": {3: "by lr \u00d7 sum, or lr \u00d7 m / \u221as"},
}
"""By notebook, what it has explained of each of the calls; 4 is the way round zero_grad()."""
_WIDE, _TILE, _TOP, _LOW = 25.0, 22.0, 26.0, 12.0  # from tile to tile, a tile, its upper and its lower edge
_ROW = 3.1  # from line to line of the words below a tile


def update_strip(notebook: str) -> CourseFigure:
    """Draw one update with what the notebooks up to this one, such as "02", explain of it, the newest in bold.

    Raises ValueError for a notebook without a strip.
    """
    if notebook not in _EXPLAINED:
        raise ValueError(f"update_strip: notebook must be one of {', '.join(_EXPLAINED)}, got {notebook!r}")
    lines: list[list[tuple[str, str]]] = [[] for _ in range(5)]
    for number, parts in _EXPLAINED.items():
        for place, words in parts.items():
            if number <= notebook:
                lines[place].append((number, words))
    marks: list[Mark] = [*_round(bool(lines[4]), notebook == "03")]
    for place, call in enumerate(_CALLS):
        marks += _tile(place, call, lines[place], notebook)
    told = "; ".join(
        f"{call}: {', '.join(words for _, words in told) or 'not explained yet'}"
        for call, told in zip((*_CALLS, "without zero_grad()"), lines, strict=True)
    )
    axes = Axes(Axis(-2.0, 99.0, ticks="none"), Axis(1.5, 33.0, ticks="none"))
    title = "One update, as far as it is explained"
    return CourseFigure(Drawing(title, marks, (axes,), f"{title}: {told}."), size=STRIP_SIZE)


def _tile(place: int, call: str, lines: list[tuple[str, str]], notebook: str) -> list[Mark]:
    """Return the tile of a call: its name, its picture, and below it what is explained."""
    left, middle = place * _WIDE, place * _WIDE + _TILE / 2
    newest = any(number == notebook for number, _ in lines)
    frame: dict[str, Any] = {"stroke": "ink" if lines else "grey", "dash": "" if lines else "dashed"}
    frame["width"] = 2.6 if newest else 1.2
    outline = box_points(middle, (_LOW + _TOP) / 2, _TILE / 2, (_TOP - _LOW) / 2)
    marks: list[Mark] = [
        Area(f"tile {place}", outline, fill="paper", words=call, **frame),
        Text(f"call {place}", (call,), middle, _TOP - 2.0, where="center", bold=True, size=13.0),
    ]
    if place < len(_CALLS) - 1:
        ends = (left + _TILE + 0.3, 19.0, left + _WIDE - 0.3, 19.0)
        marks.append(Arrow(f"then {place}", ends, "grey", "", 0.6))
    marks += _PICTURES[place](middle)
    for row, (number, words) in enumerate(lines):
        look: dict[str, Any] = {"where": "center", "bold": number == notebook, "size": 11.5}
        marks.append(Text(f"told {place}.{row}", (words,), middle, _LOW - 2.4 - _ROW * row, **look))
    return marks


def _round(told: bool, newest: bool) -> list[Mark]:
    """Return the way from step() back to the first call, and the one round zero_grad() once it is explained."""
    high, start, end = 29.5, 3 * _WIDE + _TILE / 2, _TILE / 2
    back = (start, _TOP, start, high, end, high, end, _TOP + 0.4)
    marks: list[Mark] = [Line("next batch", back, "grey", 1.4)]
    marks.append(Arrow("to zero_grad", (end, _TOP + 2.5, end, _TOP + 0.2), "grey", "", 0.6))
    marks.append(Text("next", ("next batch",), 2.5 * _WIDE, high, where="center", role="grey-text", backed=True))
    if told:
        x, low = _WIDE + 3.0, high - 1.6
        marks.append(
            Line("past", (start - 3.0, _TOP, start - 3.0, low, x, low, x, _TOP + 2.0), "reused", 2.2, "dashed")
        )
        marks.append(Arrow("past tip", (x, _TOP + 2.5, x, _TOP + 0.2), "reused", "", 0.6))
        words = f"zero_grad() {_EXPLAINED['03'][4]}"
        look: dict[str, Any] = {"where": "right", "bold": newest, "role": "reused-text", "size": 11.5}
        marks.append(Text("past name", (words,), x, high + 2.2, **look))
    return marks


def _emptied(middle: float) -> list[Mark]:
    box = box_points(middle, _LOW + 5.5, 4.0, 3.0)
    name = Text("grad", (".grad",), middle, _LOW + 5.5, where="center")
    return [Area("empty", box, stroke="grey", dash="dashed"), name]


def _graph(middle: float) -> list[Mark]:
    marks: list[Mark] = []
    for number, (x, y) in enumerate(((-7.0, 7.0), (-7.0, 3.5), (0.0, 5.2), (7.0, 5.2))):
        node = box_points(middle + x, _LOW + y, 1.6, 1.1)
        marks.append(Area(f"node {number}", node, fill="faint", stroke="ink"))
    for number, (x0, y0, x1) in enumerate(((-5.2, 7.0, -1.9), (-5.2, 3.5, -1.9), (1.8, 5.2, 5.2))):
        ends = (middle + x0, _LOW + y0, middle + x1, _LOW + 5.2)
        marks.append(Arrow(f"edge {number}", ends, "grey", "", 0.5))
    return marks


def _arrows(middle: float) -> list[Mark]:
    joints = np.array([(-8.0, 3.0), (-3.5, 7.0), (1.5, 5.5), (7.5, 8.5)]) + np.array([middle, _LOW])
    ends = (*joints[0], *joints[-1])
    marks: list[Mark] = [Arrow("sum", ends, width=1.4, **BATCH_STYLES["sum"])]
    for number, (start, end) in enumerate(pairwise(joints)):
        marks.append(Arrow(f"part {number}", (*start, *end), width=0.7, **BATCH_STYLES["added"]))
    return marks


def _step(middle: float) -> list[Mark]:
    turn = np.linspace(0.0, 2 * np.pi, 49)
    marks: list[Mark] = []
    for number, size in enumerate((1.0, 0.55)):
        ring = np.column_stack([middle + 9.0 * size * np.cos(turn), _LOW + 5.4 + 4.2 * size * np.sin(turn)])
        marks.append(Line(f"contour {number}", np.ravel(ring), "grey", 1.0))
    marks.append(Arrow("step", (middle + 6.6, _LOW + 7.6, middle + 1.2, _LOW + 5.9), "weights", "paper", 0.8))
    return marks


_PICTURES = (_emptied, _graph, _arrows, _step)
