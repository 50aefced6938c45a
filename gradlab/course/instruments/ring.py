"""The ring of orders, an instrument that runs the four calls of a loop in any order and explains the effect."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from ...drawing import (
    AXES_EDGE,
    Area,
    Arrow,
    Axes,
    Axis,
    AxisSpan,
    Dots,
    Drawing,
    Key,
    Line,
    Mark,
    Text,
    applied_text,
    batch_area,
    batch_key,
    batch_style,
    box_points,
)
from ...widgets import Control, Instrument, View
from ..figures.curves import CourseFigure, curves
from .ring_trial import PIECES, USUAL, Grad, LoopCall, OrderRun, run_and_judge

CALLS_SHOWN = 12  # number of calls that are shown one by one: three turns of four calls
CALL_STYLES: dict[str, dict[str, Any]] = {
    "zero_grad": {"fill": "paper", "stroke": "grey", "dash": "dashed"},
    "forward": {"fill": "activations/35", "stroke": "activations"},
    "backward": {"fill": "gradients/35", "stroke": "gradients"},
    "step": {"fill": "optimizer/35", "stroke": "optimizer"},
}
_SIGNS = {"right": "\u2713 right", "harmless": "\u2713 harmless", "wrong": "\u2717 wrong", "error": "\u2717 error"}


class RingOfOrders(Instrument):
    """An instrument that runs a loop's calls in any order on digits, and compares the result with the usual order."""

    title = "The ring of orders"

    def controls(self) -> list[Control]:
        """Return the controls for the order, and for the number of calls to show."""
        return [
            Control.order("order", "order of the calls", USUAL, PIECES),
            Control.slider("call", "call", CALLS_SHOWN, range(CALLS_SHOWN + 1), plays=700),
        ]

    def render(self, settings: Mapping[str, Any]) -> View:
        """Return a View with the ring, the contents of ``.grad``, the losses, the verdict, and the code that ran."""
        ran = run_and_judge(settings["order"])
        calls = ran.trial.calls[: settings["call"]]  # an error may have ended the loop earlier
        line = calls[-1].line if calls else 0
        panels = {"ring": draw_ring(ran, calls), "grad": draw_contents(ran, calls), "loss": draw_losses(ran)}
        state = f"{ran.verdict.capitalize()}. {ran.result}. {ran.why}".replace("`", "")
        wrong = line if calls and calls[-1].failed else 0
        return View(panels, state, _moment_text(calls), code=ran.trial.source, lit=(line, line), wrong=wrong)

    def recorded(self) -> Iterable[Mapping[str, Any]]:
        """Yield settings for all orders of four calls, and for the usual order with one call left out or repeated."""
        orders = [" ".join(order) for order in permutations(PIECES)]
        orders += [" ".join(piece for piece in PIECES if piece != left) for left in PIECES]
        orders += [" ".join((*PIECES[:i], piece, *PIECES[i:])) for piece in PIECES for i in range(len(PIECES) + 1)]
        for order in dict.fromkeys(orders):
            yield from ({"order": order, "call": call} for call in range(CALLS_SHOWN, -1, -1))


def ring_of_orders(**start: Any) -> RingOfOrders:
    """Return a RingOfOrders, in which the four calls of a loop can be dragged into any order.

    Keyword arguments are start values of the controls: ``order="forward backward step zero_grad"``, and ``call``, the
    number of calls (0 to 12) that the picture shows. Raises ValueError for other names or values.
    """
    return RingOfOrders(**start)


def run_order(order: str) -> OrderRun:
    """Return the OrderRun of an order such as ``"forward backward step"``. Raises ValueError for an invalid order."""
    return run_and_judge(RingOfOrders(order=order).values["order"])


def _moment_text(calls: Sequence[LoopCall]) -> str:
    if not calls:
        return "Before the loop. .grad: None."
    call = calls[-1]
    return f"Turn {call.turn}, {call.piece}: {call.text}. .grad: {call.after.text}."


_RADIUS = 1.75  # horizontal radius of the ring; the vertical radius is 1
_TILE = 0.68, 0.17  # half the width and half the height of a call's box


