"""An exercise's picture: yours against expected."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from ...drawing import colour, own_look, themed_svg

INK, STALE, WEIGHTS = map(colour, ("ink", "stale", "weights"))

_BARS = 12  # up to so many numbers are bars, more are a curve


def answer_figure(yours: Any, expected: Any, x: str = "", y: str = "") -> str | None:
    """Draw two rows of numbers, or two dicts of numbers, over each other; return SVG, None where there is no row."""
    labels = list(expected) if isinstance(expected, Mapping) else None
    mine, right = _row(yours), _row(expected)
    if right is None or mine is None or right.size < 2:
        return None
    with own_look(), matplotlib.rc_context({"svg.hashsalt": "gradlab", "svg.fonttype": "path"}):
        figure = Figure(figsize=(5.6, 2.6), layout="constrained")
        canvas: Any = FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        if labels or right.size <= _BARS:
            at = np.arange(right.size)
            axes.bar(at - 0.2, right, 0.4, color=WEIGHTS, label="expected")
            axes.bar(np.arange(mine.size) + 0.2, mine, 0.4, color="white", edgecolor=STALE, hatch="///", label="yours")
            axes.set_xticks(at, labels if labels else [str(i) for i in at])
            axes.axhline(0, color=INK, linewidth=0.8)
        else:
            axes.plot(right, color=WEIGHTS, linewidth=4, alpha=0.6, label="expected")
            axes.plot(mine, color=STALE, linestyle=(0, (4, 1.5)), label="yours")
        axes.set(xlabel=x, ylabel=y)
        axes.margins(x=0.03, y=0.08)
        figure.legend(loc="outside upper left", ncols=2, frameon=False)
        out = StringIO()
        canvas.print_svg(out, metadata={"Date": None, "Creator": None})
    return themed_svg(out.getvalue())


def _row(value: Any) -> Any:
    """Return numbers in a row, None where a value is none."""
    if isinstance(value, Mapping):
        value = list(value.values())
    try:
        row = np.asarray(value, dtype=float).reshape(-1)
    except (TypeError, ValueError, RuntimeError):
        return None
    return row if row.size else None
