"""The strip that ends each notebook's core: a picture of one update, with more explanations in each notebook."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...drawing import BATCH_STYLES, Area, Arrow, Axes, Axis, Drawing, Line, Mark, Text, box_points
from .curves import CourseFigure

STRIP_SIZE = (820, 216)
"""Width and height in CSS pixels, with room for three lines of text below a tile."""
_CALLS = ("zero_grad()", "forward", "backward()", "step()")
_EXPLAINED = {
    "00": {0: "empties .grad", 2: "adds to .grad", 3: "reads .grad"},
    "01": {1: "records a graph", 2: "multiplies slopes, adds uses"},
    "02": {2: "lays arrows head to tail", 3: "moves against their sum"},
    "03": {4: "left out: old arrows stay, momentum 1"},
    "04": {0: "clears first what step() reads"},
    "05": {0: "leaves None: no bytes"},
    "06": {3: "by lr \u00d7 sum, or lr \u00d7 m / \u221as"},
    "07": {0: "once a window", 2: "once a micro-batch"},
    "08": {1: "in 16 bits under autocast", 3: "after unscale_(), or skipped"},
    "09": {1: "keeps activations: bytes"},
    "10": {3: "the place to check .grad"},
    "11": {2: "averages over the ranks"},
    "12": {0: "in three of four places"},
}
"""The explanations that each notebook adds, by index in ``_CALLS``; 4 is for the path that skips zero_grad()."""
_WIDE, _TILE, _TOP, _LOW = 25.0, 22.0, 26.0, 12.0  # in axis units: tile spacing, and a tile's width, top and bottom
_ROW = 3.1  # line spacing of the text below a tile, in axis units


def update_strip(notebook: str) -> CourseFigure:
    """Draw one update with the explanations from all notebooks up to ``notebook``, such as "02", the newest in bold.

    Raises ValueError for a notebook without a strip.
    """
    if notebook not in _EXPLAINED:
        raise ValueError(f"update_strip: notebook must be one of {', '.join(_EXPLAINED)}, got {notebook!r}")
    explained = {number: parts for number, parts in _EXPLAINED.items() if number <= notebook}
    lines = [[(number, parts[index]) for number, parts in explained.items() if index in parts] for index in range(5)]
    marks = _round(notebook)
    for index, call in enumerate(_CALLS):
        marks += _tile(index, call, lines[index], notebook)
    marks += _pictures(*(index * _WIDE + _TILE / 2 for index in range(4)))
    summary = "; ".join(
        f"{call}: {', '.join(text for _, text in line) or 'not explained yet'}"
        for call, line in zip((*_CALLS, "without zero_grad()"), lines, strict=True)
    )
    more = max(max(map(len, lines)) - 3, 0) * _ROW
    axes = Axes(Axis(-2.0, 99.0, ticks="none"), Axis(1.5 - more, 33.0, ticks="none"))
    size = (STRIP_SIZE[0], round(STRIP_SIZE[1] * (31.5 + more) / 31.5))
    title = "One update, as far as it is explained"
    return CourseFigure(Drawing(title, marks, (axes,), f"{title}: {summary}."), size=size)


def _tile(index: int, call: str, lines: list[tuple[str, str]], notebook: str) -> list[Mark]:
    left, middle = index * _WIDE, index * _WIDE + _TILE / 2
    newest = any(number == notebook for number, _ in lines)
    frame: dict[str, Any] = {"stroke": "ink" if lines else "grey", "dash": "" if lines else "dashed"}
    frame["width"] = 2.6 if newest else 1.2
    outline = box_points(middle, (_LOW + _TOP) / 2, _TILE / 2, (_TOP - _LOW) / 2)
    marks: list[Mark] = [
        Area(f"tile {index}", outline, fill="paper", words=call, **frame),
        Text(f"call {index}", (call,), middle, _TOP - 2.0, where="center", bold=True, size=13.0),
    ]
    if index < len(_CALLS) - 1:
        ends = (left + _TILE + 0.3, 19.0, left + _WIDE - 0.3, 19.0)
        marks.append(Arrow(f"then {index}", ends, "grey", "", 0.6))
    for row, (number, explanation) in enumerate(lines):
        style: dict[str, Any] = {"where": "center", "bold": number == notebook, "size": 11.5}
        marks.append(Text(f"told {index}.{row}", (explanation,), middle, _LOW - 2.4 - _ROW * row, **style))
    return marks


def _round(notebook: str) -> list[Mark]:
    """Return the marks of the path from step() to zero_grad() and, from notebook 03 on, of the path that skips it."""
    high, start, end = 29.5, 3 * _WIDE + _TILE / 2, _TILE / 2
    marks: list[Mark] = [
        Line("next batch", (start, _TOP, start, high, end, high, end, _TOP + 0.4), "grey", 1.4),
        Arrow("to zero_grad", (end, _TOP + 2.5, end, _TOP + 0.2), "grey", "", 0.6),
        Text("next", ("next batch",), 3.15 * _WIDE, high, where="center", role="grey-text", backed=True),
    ]
    if notebook < "03":
        return marks
    x, low, left = _WIDE + 3.0, high - 1.6, start - 3.0
    style: dict[str, Any] = {"where": "right", "bold": notebook == "03", "role": "reused-text", "size": 11.5}
    return [
        *marks,
        Line("past", (left, _TOP, left, low, x, low, x, _TOP + 2.0), "reused", 2.2, "dashed"),
        Arrow("past tip", (x, _TOP + 2.5, x, _TOP + 0.2), "reused", "", 0.6),
        Text("past name", (f"zero_grad() {_EXPLAINED['03'][4]}",), x, high + 2.2, **style),
    ]


def _pictures(empty: float, graph: float, arrows: float, step: float) -> list[Mark]:
    box = box_points(empty, _LOW + 5.5, 4.0, 3.0)
    marks: list[Mark] = [
        Area("empty", box, stroke="grey", dash="dashed"),
        Text("grad", (".grad",), empty, _LOW + 5.5, where="center"),
        Arrow("step", (step + 6.6, _LOW + 7.6, step + 1.2, _LOW + 5.9), "weights", "paper", 0.8),
    ]
    for x, y in ((-7.0, 7.0), (-7.0, 3.5), (0.0, 5.2), (7.0, 5.2)):
        node = box_points(graph + x, _LOW + y, 1.6, 1.1)
        marks.append(Area(f"node {x} {y}", node, fill="faint", stroke="ink"))
    for x0, y0, x1 in ((-5.2, 7.0, -1.9), (-5.2, 3.5, -1.9), (1.8, 5.2, 5.2)):
        ends = (graph + x0, _LOW + y0, graph + x1, _LOW + 5.2)
        marks.append(Arrow(f"edge {x0} {y0}", ends, "grey", "", 0.5))
    joints = np.array([(-8.0, 3.0), (-3.5, 7.0), (1.5, 5.5), (7.5, 8.5)]) + np.array([arrows, _LOW])
    marks.append(Arrow("sum", (*joints[0], *joints[-1]), width=1.4, **BATCH_STYLES["sum"]))
    for number, ends in enumerate(np.hstack([joints[:-1], joints[1:]])):
        marks.append(Arrow(f"part {number}", ends, width=0.7, **BATCH_STYLES["added"]))
    turn = np.linspace(0.0, 2 * np.pi, 49)
    for size in (1.0, 0.55):
        ring = np.column_stack([step + 9.0 * size * np.cos(turn), _LOW + 5.4 + 4.2 * size * np.sin(turn)])
        marks.append(Line(f"contour {size}", np.ravel(ring), "grey", 1.0))
    return marks
