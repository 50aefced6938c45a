"""The ring: the calls of an order on a closed line, what each did last, and what ``.grad`` holds in the middle."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ....drawing import BATCH_STYLES, Drawing, PanelBuilder, Path, Spot, make_box, text_width
from ....formatting import short
from ....gradients import union
from .trial import Grad, LoopCall
from .verdict import OrderRun, call_text, grad_text, spans_text

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
_TOP, _BELOW = 66.0, 34.0  # CSS pixels above and below the line
CALL_HIGH = 24.0  # CSS pixels
_HEAD = 6.0  # half of an arrow head
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
    up = (height - _TOP - _BELOW) / 2
    across = max(min(width / 2 - 70.0, 1.45 * up), 40.0)
    oval = Oval(len(pieces), width / 2, _TOP + up, across, up)
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
        dx, dy = _HEAD * (ahead_x - x) / long, _HEAD * (ahead_y - y) / long
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
    return [(spans_text(numbers), word) for word, numbers in alike.items() if numbers]


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