def draw_ring(ran: OrderRun, calls: Sequence[LoopCall]) -> Drawing:
    """Draw the ring, with the newest call in bold and the latest effect of each call next to it."""
    pieces, newest = ran.trial.order.split(), calls[-1] if calls else None
    marks = _way_marks("", range(len(pieces)), len(pieces), "grey")
    last = {call.index: call for call in calls}
    for number, piece in enumerate(pieces):
        x, y = _on_ring(number / len(pieces))
        marks += _call_marks(x, y, str(number), piece, last.get(number), newest is not None and number == newest.index)
    lines = [".grad", *(newest.after if newest else Grad({})).text.split(", norm ")]
    for number, line in enumerate(lines):
        texts = (f"norm {line}",) if number == 2 else (line, line.replace("gradients ", ""))
        marks.append(Text(f"grad {number}", texts, 0.0, 0.3 - 0.3 * number, where="center", bold=number == 0))
    axes = Axes(Axis(-2.45, 2.45, ticks="none"), Axis(-1.45, 1.45, ticks="none"), equal="fit")
    description = f"The ring {ran.trial.order.replace(' ', ' → ')}: {ran.verdict}. {_moment_text(calls)}"
    role = "wrong" if ran.verdict in ("wrong", "error") else "ink"
    return Drawing("the ring", marks, (axes,), description, corner=(_SIGNS[ran.verdict],), corner_role=role)


def _on_ring(share: float, x: float = 0.0, y: float = 0.0, height: float = 1.0) -> tuple[float, float]:
    return x + _RADIUS * math.sin(2 * math.pi * share), y + height * math.cos(2 * math.pi * share)


def _way_marks(id: str, calls: range, count: int, role: str, *middle: float, width: float = 1.5) -> list[Mark]:
    """Return the marks of the arc of ``calls`` on a ring of ``count`` calls, with an arrow after each call."""
    shares = np.linspace(calls.start, calls.stop, 97) / count
    marks: list[Mark] = [Line(f"ring{id}", np.ravel([_on_ring(share, *middle) for share in shares]), role, width)]
    for number in calls:
        ends = *_on_ring((number + 0.46) / count, *middle), *_on_ring((number + 0.54) / count, *middle)
        marks.append(Arrow(f"arrow{id} {number}", ends, fill=role, stroke=""))
    return marks


def _call_marks(
    x: float, y: float, id: str, piece: str, call: LoopCall | None, lit: bool, sign: str = ""
) -> list[Mark]:
    """Return the marks of a call on the ring: a box with its name and ``sign``, and its latest effect near the box."""
    failed, style = call is not None and call.failed, dict(CALL_STYLES[piece])
    frame: dict[str, Any] = {"stroke": "wrong" if failed else "ink", "width": 3.0, "dash": ""} if lit or failed else {}
    label = f"{piece}: {call.text if call else 'has not run yet'}"
    marks: list[Mark] = [
        Area(f"call {id}", box_points(x, y, *_TILE), words=label, **{**style, **frame}),
        Text(f"name {id}", (piece + sign,), x, y, where="center", bold=lit),
    ]
    if call is not None:
        up, role = (1 if y > 0.3 else -1), "reused-text" if piece == "step" and call.before.count(1) else "ink"
        text_style: dict[str, Any] = {"where": "above" if up > 0 else "below", "role": "wrong" if failed else role}
        texts = call.text, call.text.partition(" (")[0]
        marks.append(Text(f"did {id}", texts, x, y + up * _TILE[1], backed=True, **text_style))
    return marks


# verdict on the order from forward on -> label of the ring, first and last call of the fault (the same: no fault)
_ENDS = {
    "right": ("\u2713 trains", "step", "step"),
    "error": ("\u2717 error", "forward", "step"),
    "wrong": ("\u2717 never moves", "backward", "zero_grad"),
}


