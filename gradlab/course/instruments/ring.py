"""ring_of_orders: drag the four calls of a loop into any order, run it, and see what it does and why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from ...drawing import (
    BATCH_STYLES,
    Dots,
    Drawing,
    PanelBuilder,
    Path,
    Spot,
    add_key,
    arrow_outline,
    draw_comparison,
    make_box,
    text_width,
)
from ...widgets import Control, Instrument, View
from ..figures.curves import make_curve
from .ring_trial import PIECES, USUAL, Grad, LoopCall, OrderRun, run_and_judge

CALLS_SHOWN = 12
"""The number of calls that can be looked at one by one: three turns of four calls."""
CALL_STYLES: dict[str, dict[str, str]] = {
    "zero_grad": {"fill": "paper", "stroke": "grey", "dash": "dashed"},
    "forward": {"fill": "activations/35", "stroke": "activations"},
    "backward": {"fill": "gradients/35", "stroke": "gradients"},
    "step": {"fill": "optimizer/35", "stroke": "optimizer"},
}
_SIGNS = {"right": "\u2713 right", "harmless": "\u2713 harmless", "wrong": "\u2717 wrong", "error": "\u2717 error"}


class RingOfOrders(Instrument):
    """The calls of a training loop on a ring: any order is run on real digits and held against the usual one."""

    title = "The ring of orders"

    def controls(self) -> list[Control]:
        """Return the controls: the order, and the call to look at."""
        return [
            Control.order("order", "order of the calls", USUAL, PIECES),
            Control.slider("call", "call", CALLS_SHOWN, range(CALLS_SHOWN + 1), plays=700),
        ]

    def render(self, at: Mapping[str, Any]) -> View:
        """Return the ring, what ``.grad`` holds and the losses, with the verdict in words and the text that ran."""
        ran = run_and_judge(at["order"])
        calls = ran.trial.calls[: at["call"]]  # fewer where an error ended the loop
        line = calls[-1].line if calls else 0
        return View(
            panels={
                "ring": lambda width, height: draw_ring(ran, calls, width, height),
                "grad": lambda width, height: draw_contents(ran, calls, width, height),
                "loss": lambda width, height: draw_losses(ran, width, height),
            },
            state=f"{ran.verdict.capitalize()}. {ran.result}. {ran.why}".replace("`", ""),
            note=_moment_text(calls),
            code=ran.trial.source,
            lit=(line, line),
            wrong=line if calls and calls[-1].failed else 0,
        )

    def recorded(self) -> Iterable[Mapping[str, Any]]:
        """Return all orders of the four calls, and the usual one with a call left out or doubled, call by call."""
        orders = [" ".join(order) for order in permutations(PIECES)]
        orders += [" ".join(piece for piece in PIECES if piece != left) for left in PIECES]
        orders += [" ".join((*PIECES[:at], piece, *PIECES[at:])) for piece in PIECES for at in range(len(PIECES) + 1)]
        for order in dict.fromkeys(orders):
            yield from ({"order": order, "call": call} for call in range(CALLS_SHOWN, -1, -1))


def ring_of_orders(**start: Any) -> RingOfOrders:
    """Return the ring of orders, to be shown: four calls to be dragged into any order, run, and judged.

    Keyword arguments set where its controls start: ``order="forward backward step zero_grad"`` and ``call`` (the
    number of calls that have run in the picture, 0 to 12). Raises ValueError for others.
    """
    return RingOfOrders(**start)


def run_order(order: str, *, first_loss: bool = False) -> OrderRun:
    """Run the four calls in an order, as ``"zero_grad forward backward step"``, and compare it with the usual one.

    With ``first_loss``, an order that calls ``backward`` before ``forward`` gets one forward before the loop. Raises
    ValueError for an order that there is not.
    """
    return run_and_judge(RingOfOrders(order=order).values["order"], first_loss)


def _moment_text(calls: Sequence[LoopCall]) -> str:
    """Return the newest call, what it did, and what ``.grad`` holds then."""
    if not calls:
        return "Before the loop. .grad: None."
    call = calls[-1]
    return f"Turn {call.turn}, {call.piece}: {call.text}. .grad: {call.after.text}."


def draw_ring(ran: OrderRun, calls: Sequence[LoopCall], width: int, height: int) -> Drawing:
    """Draw the ring with its newest call in a frame, and beside each call what it did the last time it ran."""
    panel = PanelBuilder("the ring", width, height)
    panel.corner(_SIGNS[ran.verdict], role="ink" if ran.trains else "wrong")
    pieces, newest = ran.order.split(), calls[-1] if calls else None
    up = (height - 100.0) / 2
    middle, radii = (width / 2, 66.0 + up), (max(min(width / 2 - 70.0, 1.45 * up), 40.0), up)

    def at(place: float) -> tuple[float, float]:
        """Return where a call stands: the first on top, the others with the clock."""
        turn = 2 * math.pi * place / len(pieces)
        return middle[0] + radii[0] * math.sin(turn), middle[1] - radii[1] * math.cos(turn)

    ring = tuple(number for step in range(97) for number in at(step / 96 * len(pieces)))
    panel.add(Path("ring", ring, stroke="grey", width=1.5))
    for place in range(len(pieces)):
        head = arrow_outline(np.array(at(place + 0.46)), np.array(at(place + 0.54)), 6.0)
        panel.add(Path(f"arrow {place}", head.ravel(), fill="grey"))
    last = {call.place: call for call in calls}
    for place, piece in enumerate(pieces):
        x, y = at(place)
        lit, above = newest is not None and place == newest.place, y < middle[1] - 0.3 * up
        _add_call(panel, x, y, place, last.get(place), piece, lit, above)
    if newest:
        turn, (x, y) = f"turn {newest.turn}", at(-0.5)
        panel.label("turn", [Spot(turn, x - 14, y - 12, "end"), Spot(turn, 8.0, 40.0)], role="grey")
    grad = (newest.after if newest else Grad({})).text.split(", norm ")
    lines = [".grad", grad[0], *(f"norm {norm}" for norm in grad[1:])]
    for number, line in enumerate(lines):
        spot = Spot(line, middle[0], middle[1] - 24 + 22 * number, "middle")
        panel.label(f"grad {number}", [spot], bold=number == 0)
    way = " \u2192 ".join(pieces)
    return panel.finish(f"The ring {way}: {ran.verdict}. {_moment_text(calls)}")


def _add_call(
    panel: PanelBuilder, x: float, y: float, place: int, call: LoopCall | None, piece: str, lit: bool, above: bool
) -> None:
    """Add a call, in a frame if it is lit or has failed; what it did stands ``above`` it, or below."""
    failed, half = call is not None and call.failed, text_width(piece) / 2
    if lit or failed:
        box = (x - half - 13, y - 16, x + half + 13, y + 16)
        panel.add(make_box(f"frame {place}", *box, fill="paper", stroke="wrong" if failed else "ink", width=2.5))
    words = f"{piece}: {call.text if call else 'has not run yet'}"
    box = (x - half - 9, y - 12, x + half + 9, y + 12)
    panel.add(make_box(f"call {place}", *box, **CALL_STYLES[piece], words=words))
    panel.label(f"name {place}", [Spot(piece, x, y, "middle")], bold=lit)
    if call is None:
        return
    spots = [Spot(call.text, x, y - 25, "middle"), Spot(call.text, x, y + 25, "middle")]
    role = "wrong" if failed else "stale-text" if piece == "step" and call.before.count("stale") else "ink"
    panel.label(f"did {place}", spots if above else spots[::-1], role=role, backed=True)


_LEFT, _TOP, _NAMES = 12.0, 76.0, 76.0  # CSS pixels beside, above and below the columns
_TALLEST = 34.0  # a box


def draw_contents(ran: OrderRun, calls: Sequence[LoopCall], width: int, height: int) -> Drawing:
    """Draw a column for each of the first calls: what is in ``.grad`` after it, one box a backward."""
    panel = PanelBuilder("what .grad holds", width, height)
    every = ran.trial.calls[:CALLS_SHOWN]
    wide, bottom = (width - 2 * _LEFT) / CALLS_SHOWN, height - _NAMES
    most = max([3, *(len(call.after.states) for call in every)])
    tall = min(_TALLEST, (bottom - _TOP - 18) / most)
    add_key(panel, ("fresh", "stale"), _LEFT, 41, 74)
    if panel.label("key step word", [Spot("step moves the weights", _LEFT + 268, 41)]):
        panel.add(Dots("key step", (_LEFT + 256, 41.0), shape="triangle", size=11, fill="optimizer"))
    if calls:
        x = _LEFT + (len(calls) - 1) * wide
        panel.add(make_box("now", x, 56, x + wide, height - 4, fill="faint/60", words=_moment_text(calls)))
    panel.add(Path("ground", (_LEFT, bottom, width - _LEFT, bottom), stroke="grey", width=1.0))
    for at, call in enumerate(every):
        left = _LEFT + at * wide
        if call.place == 0:
            panel.add(Path(f"turn {at}", (left, 56.0, left, height - 6.0), stroke="grey", width=1.0, dash="dashed"))
            panel.label(f"turn {at} word", [Spot(f"turn {call.turn}", left + 5, 64)], role="grey")
        _add_column(panel, at, call, left + wide / 2, min(wide / 2 - 1.5, 14.0), bottom, tall)
    contents = "; ".join(f"{call.piece}: {call.after.text}" for call in every)
    return panel.finish(f"What .grad holds after each of the first {len(every)} calls. {contents}.")


def _add_column(
    panel: PanelBuilder, at: int, call: LoopCall, middle: float, half: float, bottom: float, tall: float
) -> None:
    """Stack the backwards after a call, mark what a step or an error did, and name the call below."""
    box = (middle - 8, bottom + 5, middle + 8, bottom + _NAMES - 6)
    panel.add(make_box(f"name {at} box", *box, **CALL_STYLES[call.piece]))
    panel.label(f"name {at}", [Spot(call.piece, middle, bottom + _NAMES / 2, "middle")], size=11.0, angle=90.0)
    y = bottom
    for number, state in call.after.states.items():
        words = f"turn {call.turn}, after {call.piece}: backward {number}, {state}"
        box = (middle - half, y - tall + 1, middle + half, y)
        panel.add(make_box(f"box {at}.{number}", *box, **BATCH_STYLES[state], words=words))
        if tall >= 13:
            spot = Spot(str(number), middle, y - tall / 2, "middle")
            panel.label(f"number {at}.{number}", [spot], size=11.0, backed=True)
        y -= tall
    if not call.after.states:
        panel.label(f"empty {at}", [Spot("\u2013", middle, bottom - 9, "middle")])
    if call.failed:
        look: dict[str, Any] = {"shape": "cross", "size": 13.0, "stroke": "wrong", "width": 3.0}
        panel.add(Dots(f"failed {at}", (middle, y - 24), words=call.text, **look))
    elif call.piece == "step" and call.before.states:
        panel.add(Dots(f"step {at}", (middle, y - 11), shape="triangle", size=11, fill="optimizer", words=call.text))
    elif call.piece == "step":
        panel.add(Dots(f"step {at}", (middle, y - 22), shape="cross", size=9, stroke="grey", width=2, words=call.text))


def draw_losses(ran: OrderRun, width: int, height: int) -> Drawing:
    """Draw the loss on held-out digits after each turn, of the usual order and of this one unless an error ends it."""
    lines, events = {"usual": ran.usual.losses}, {}
    if ran.trial.error:
        events[ran.trial.turns] = f"this order stops in turn {ran.trial.turns + 1}"
    else:
        lines["this order"] = ran.trial.losses
    again = any(step.before.count("stale") for step in ran.trial.ran("step"))
    stale = ("this order",) if again else ()
    curves = {name: make_curve(np.array(losses)) for name, losses in lines.items()}
    title, counted = "loss on held-out digits", "turns of the loop"
    return draw_comparison(curves, title, width, height, stale=stale, events=events, counted=counted)
