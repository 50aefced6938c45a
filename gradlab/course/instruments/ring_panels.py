"""The panels of the ring of orders: the calls on a closed line, ``.grad`` after each call, the loss; and all rings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...drawing import (
    BATCH_STYLES,
    Axes,
    Dots,
    Drawing,
    PanelBuilder,
    Path,
    Side,
    Spot,
    add_key,
    make_axes,
    make_box,
    text_width,
)
from ...formatting import EN_DASH, short, spans_text
from ...gradients import union
from ..figures.curves import CourseFigure
from .ring_trial import TURNS, Grad, LoopCall
from .ring_verdict import OrderRun, call_text, grad_text, is_broken

CALLS_SHOWN = 12
"""So many calls can be looked at one by one: three turns of four calls."""
CALL_STYLES: dict[str, dict[str, str]] = {
    "zero_grad": {"fill": "paper", "stroke": "grey", "dash": "dashed"},
    "forward": {"fill": "activations/35", "stroke": "activations"},
    "backward": {"fill": "gradients/35", "stroke": "gradients"},
    "step": {"fill": "optimizer/35", "stroke": "optimizer"},
}
BOX_WORDS = {
    "stale": "already applied",
    "outdated": "not applied yet, outdated: the weights have moved since its forward",
    "fresh": "not applied yet",
}
"""What a box in ``.grad`` says, by its look; they stand in this order where boxes are joined."""
SIGNS = {"right": "\u2713 right", "harmless": "\u2713 harmless", "wrong": "\u2717 wrong", "error": "\u2717 error"}
_RING_TOP, _RING_BELOW = 66.0, 34.0  # CSS pixels above and below the line
CALL_HIGH = 24.0  # CSS pixels
_ARROW_HEAD = 6.0  # half of an arrow head
_MOST_BOXES = 4


@dataclass(frozen=True)
class CallSeen:
    """An order that was run, right after one of its first calls; 0 is before the loop."""

    ran: OrderRun
    at: int

    @property
    def calls(self) -> tuple[LoopCall, ...]:
        """The calls up to this moment; fewer where an error ended the loop."""
        return self.ran.trial.calls[: self.at]

    @property
    def call(self) -> LoopCall | None:
        """The newest of them, None before the loop."""
        return self.calls[-1] if self.calls else None

    @property
    def grad(self) -> Grad:
        """What ``.grad`` holds now."""
        return self.call.after if self.call else Grad("None")

    @property
    def words(self) -> str:
        """The call and what it did, and what ``.grad`` holds."""
        call = self.call
        if call is None:
            return f"Before the loop. `.grad`: {grad_text(self.grad)}."
        return f"Turn {call.turn}, `{call.piece}`: {call_text(call)}. `.grad`: {grad_text(self.grad)}."


def draw_ring(moment: CallSeen, width: int, height: int) -> Drawing:
    """Draw the ring with the call of this moment in a frame, and below each call what it did the last time it ran."""
    panel = PanelBuilder("the ring", width, height)
    word = moment.ran.verdict
    panel.corner(SIGNS[word], role="ink" if moment.ran.judged.trains else "wrong")
    pieces = moment.ran.trial.setup.pieces
    up = (height - _RING_TOP - _RING_BELOW) / 2
    across = max(min(width / 2 - 70.0, 1.45 * up), 40.0)
    oval = Oval(len(pieces), width / 2, _RING_TOP + up, across, up)
    lit = moment.call.place if moment.call else -1
    panel.add(oval.arc("ring", 0, len(pieces), stroke="grey", width=1.5))
    if moment.call:
        panel.add(oval.arc("way", lit - 1, lit, stroke="ink", width=3.0))
    for place in range(len(pieces)):
        arrives = lit == (place + 1) % len(pieces)
        panel.add(oval.arrow_head(f"arrow {place}", place + 0.5, "ink" if arrives else "grey"))
    last = {call.place: call for call in moment.calls}
    for place, piece in enumerate(pieces):
        _add_call(panel, oval, place, piece, last.get(place), lit=place == lit)
    if moment.call:
        turn, (x, y) = f"turn {moment.call.turn}", oval.at(-0.5)
        panel.label("turn", [Spot(turn, x - 14, y - 12, "end"), Spot(turn, 8.0, 40.0)], role="grey")
    _add_grad(panel, moment.grad, oval.x, oval.y)
    way = " \u2192 ".join(pieces)
    said = f"The ring {way}: {word}. {moment.words}"
    return panel.finish(said.replace("`", ""))


@dataclass(frozen=True)
class Oval:
    """Where calls lie: call 0 on top, the others with the clock, equally far apart."""

    pieces: int
    x: float
    y: float
    across: float
    up: float
    """The middle, and how far it is from there to the side and to the top, in CSS pixels."""

    def at(self, place: float) -> tuple[float, float]:
        """Return where a place is."""
        turn = 2 * math.pi * place / self.pieces
        return self.x + self.across * math.sin(turn), self.y - self.up * math.cos(turn)

    def arc(self, id: str, first: float, last: float, *, stroke: str, width: float) -> Path:
        """Return the line from one place to another."""
        count = 24 if last - first <= 1 else 96
        ends = [self.at(first + (last - first) * step / count) for step in range(count + 1)]
        return Path(id, tuple(number for end in ends for number in end), stroke=stroke, width=width)

    def arrow_head(self, id: str, place: float, role: str) -> Path:
        """Return a triangle on the line that points the way round."""
        x, y = self.at(place)
        ahead_x, ahead_y = self.at(place + 0.02)
        long = math.hypot(ahead_x - x, ahead_y - y)
        dx, dy = _ARROW_HEAD * (ahead_x - x) / long, _ARROW_HEAD * (ahead_y - y) / long
        points = (x + dx, y + dy, x - dx - dy, y - dy + dx, x - dx + dy, y - dy - dx)
        return Path(id, points, fill=role)


def _add_call(panel: PanelBuilder, oval: Oval, place: int, piece: str, call: LoopCall | None, *, lit: bool) -> None:
    x, y = oval.at(place)
    half = text_width(piece) / 2 + 9
    look = CALL_STYLES[piece]
    failed = call is not None and call.failed
    said = f"{piece}: {call_text(call)}" if call else f"{piece}: has not run yet"
    if lit or failed:  # a frame around it
        frame = "wrong" if failed else "ink"
        panel.add(
            make_box(
                f"frame {place}", x - half - 4, y - 16, x + half + 4, y + 16, fill="paper", stroke=frame, width=2.5
            )
        )
    panel.add(make_box(f"call {place}", x - half, y - CALL_HIGH / 2, x + half, y + CALL_HIGH / 2, **look, words=said))
    panel.label(f"name {place}", [Spot(piece, x, y, "middle")], bold=lit)
    if call is None:
        return
    above, below = Spot(call_text(call), x, y - 25, "middle"), Spot(call_text(call), x, y + 25, "middle")
    spots = [above, below] if y < oval.y - 0.3 * oval.up else [below, above]
    role = "wrong" if failed else "stale-text" if call.piece == "step" and call.before.stale else "ink"
    panel.label(f"did {place}", spots, role=role, backed=True)


def grad_boxes(grad: Grad) -> list[tuple[str, str]]:
    """Return what stands in each box of a ``.grad``, and its look: one a backward where they are few."""
    looks = grad.looks
    if len(looks) <= _MOST_BOXES:
        return [(str(number), look) for number, look in looks.items()]
    alike = {word: tuple(union((n, n) for n, look in looks.items() if look == word)) for word in BOX_WORDS}
    return [(spans_text(numbers, EN_DASH), word) for word, numbers in alike.items() if numbers]


def _add_grad(panel: PanelBuilder, grad: Grad, x: float, y: float) -> None:
    """Write ``.grad`` with its boxes around a place."""
    panel.label("grad", [Spot(".grad", x, y - 26, "middle")], bold=True)
    if not grad.holds:
        panel.label("empty", [Spot(grad.kind, x, y, "middle")])
        return
    boxes = grad_boxes(grad)
    wide = [max(22.0, text_width(text) + 10) for text, _ in boxes]
    left = x - (sum(wide) + 4 * (len(wide) - 1)) / 2
    for at, ((text, look), each) in enumerate(zip(boxes, wide, strict=True)):
        words = f"backward {text}, {BOX_WORDS[look]}"
        panel.add(make_box(f"box {at}", left, y - 11, left + each, y + 11, **BATCH_STYLES[look], words=words))
        panel.label(f"box {at} number", [Spot(text, left + each / 2, y, "middle")], backed=True)
        left += each + 4
    panel.label("norm", [Spot(f"norm {short(grad.norm)}", x, y + 26, "middle")])


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


_ACROSS = 3  # rings in a row
_WIDE, _HIGH, _TITLE = 306, 182, 30  # CSS pixels: of a ring, and of the title
_ASIDE, _UP = 96.0, 64.0  # from the middle of a ring to its calls
_ORDER = ("right", "error", "wrong")
_SIGNS = {"right": "\u2713", "harmless": "\u2713 late", "wrong": "\u2717", "error": "\u2717"}
_SAYS = {"right": "trains", "error": "error", "wrong": "trains otherwise"}
# From the first call of each, the second has to come before the third.
_RULES = (("backward", "step", "zero_grad"), ("forward", "backward", "step"))


def draw_rings(rings: Mapping[tuple[str, ...], Sequence[OrderRun]]) -> CourseFigure:
    """Draw each ring of calls, with a verdict at each call: that on the order which begins there.

    A thick line is the way that breaks the ring: from ``backward`` to ``zero_grad`` without a ``step``, or from
    ``forward`` to ``step`` without a ``backward``. Raises ValueError for no rings.
    """
    if not rings:
        raise ValueError("draw_rings: there must be one ring or more, got none")
    rows = -(-len(rings) // _ACROSS)
    drawing = _draw_rings(rings, _WIDE * min(len(rings), _ACROSS), _TITLE + _HIGH * rows)
    return CourseFigure(drawing)


def broken_way(calls: Sequence[str]) -> tuple[int, int] | None:
    """Return the places in the ring between which a call comes too early, the second beyond the first."""
    for start, wanted, early in _RULES:
        first = calls.index(start)
        after = [calls[(first + way) % len(calls)] for way in range(1, len(calls))]
        if after.index(early) < after.index(wanted):
            return first, first + 1 + after.index(early)
    return None


def _draw_rings(rings: Mapping[tuple[str, ...], Sequence[OrderRun]], width: int, height: int) -> Drawing:
    panel = PanelBuilder(f"{len(rings)} rings, {sum(map(len, rings.values()))} orders", width, height)
    panel.corner("\u2713 or \u2717 at a call: the order that begins there", role="grey")
    words = []
    for at, (calls, runs) in enumerate(sorted(rings.items(), key=lambda ring: _ORDER.index(_kind(ring[1])))):
        x, y = (at % _ACROSS + 0.5) * _WIDE, _TITLE + (at // _ACROSS + 0.5) * _HIGH
        oval = Oval(len(calls), x, y, _ASIDE, _UP)
        said = _outcome(runs)
        _add_ring(panel, oval, at, calls, {run.order.split()[0]: run.verdict for run in runs}, said)
        order = " \u2192 ".join(calls)
        words.append(f"{order}: {said}")
    return panel.finish(f"{'; '.join(words)}.")


def _add_ring(
    panel: PanelBuilder, oval: Oval, at: int, calls: Sequence[str], verdicts: Mapping[str, str], said: str
) -> None:
    panel.add(oval.arc(f"ring {at}", 0, len(calls), stroke="grey", width=1.5))
    way = broken_way(calls)
    if way:
        panel.add(oval.arc(f"broken {at}", *way, stroke="wrong", width=5.0))
    for place in range(len(calls)):
        on_way = way is not None and (place - way[0]) % len(calls) < way[1] - way[0]
        panel.add(oval.arrow_head(f"arrow {at}.{place}", place + 0.5, "wrong" if on_way else "grey"))
    sign = "\u2717" if way else "\u2713"
    role = "wrong" if way else "ink"
    panel.label(f"sign {at}", [Spot(sign, oval.x, oval.y - 10, "middle")], role=role, bold=True, size=16.0)
    panel.label(f"said {at}", [Spot(said, oval.x, oval.y + 10, "middle")], role=role, backed=True)
    for place, call in enumerate(calls):
        x, y = oval.at(place)
        name = f"{call} {_SIGNS[verdicts[call]]}"
        half = text_width(name) / 2 + 9
        box = (x - half, y - CALL_HIGH / 2, x + half, y + CALL_HIGH / 2)
        panel.add(make_box(f"call {at}.{place}", *box, **CALL_STYLES[call], words=f"begins here: {verdicts[call]}"))
        panel.label(f"name {at}.{place}", [Spot(name, x, y, "middle")])


def _kind(runs: Sequence[OrderRun]) -> str:
    """Return the verdict on a ring: an order that is only late counts as right."""
    found = {run.verdict for run in runs}
    return next(word for word in ("error", "wrong", "right") if word in found or word == "right")


def _outcome(runs: Sequence[OrderRun]) -> str:
    still = {run.outcome for run in runs} == {"the weights never move"}
    return "never moves" if still else _SAYS[_kind(runs)]
