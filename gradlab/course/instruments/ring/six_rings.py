"""draw_rings: orders that are the same ring, begun at each of its calls, with the verdict on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....drawing import Drawing, PanelBuilder, Spot, make_box, text_width
from ...figures.curves import CourseFigure
from .ring_panel import CALL_HIGH, CALL_STYLES, Oval
from .verdict import OrderRun

_ACROSS = 3  # rings in a row
_WIDE, _HIGH, _HEAD = 306, 182, 30  # CSS pixels: of a ring, and of the title
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
    drawing = _draw(rings, _WIDE * min(len(rings), _ACROSS), _HEAD + _HIGH * rows)
    return CourseFigure(drawing)


def broken_way(calls: Sequence[str]) -> tuple[int, int] | None:
    """Return the places in the ring between which a call comes too early, the second beyond the first."""
    for start, wanted, early in _RULES:
        first = calls.index(start)
        after = [calls[(first + way) % len(calls)] for way in range(1, len(calls))]
        if after.index(early) < after.index(wanted):
            return first, first + 1 + after.index(early)
    return None


def _draw(rings: Mapping[tuple[str, ...], Sequence[OrderRun]], width: int, height: int) -> Drawing:
    panel = PanelBuilder(f"{len(rings)} rings, {sum(map(len, rings.values()))} orders", width, height)
    panel.corner("\u2713 or \u2717 at a call: the order that begins there", role="grey")
    words = []
    for at, (calls, runs) in enumerate(sorted(rings.items(), key=lambda ring: _ORDER.index(_kind(ring[1])))):
        x, y = (at % _ACROSS + 0.5) * _WIDE, _HEAD + (at // _ACROSS + 0.5) * _HIGH
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
