"""What ``.grad`` holds after each of the first calls, and the loss of this order beside that of the usual one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....drawing import BATCH_STYLES, Axes, Dots, Drawing, PanelBuilder, Path, Side, Spot, add_key, make_axes, make_box
from ....formatting import short
from .ring_panel import CALL_STYLES, CALLS_SHOWN, CallSeen
from .trial import TURNS, LoopCall
from .verdict import OrderRun, call_text, grad_text, is_broken

_LEFT, _TOP, _NAMES = 12.0, 76.0, 76.0  # CSS pixels beside, above and below the columns
_TALLEST = 34.0  # a box
_MARGIN = 112.0  # at the right of the curves, for their names


def draw_contents(moment: CallSeen, width: int, height: int) -> Drawing:
    """Draw a column for each of the first calls: what is in ``.grad`` after it, one box a backward."""
    panel = PanelBuilder("what .grad holds", width, height)
    calls = moment.ran.trial.calls[:CALLS_SHOWN]
    wide = (width - 2 * _LEFT) / CALLS_SHOWN
    bottom = height - _NAMES
    most = max(3, max((call.after.count for call in calls), default=0))
    tall = min(_TALLEST, (bottom - _TOP - 18) / most)
    outdated = any(call.after.outdated for call in calls)
    add_key(panel, ("fresh", "stale", "outdated") if outdated else ("fresh", "stale"), _LEFT, 41, 74)
    if panel.label("key step word", [Spot("step moves the weights", _LEFT + 268, 41)]):
        panel.add(Dots("key step", (_LEFT + 256, 41.0), shape="triangle", size=11, fill="optimizer"))
    if moment.call:
        x = _LEFT + (len(moment.calls) - 1) * wide
        panel.add(make_box("now", x, 56, x + wide, height - 4, fill="faint/60", words=moment.words.replace("`", "")))
    panel.add(Path("ground", (_LEFT, bottom, width - _LEFT, bottom), stroke="grey", width=1.0))
    for at, call in enumerate(calls):
        left = _LEFT + at * wide
        if call.place == 0:
            panel.add(Path(f"turn {at}", (left, 56.0, left, height - 6.0), stroke="grey", width=1.0, dash="dashed"))
            panel.label(f"turn {at} word", [Spot(f"turn {call.turn}", left + 5, 64)], role="grey")
        _add_column(panel, at, call, left, wide, bottom, tall)
    said = "; ".join(f"{call.piece}: {grad_text(call.after)}" for call in calls)
    return panel.finish(f"What .grad holds after each of the first {len(calls)} calls. {said}.")


def _add_column(
    panel: PanelBuilder, at: int, call: LoopCall, left: float, wide: float, bottom: float, tall: float
) -> None:
    middle, half = left + wide / 2, min(wide / 2 - 1.5, 14.0)
    look = CALL_STYLES[call.piece]
    panel.add(make_box(f"name {at} box", middle - 8, bottom + 5, middle + 8, bottom + _NAMES - 6, **look))
    panel.label(f"name {at}", [Spot(call.piece, middle, bottom + _NAMES / 2, "middle")], size=11.0, angle=90.0)
    inside = call.after.looks
    y = bottom
    for number, state in inside.items():
        words = f"turn {call.turn}, after {call.piece}: backward {number}, {state}"
        panel.add(
            make_box(
                f"box {at}.{number}", middle - half, y - tall + 1, middle + half, y, **BATCH_STYLES[state], words=words
            )
        )
        if tall >= 13:
            spot = Spot(str(number), middle, y - tall / 2, "middle")
            panel.label(f"number {at}.{number}", [spot], size=11.0, backed=True)
        y -= tall
    if not inside:
        panel.label(
            f"empty {at}", [Spot("0" if call.after.kind == "zeros" else "\u2013", middle, bottom - 9, "middle")]
        )
    said = call_text(call)
    if call.failed:
        panel.add(Dots(f"failed {at}", (middle, y - 24), shape="cross", size=13, stroke="wrong", width=3, words=said))
    elif call.piece == "step" and call.moved:
        panel.add(Dots(f"step {at}", (middle, y - 11), shape="triangle", size=11, fill="optimizer", words=said))
    elif call.piece == "step":
        panel.add(Dots(f"step {at}", (middle, y - 22), shape="cross", size=9, stroke="grey", width=2, words=said))


def draw_losses(ran: OrderRun, width: int, height: int) -> Drawing:
    """Draw the loss on held-out digits after each turn: of the usual loop as a broad grey line, of this order on it."""
    panel = PanelBuilder("loss on held-out digits", width, height)
    losses, usual = ran.trial.losses, ran.usual.losses
    first = usual[0]
    highest = max(loss for loss in (*losses, *usual) if math.isfinite(loss))
    top = 1.15 * max(first, min(highest, 2.5 * first))
    across, up = Side(0.0, float(TURNS), words="turns of the loop", ticks="updates"), Side(0.0, top)
    axes = make_axes((width, height), 54.0, 34.0, width - _MARGIN, height - 38.0, across, up)
    panel.axes(axes)
    role = "loss" if ran.judged.trains else "wrong"
    dash = "" if ran.judged.trains else "dashed"
    panel.add(Path("usual", _points(axes, usual, top), stroke="grey/40", width=7.0))
    panel.add(Path("loss", _points(axes, losses, top), stroke=role, width=2.0, dash=dash))
    x, y = axes.x.at(len(losses) - 1), axes.y.at(_drawn(losses[-1], top))
    if ran.trial.error is not None:
        said = f"stops in turn {ran.trial.turns + 1}"
        panel.add(Dots("end", (x, y), shape="cross", size=13, stroke="wrong", width=3, words=said))
        panel.label("end word", [Spot(said, x + 12, y - 14), Spot(said, x + 12, y + 14)], role="wrong", backed=True)
    else:
        said = f"this order {short(losses[-1])}"
        panel.add(Dots("end", (x, y), size=8, fill=role, words=said))
        panel.label("end word", [Spot(said, x + 8, y)], role=role)
    said, y = f"usual {short(usual[-1])}", axes.y.at(usual[-1])
    panel.label("usual word", [Spot(said, axes.right + 8, y + by) for by in (0, 16, -16)], role="grey")
    if highest > top or is_broken(losses):
        panel.corner("beyond the panel: up to " + ("inf or NaN" if is_broken(losses) else short(highest)), "")
    return panel.finish(f"Loss on held-out digits. {ran.judged.result}.")


def _points(axes: Axes, losses: Sequence[float], top: float) -> tuple[float, ...]:
    return tuple(n for turn, loss in enumerate(losses) for n in (axes.x.at(turn), axes.y.at(_drawn(loss, top))))


def _drawn(loss: float, top: float) -> float:
    return min(loss, top) if math.isfinite(loss) else top
