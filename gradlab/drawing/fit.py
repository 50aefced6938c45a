"""Peaks of memory by category, side by side, against the lines of graphics cards: will it fit?"""

from __future__ import annotations

from ..formatting import bytes_text
from ..scenes import Fit
from .axes import Axes, Numbers, Side, byte_ticks, from_zero, make_axes
from .builder import MARGIN, PanelBuilder, make_box
from .labels import Box, Spot, shorten, spread_labels, text_width
from .marks import Drawing, Path
from .memory import BESIDE_TENSORS, Edges, area_look, stacked, text_role

MOST_BARS = 4
GPU_SIGHT = 4.0
"""A card that holds more than so many times every bar is left out; the words tell of it."""
_MOST_CARDS = 8
_CARDS = 60.0  # CSS pixels at the left of the axes for the names of the cards
_HEAD = 18.0  # and above the highest bar for what it adds up to
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 142.0, 46.0, 24.0
_ABOVE = (9.0, 12.0, 15.0, 18.0, 21.0, 24.0)  # CSS pixels above a bar: where its sum keeps clear of the lines of cards
_SMALL = 0.001  # of a bar: what is less has no label
_MEANING = {"allocator": "what PyTorch's allocator reserves above the tensors", "CUDA": "CUDA's context"}

Labelled = tuple[str, dict[str, int]]


def draw_fit(scene: Fit, width: int, height: int) -> Drawing:
    """Stack the bars on a linear axis, draw the cards that are in sight, and tell what fits."""
    panel = PanelBuilder("peak memory", width, height)
    bars = list(scene.bars)[-MOST_BARS:]
    names = dict.fromkeys(name for _, sizes in bars for name in sizes)
    edges = stacked({name: [sizes.get(name, 0) for _, sizes in bars] for name in names}, len(bars), BESIDE_TENSORS)
    total = list(edges.values())[-1][1]
    highest = float(total.max()) if len(bars) else 0.0
    cards = sorted(scene.cards, key=lambda card: card[1])
    seen = [card for card in cards if 0 < card[1] <= GPU_SIGHT * highest][:_MOST_CARDS]
    tall = height - _TOP - _BOTTOM
    top = from_zero(max(highest * tall / (tall - _HEAD), *(holds * 1.08 for _, holds in seen), 0.0))
    right = width - (_RIGHT if width >= 340 else 0.36 * width)
    side = Side(0.0, top, ticks="bytes")
    axes = make_axes((width, height), _LEFT, _TOP, right, height - _BOTTOM, Side(0, 1, ticks="none"), side)
    panel.corner(scene.title)
    said = scene.said if bars else "nothing is forecast yet"
    panel.label("told", [Spot(shorten(said, width - 2 * MARGIN), MARGIN, 34)])
    panel.axes(axes)
    panel.placer.take(
        Box(axes.left + _CARDS, axes.y.at(holds) - 1, axes.right, axes.y.at(holds) + 1) for _, holds in seen
    )
    _add_bars(panel, axes, edges, bars, total)
    _add_cards(panel, axes, seen)
    _add_names(panel, axes, edges, float(total[-1]) if len(bars) else 0.0)
    return panel.finish(_words(bars, said))


def _add_bars(panel: PanelBuilder, axes: Axes, edges: Edges, bars: list[Labelled], total: Numbers) -> None:
    if not bars:
        return
    left = axes.left + _CARDS
    room = (axes.right - left) / len(bars)
    unit = bytes_text(byte_ticks(axes.y.high)[-1]).split()[-1]
    for at, (label, _) in enumerate(bars):
        a, b = left + (at + 0.1) * room, left + (at + 0.9) * room
        for name, (low, high) in edges.items():
            if high[at] > low[at]:
                words = f"{label}: {_MEANING.get(name, name)} {bytes_text(float(high[at] - low[at]))}"
                below, above = axes.y.at(float(low[at])), axes.y.at(float(high[at]))
                panel.add(make_box(f"{name} {at}", a, above, b, below, width=1.2, words=words, **area_look(name)))
        middle, top = (a + b) / 2, axes.y.at(float(total[at]))
        whole = bytes_text(float(total[at]))
        amount, own = whole.split() if " " in whole else (whole, unit)
        for text, size in ((whole, 13.0), (whole, 11.0), (amount if own == unit else "", 11.0)):
            if text_width(text, size) <= room and panel.label(
                f"sum {at}", [Spot(text, middle, top - up, "middle") for up in _ABOVE], size=size
            ):
                break
        name = shorten(label, room - 2)
        panel.label(f"bar {at}", [Spot(name, middle, axes.bottom + 12, "middle")])


def _add_cards(panel: PanelBuilder, axes: Axes, seen: list[tuple[str, int]]) -> None:
    tall = axes.bottom - axes.top
    ups = spread_labels({str(at): axes.bottom - axes.y.at(holds) for at, (_, holds) in enumerate(seen)}, 13, tall)
    left = axes.left + _CARDS
    for at, (name, holds) in enumerate(seen):
        y, beside = axes.y.at(holds), axes.bottom - ups[str(at)]
        said = shorten(name, _CARDS - 6, 11.0)
        words = f"{name} holds {bytes_text(holds)}"
        line = (left, y, axes.right, y)
        panel.add(Path(f"card {at}", line, stroke="ink", width=1.3, dash="dashdot", words=words))
        if panel.label(f"card name {at}", [Spot(said, axes.left + 2, beside)], size=11.0, words=words):
            start = axes.left + 4 + text_width(said, 11.0)
            panel.add(Path(f"leader {at}", (start, beside, left, y), stroke="ink", width=0.8))


def _add_names(panel: PanelBuilder, axes: Axes, edges: Edges, total: float) -> None:
    """Write the categories of the last bar beside it."""
    sizes = {name: float(high[-1] - low[-1]) for name, (low, high) in edges.items() if len(high)}
    places = {
        name: axes.bottom - axes.y.at(float(edges[name][0][-1] + edges[name][1][-1]) / 2)
        for name, size in sizes.items()
        if size > _SMALL * total
    }
    room = panel.width - axes.right - 8
    for name, up in spread_labels(places, 14, axes.bottom - axes.top).items():
        options = (f"{name} {bytes_text(sizes[name])}", name, bytes_text(sizes[name]))
        spots = [Spot(text, axes.right + 4, axes.bottom - up) for text in options if text_width(text, 11.0) <= room]
        panel.label(f"name {name}", spots, size=11.0, role=text_role(name))


def _words(bars: list[Labelled], said: str) -> str:
    if not bars:
        return "Nothing is forecast yet."
    each = ", ".join(f"{label} {bytes_text(sum(sizes.values()))}" for label, sizes in bars)
    return f"Peaks of memory: {each}." + (f" The last one {said}." if said else "")