def six_rings() -> CourseFigure:
    """Draw 24 orders as six rings. A call bears the verdict on the order that begins with it; thick arcs are faults."""
    runs, marks, description = {order: run_order(" ".join(order)) for order in permutations(PIECES)}, list[Mark](), ""
    rings = [(kind, order) for kind in _ENDS for order in runs if order[0] == "forward" and runs[order].verdict == kind]
    for number, (kind, ring) in enumerate(rings):
        middle, (end, *ends) = (5.2 * (number % 3), -3.1 * (number // 3)), _ENDS[kind]
        first, last = (ring.index(call) for call in ends)
        fault = range(first, first + (last - first) % 4)
        marks += _way_marks(f" {number}", range(4), 4, "grey", *middle)
        height = 1.32 if len(fault) > 1 else 1.0  # the arc of a longer fault runs outside the call that it spans
        marks += _way_marks(f" {number} fault", fault, 4, "wrong", *middle, height, width=5.0)
        for index, piece in enumerate(ring):
            run = runs[ring[index:] + ring[:index]]
            sign = "\u2013" if "NameError" in run.outcome else end[0] + " late" * (run.verdict == "harmless")
            marks += _call_marks(*_on_ring(index / 4, *middle), f"{number}.{index}", piece, None, False, f" {sign}")
        role = "wrong" if fault else "ink"
        marks.append(Text(f"end {number}", (end,), *middle, where="center", bold=True, role=role))
        description += f"{' '.join(ring)}: {end[2:]}. "
    axes = Axes(Axis(-2.45, 12.85, ticks="none"), Axis(-4.3, 1.25, ticks="none"), equal="fit")
    corner = ("\u2713 or \u2717: the order that begins at this call (\u2013: NameError, no loss yet)",)
    drawing = Drawing("24 orders, six rings", marks, (axes,), description, corner=corner)
    return CourseFigure(drawing, size=(930, 400))


_ROOM, _STRIP = 1.3, 0.25  # in tile heights: the space above the highest column, and the strip with the calls below


def draw_contents(ran: OrderRun, calls: Sequence[LoopCall]) -> Drawing:
    """Draw ``.grad`` after each of the first 12 calls as a column, with a tile for each gradient that it contains."""
    every = ran.trial.calls[:CALLS_SHOWN]
    marks: list[Mark] = []
    if calls:
        column = box_points(len(calls) - 0.5, 0.0, 0.5, AXES_EDGE)
        marks.append(Area("now", column, fill="faint/60", words=_moment_text(calls)))
    for number, call in enumerate(every):
        if call.index == 0:
            marks.append(Line(f"turn {number}", (number, -AXES_EDGE, number, AXES_EDGE), "grey", 1.0, "dashed"))
            texts = f"turn {call.turn}", str(call.turn)
            marks.append(Text(f"turn {number} word", texts, number, where="top", role="grey"))
        marks += _column_marks(number, call)
    high = _ROOM + max(1, *(len(call.after.times) for call in every))
    up = Axis(-_STRIP, high, words="gradients in .grad", ticks="updates")
    spans = tuple(AxisSpan(number, number + 1, (call.piece,)) for number, call in enumerate(every))
    contents = "; ".join(f"{call.piece}: {call.after.text}" for call in every)
    description = f"What .grad holds after each of the first {len(every)} calls. {contents}."
    signs = Key(("cleared",), **CALL_STYLES["zero_grad"]), Key(("step moves the weights", "step"), fill="optimizer")
    key = (*batch_key(("added", "applied", "reused")), *signs)
    axes = Axes(Axis(0.0, CALLS_SHOWN, ticks="slanted", spans=spans), up)
    return Drawing("what .grad holds", marks, (axes,), description, key=key)


def _column_marks(number: int, call: LoopCall) -> list[Mark]:
    """Return the marks of a call's column: tiles for the gradients left or cleared, and a sign for a step or error."""
    middle, height = number + 0.5, len(call.after.times)
    strip = box_points(middle, -_STRIP / 2, 0.42, _STRIP / 2)
    marks: list[Mark] = [Area(f"name {number}", strip, words=call.piece, **CALL_STYLES[call.piece])]
    cleared = call.piece == "zero_grad"
    for level, (backward, times) in enumerate((call.before if cleared else call.after).times.items()):
        label = f"turn {call.turn}, {call.piece}: gradient {backward}, {applied_text(times)}{', cleared' * cleared}"
        tile: dict[str, Any] = CALL_STYLES["zero_grad"] if cleared else batch_area(batch_style(times))
        id, box = f"{'cleared' if cleared else 'tile'} {number}.{backward}", box_points(middle, level + 0.5, 0.42, 0.48)
        marks.append(Area(id, box, words=label, **tile))
        style: dict[str, Any] = {"where": "center", "size": 11.0, "backed": True, "role": "grey" if cleared else "ink"}
        texts = (f"\u00d7 {times}", f"\u00d7{times}") if times > 1 else (str(backward),)
        marks.append(Text(f"number {number}.{backward}", texts, middle, level + 0.5, **style))
    sign: dict[str, Any] = {"shape": "triangle", "size": 11.0, "fill": "optimizer"}
    if call.failed:
        sign = {"shape": "cross", "size": 13.0, "stroke": "wrong", "width": 3.0}
    elif not call.before.times:
        sign = {"shape": "cross", "size": 9.0, "stroke": "grey", "width": 2.0}
    if call.failed or call.piece == "step":
        marks.append(Dots(f"sign {number}", (middle, height + 0.5), words=call.text, **sign))
    return marks


def draw_losses(ran: OrderRun) -> Drawing:
    """Draw the held-out loss of the usual loop and, unless an error ended it, of the loop in ``ran``, turn by turn."""
    trial, lines = ran.trial, {"usual": ran.usual.losses}
    events = {trial.turns: f"this order stops in turn {trial.turns + 1}"} if trial.error else {}
    if not trial.error:
        lines["this order"] = trial.losses
    reused = ["this order"] if not trial.error and any(step.before.count(1) for step in trial.ran("step")) else []
    title, counted = "loss on held-out digits", "turns of the loop"
    return curves(lines, title, reused=reused, events=events, counted=counted).drawings[0]
