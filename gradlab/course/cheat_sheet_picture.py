"""The picture of the cheat sheet: what ``.grad`` holds after each call of an update, and after a missing one."""

from __future__ import annotations

import html
from typing import NamedTuple

import numpy as np

from ..drawing import BATCH_STYLES, arrow_outline, colour

_WIDE, _TALL = 90, 44  # CSS pixels of one state
_THICK = 4.5
_ENDS = np.array([(6.0, 36.0), (28.0, 10.0), (58.0, 30.0), (82.0, 5.0)])
"""Where the arrows of three batches begin and end, head to tail."""
_HATCH = (
    '<pattern id="gl-sheet-stale" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="4" height="4" fill="{fill}"/><rect width="1.2" height="4" fill="{ink}"/></pattern>'
)


class GradPicture(NamedTuple):
    """What ``.grad`` holds after a call: for each batch in it whether it is ``"fresh"`` or ``"stale"``."""

    call: str
    says: str
    holds: tuple[str, ...] = ()


GRAD_PICTURES = (
    GradPicture("zero_grad()", "None"),
    GradPicture("backward()", "one batch", ("fresh",)),
    GradPicture("backward()", "and the next", ("fresh", "fresh")),
    GradPicture("step()", "both stale now", ("stale", "stale")),
    GradPicture("backward()", "not cleared!", ("stale", "stale", "fresh")),
)


def picture_html() -> str:
    """Return the states beside each other."""
    states = " ".join(
        f"<figure>{_state_svg(state)}<figcaption><code>{html.escape(state.call)}</code><br>{state.says}</figcaption></figure>"
        for state in GRAD_PICTURES
    )
    return f'<div class="gl-states">{states}</div>'


def _state_svg(state: GradPicture) -> str:
    many = len(state.holds)
    marks = _HATCH.format(fill=colour("stale"), ink=colour("ink")) if "stale" in state.holds else ""
    if many > 1:
        marks += _arrow(_ENDS[0], _ENDS[many], 2.2 * _THICK, "sum")
    for at, kind in enumerate(state.holds):
        marks += _arrow(_ENDS[at], _ENDS[at + 1], _THICK, kind)
    if not many:
        x, y = _ENDS[0]
        marks = f'<circle cx="{x:g}" cy="{y:g}" r="2.5" fill="currentColor"/>'
    words = f"after {state.call}: " + (", ".join(state.holds) or "no gradient")
    return (
        f'<svg viewBox="0 0 {_WIDE} {_TALL}" width="{_WIDE}" height="{_TALL}" role="img" '
        f'aria-label="{html.escape(words)}">{marks}</svg>'
    )


def _arrow(tail: np.ndarray, head: np.ndarray, thick: float, kind: str) -> str:
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in arrow_outline(tail, head, thick))
    style = BATCH_STYLES[kind]
    fill = "url(#gl-sheet-stale)" if kind == "stale" else colour(style["fill"])
    line = f'stroke="{colour("ink")}" stroke-width="{style["width"] / 1.5:.2g}"'
    return f'<polygon points="{corners}" fill="{fill}" {line}/>'
