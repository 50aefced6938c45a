"""The pictures of a patient: curves of one run or of two, the gradient, and the doctor's card of the still."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...doctor import Finding
from ...drawing import (
    CodeText,
    Dots,
    Drag,
    Drawing,
    Mark,
    PanelBuilder,
    Path,
    Readout,
    Side,
    Spot,
    Text,
    draw,
    draw_loop,
    draw_message,
    make_axes,
    text_width,
    value_limits,
    wrapped,
)
from ...formatting import short
from .loop_history import LoopHistory
from .patient_words import finding_head, finding_seen, what_to_do

_STYLES = {"sick": ("wrong", "dashed", 1.8), "healthy": ("loss", "", 1.8)}
_MOST_POINTS = 600
_ASIDE = (0.0, -8.0, 8.0, -16.0, 16.0, -30.0, 30.0)  # CSS pixels from the end of a curve to its name
_OVER = (-30.0, 30.0, 0.0)  # of one that ends early, so that it does not stand on another one
_NAMES = 124.0  # CSS pixels at the right of the axes for the names of the curves
_WIDE, _HIGH, _HIGHEST = 430, 215, 400  # CSS pixels of a panel
_SIZE, _LINE, _APART = 13.0, 19.0, 5.0  # of the card
_CODE, _ADVANCE = 12.0, 0.602


@dataclass(frozen=True)
class PatientCurve:
    """Numbers of one run, the first at 1."""

    name: str
    values: Sequence[float]
    sick: bool


def draw_curves(
    title: str, across: str, curves: Sequence[PatientCurve], at: int | None, width: int, height: int
) -> Drawing:
    """Draw curves on one pair of axes; ``at`` is the place that a slider has chosen on the last one, None for none."""
    panel = PanelBuilder(title, width, height)
    kept = [(curve, *_finite(curve.values)) for curve in curves]
    values = np.concatenate([y for _, _, y in kept] or [np.zeros(0)])
    low, high, log = value_limits(values, 1.15)
    last = max((len(curve.values) for curve in curves), default=1)
    below = Side(0.0, float(max(last, 2)), words=across, ticks="updates")
    right = width - min(_NAMES, 0.32 * width)
    axes = make_axes((width, height), 54.0, 34.0, right, height - 38.0, below, Side(low, high, log, words=""))
    panel.axes(axes)
    panel.corner("logarithmic" if log else "")
    said = []
    for curve, x, y in kept:
        role, dash, thick = _STYLES["sick" if curve.sick else "healthy"]
        if not len(x):
            said.append(f"{curve.name}: nothing")
            continue
        places = axes.places(x, y)
        readout = Readout(f"{curve.name}, {across[:-1]} {{x}}: {{y}}", axes.x.axis, axes.y.axis)
        if len(x) > 1:
            panel.add(Path(f"curve {curve.name}", places, stroke=role, width=thick, dash=dash, readout=readout))
        else:
            panel.add(Dots(f"curve {curve.name}", places, size=8.0, fill=role, words=f"{curve.name}: {short(y[0])}"))
        early = len(curve.values) < last
        end = "then it stops" if early else short(float(y[-1]))
        if not math.isfinite(curve.values[-1]):
            end = "then inf or NaN"
        said.append(f"{curve.name}: {short(float(y[0]))} at first, {short(float(y[-1]))} at the end")
        x_name = (float(places[-2]) if early else axes.right) + 8
        role = f"{role}-text" if role == "wrong" else role
        for text in (f"{curve.name}{',' * early} {end}", end, curve.name):  # the first that has room
            spots = [Spot(text, x_name, float(places[-1]) + down) for down in (_OVER if early else _ASIDE)]
            if panel.label(f"name {curve.name}", spots, size=12.0, bold=True, role=role):
                break
    if at is not None and curves:
        chosen = curves[-1].values[at - 1] if 1 <= at <= len(curves[-1].values) else math.nan
        x_at = axes.x.at(float(at))
        panel.add(Path("chosen", (x_at, axes.bottom, x_at, axes.top), stroke="grey", width=1.0, dash="dotted"))
        if math.isfinite(chosen):
            drag, spot = Drag("update", axes.x.axis, axes.y.axis), (x_at, axes.y.at(chosen))
            words = f"{across[:-1]} {at:,}: {short(chosen)}; drag it to another"
            panel.add(Dots("here", spot, size=11.0, fill="paper", stroke="ink", width=1.5, words=words, drag=drag))
    return panel.finish(f"{title}. " + "; ".join(said) + "." if said else f"{title}: nothing was seen.")


def _finite(values: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    y = np.array(values, dtype=float)
    kept = np.flatnonzero(np.isfinite(y))
    if len(kept) > _MOST_POINTS:
        kept = kept[np.unique(np.linspace(0, len(kept) - 1, _MOST_POINTS).astype(int))]
    return kept + 1.0, y[kept]


def draw_gradient(history: LoopHistory, number: int, title: str, width: int, height: int) -> Drawing:
    """Draw what `.grad` held at an update, under a title of its own unless that is ""."""
    drawing = draw_message("No step has been seen.", "gradient in .grad", width, height)
    if number in history.gradients:
        drawing = draw(history.gradients[number], width, height)
    if not title:
        return drawing
    marks = [replace(m, text=title) if isinstance(m, Text) and m.id == "title" else m for m in drawing.marks]
    return replace(drawing, title=title, marks=marks)


def draw_card(source: str, line: int, findings: Sequence[Finding], words: Sequence[str], width: int) -> Drawing:
    """Draw the loop with the line to edit, below it what the doctor has found, the fix, and what was seen."""
    loop = draw_loop(source, (line,) if line else (), (), (), width)
    marks: list[Mark] = [
        replace(mark, fill="wrong/25") if mark.id == f"line {line}" else mark  # type: ignore[call-arg]
        for mark in loop.marks
    ]
    do = what_to_do(findings[0]) if findings else "edit"
    marks += _edit_here(loop, line, width, "edit here" if do == "edit" else do)
    y = float(loop.height)
    room = width - 10.0
    said = []

    def write(id: str, text: str, *, bold: bool = False, role: str = "ink") -> None:
        nonlocal y
        for at, part in enumerate(wrapped(text, room * (0.92 if bold else 1.0), _SIZE)):
            marks.append(Text(f"{id} {at}", 2.0, y + _LINE / 2, part, size=_SIZE, bold=bold, role=role))
            y += _LINE
        said.append(text)

    for number, finding in enumerate(findings):
        write(f"head {number}", finding_head(finding), bold=True, role="wrong-text")
        write(f"finding {number}", finding_seen(finding).replace("`", ""))
        if finding.fix:
            marks.append(Text(f"fix {number}", 2.0, y + _LINE / 2, "Fix:", size=_SIZE, bold=True))
            if finding.fix_is_line:
                marks.append(CodeText(f"fix {number} 0", 36.0, y + _LINE / 2, finding.fix, size=_CODE))
                y += _LINE
            else:
                for at, part in enumerate(wrapped(finding.fix.replace("`", ""), room - 34.0, _SIZE)):
                    marks.append(Text(f"fix {number} {at}", 36.0, y + _LINE / 2, part, size=_SIZE))
                    y += _LINE
            said.append(f"Fix: {finding.fix}")
        y += _APART
    for number, text in enumerate(words):
        write(f"words {number}", text)
        y += _APART
    return Drawing("the doctor's card", marks, " ".join(said), width, round(y))


def lay_out_still(
    card: Callable[[int], Drawing], panels: Sequence[Callable[[int, int], Drawing]]
) -> tuple[list[Drawing], int, Drawing | None]:
    """Return what an instrument's still shows: one or two panels beside the card, more in rows of two with it."""
    drawn = card(_WIDE)
    if len(panels) > 2:
        high = min(drawn.height, _HIGHEST)
        return [drawn, panels[0](_WIDE, high), *(panel(_WIDE, 260) for panel in panels[1:])], 2, None
    high = min(max(drawn.height // max(len(panels), 1), _HIGH), _HIGHEST)
    return [panel(_WIDE, high) for panel in panels], 1, drawn


def _edit_here(loop: Drawing, line: int, width: int, words: str) -> list[Mark]:
    """Return what to do, in words beside the line to edit, where its last row leaves room."""
    pieces = [m for m in loop.marks if isinstance(m, CodeText) and m.id.startswith(f"code {line} ")]
    if not pieces:
        return []
    last = pieces[-1]
    free = width - last.x - len(last.text) * last.size * _ADVANCE
    if free < text_width(words, 11.0, True) + 20.0:
        return []
    return [Text("edit here", width - 8.0, last.y, words, "wrong-text", 11.0, "end", bold=True)]
