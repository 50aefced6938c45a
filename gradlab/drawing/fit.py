"""Bars of peak memory by category, next to each other, compared with the capacities of graphics cards."""

from __future__ import annotations

from operator import itemgetter

from ..formatting import bytes_text
from ..scenes import Fit
from .limits import from_zero
from .marks import AXES_EDGE, Area, Axes, Axis, AxisSpan, Drawing, Line, Mark, Text, draw
from .memory import BESIDE_TENSORS, area_style, category_name, stacked

_MAX_CAPACITY = 4.0  # capacity above which a card is not drawn, in units of the highest bar
_CARD_NAMES_WIDTH = 0.45  # width to the left of the bars for the names of cards, in units of the width of all bars
_HEADROOM = 1.12  # least upper limit of the y axis, in units of the highest bar, so that the sum above the bar fits
_MAX_CHARACTERS = 8  # length to which the names of cards and bars are cut if they do not fit
_MIN_LABELLED = 0.001  # share of the last bar above which a category has a label
_MEANING = {"allocator": "what PyTorch's allocator reserves above the tensors", "CUDA": "CUDA's context"}


@draw.register
def draw_fit(scene: Fit) -> Drawing:
    """Draw memory peaks as bars stacked by category, lines at the cards' capacities, and the verdict of the scene."""
    bars = list(scene.bars)
    names = dict.fromkeys(name for _, sizes in bars for name in sizes)
    edges = stacked({name: [sizes.get(name, 0) for _, sizes in bars] for name in names}, len(bars), BESIDE_TENSORS)
    total = list(edges.values())[-1][1]
    highest = float(total.max(initial=0.0))
    cards = [card for card in sorted(scene.cards, key=itemgetter(1)) if 0 < card[1] <= _MAX_CAPACITY * highest]
    top = from_zero(max(highest * _HEADROOM, *(holds * 1.08 for _, holds in cards), 0.0))
    marks: list[Mark] = []
    for number, (label, _) in reversed(list(enumerate(bars))):  # the sum of the last bar gets its position first
        left, right = number + 0.1, number + 0.9
        for name, (low, high) in edges.items():
            if high[number] > low[number]:
                a, b = float(low[number]), float(high[number])
                text = f"{label}: {_MEANING.get(name, name)} {bytes_text(b - a)}"
                box = (left, a, left, b, right, b, right, a)
                marks.append(Area(f"{name} {number}", box, width=1.2, words=text, **area_style(name)))
                if number == len(bars) - 1 and b - a > _MIN_LABELLED * total[-1]:
                    texts = (f"{name} {bytes_text(b - a)}", name, bytes_text(b - a))
                    marks.append(category_name(name, texts, (a + b) / 2))
        height = float(total[number])
        sums = (bytes_text(height), bytes_text(height).split()[0])
        marks.append(Text(f"sum {number}", sums, number + 0.5, height, where="above"))
    for number, (name, holds) in enumerate(cards):
        text = f"{name} holds {bytes_text(holds)}"
        marks.append(Line(f"card {number}", (0.0, holds, AXES_EDGE, holds), "ink", 1.3, "dashdot", text))
        marks.append(Text(f"card name {number}", _cut(name), 0.0, holds, where="left", size=11.0, words=text))
    spans = tuple(AxisSpan(number, number + 1, _cut(label)) for number, (label, _) in enumerate(bars))
    count = max(len(bars), 1)
    x = Axis(-_CARD_NAMES_WIDTH * count, count, ticks="none", spans=spans)
    verdict = scene.verdict if bars else "nothing is forecast yet"
    description = f"{verdict.capitalize()}."
    if bars:
        peaks = ", ".join(f"{label} {bytes_text(sum(sizes.values()))}" for label, sizes in bars)
        description = f"Peaks of memory: {peaks}." + (f" The last one {verdict}." if verdict else "")
    axes, corner = Axes(x, Axis(0.0, top, ticks="bytes")), (scene.title,) if scene.title else ()
    return Drawing("peak memory", marks, (axes,), description, corner=corner, notes=((verdict,),) if verdict else ())


def _cut(name: str) -> tuple[str, ...]:
    return (name, f"{name[:_MAX_CHARACTERS]}\u2026") if len(name) > _MAX_CHARACTERS else (name,)
