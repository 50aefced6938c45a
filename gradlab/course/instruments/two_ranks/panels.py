"""The pictures of two ranks: what is in each ``.grad``, and where the weights go."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ....drawing import (
    BATCH_STYLES,
    Axes,
    Box,
    Dots,
    Drawing,
    PanelBuilder,
    Path,
    Side,
    Spot,
    add_key,
    arrow_outline,
    make_axes,
)
from ....formatting import short
from .measure import Vector
from .moments import Moment, RankMoment

_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 12.0, 54.0, 40.0
_CROWD = 3  # so many fresh arrows have their full names beside them
_HALVES = {1.0: "", 0.5: "\u00bd of "}


Pixels = npt.NDArray[np.float64]
"""Two coordinates in CSS pixels."""


class PartArrow(NamedTuple):
    """An arrow of the picture: a contribution, or all that is stale together."""

    vector: Vector
    stale: bool
    names: tuple[str, ...]
    """What it is called, the longest first."""


class Extent(NamedTuple):
    """The smallest and largest values that a picture has to hold, along both axes."""

    low: Vector
    high: Vector


def arrows_of(rank: RankMoment) -> list[PartArrow]:
    """Return what is drawn head to tail: what is stale as one arrow, then each fresh contribution."""
    stale = [part.vector for part in rank.parts if part.stale]
    found = []
    if stale:
        found.append(PartArrow((sum(x for x, _ in stale), sum(y for _, y in stale)), True, ("left over", "old")))
    for part in (part for part in rank.parts if not part.stale):
        who = f"{_HALVES.get(part.share, f'{part.share:g} of ')}rank {part.origin.rank}'s"
        names = (f"{who} batch {part.origin.micro}", who, f"rank {part.origin.rank}")
        found.append(PartArrow(part.vector, False, names))
    return found


def gradient_extent(moments: Sequence[Moment]) -> Extent:
    """Return what the pictures of both ``.grad`` need over all moments, so that their axes stay."""
    points: list[Vector] = [(0.0, 0.0)]
    for moment in moments:
        for rank in moment.ranks:
            points += [rank.whole, rank.grad or (0.0, 0.0)]
            x, y = 0.0, 0.0
            for arrow in arrows_of(rank):
                x, y = x + arrow.vector[0], y + arrow.vector[1]
                points.append((x, y))
    return _extent(points)


def weights_extent(moments: Sequence[Moment], best: Vector) -> Extent:
    """Return what the picture of the weights needs at the last moment, and with it at all."""
    last = moments[-1]
    return _extent([*last.ranks[0].path, *last.ranks[1].path, *last.alone, best])


def draw_gradient(moment: Moment, number: int, extent: Extent, width: int, height: int) -> Drawing:
    """Draw the contributions to one rank's ``.grad`` head to tail, and their sum."""
    rank = moment.ranks[number]
    panel = PanelBuilder(f".grad of rank {number}", width, height)
    held = "None" if rank.grad is None else vector_text(rank.grad)
    panel.corner(held)
    axes = _equal_axes(extent, ("weight 1", "weight 2"), width, height)
    panel.axes(axes)
    origin = np.array([axes.x.at(0.0), axes.y.at(0.0)])
    panel.add(Dots("origin", tuple(origin.tolist()), shape="plus", size=9.0, stroke="grey", width=1.5))
    for place, look in enumerate(("fresh", "stale", "sum")):
        add_key(panel, (look,), axes.left + 74.0 * place, 38.0)
    if rank.grad is not None:
        _add_arrow(panel, "sum", origin, _place(axes, rank.grad), 15.0, "sum", f"what .grad holds: {held}")
    alone = _place(axes, rank.whole) if moment.complete and rank.off > 1e-3 else None
    if alone is not None:
        words = f"one process with all samples: {vector_text(rank.whole)}"
        line = (*origin.tolist(), *alone.tolist())
        panel.add(Path("whole", line, stroke="ink", width=1.8, dash="dotted", words=words))
        panel.add(
            Dots("whole end", tuple(alone.tolist()), shape="ring", size=9.0, stroke="ink", width=1.8, words=words)
        )
        _keep_free(panel, alone, alone)
    _add_parts(panel, axes, arrows_of(rank))
    if alone is not None:
        panel.label("whole name", _around("one process", alone), backed=True)
    return panel.finish(_gradient_words(moment, number))


def _add_parts(panel: PanelBuilder, axes: Axes, arrows: Sequence[PartArrow]) -> None:
    """Draw arrows head to tail from the origin, and their names beside them, those of fresh ones first."""
    at, drawn = (0.0, 0.0), []
    for count, arrow in enumerate(arrows):
        tip = (at[0] + arrow.vector[0], at[1] + arrow.vector[1])
        tail, head = _place(axes, at), _place(axes, tip)
        words = f"{arrow.names[0]}: {vector_text(arrow.vector)}"
        _add_arrow(panel, f"arrow {count}", tail, head, 7.0, "stale" if arrow.stale else "fresh", words)
        _keep_free(panel, tail, head)
        drawn.append((count, tail, head))
        at = tip
    crowded = sum(not arrow.stale for arrow in arrows) > _CROWD
    for count, tail, head in sorted(drawn, key=lambda each: arrows[each[0]].stale):
        names = arrows[count].names[-1:] if crowded else arrows[count].names
        if math.dist(tail, head) > 10:
            others = [(a, b) for other, a, b in drawn if other != count]
            spots = [
                spot
                for name in names
                for spot in _beside(name, tail, head)
                if all(_distance(spot, tail, head) < _distance(spot, a, b) for a, b in others)
            ]
            panel.label(f"arrow name {count}", spots, backed=True)


def draw_weights(moment: Moment, extent: Extent, best: Vector, width: int, height: int) -> Drawing:
    """Draw the way of both ranks' weights, and of one process with all samples."""
    panel = PanelBuilder("weights", width, height)
    apart = moment.apart
    panel.corner("the ranks are equal" if apart == 0 else f"the ranks are {short(apart)} apart")
    axes = _equal_axes(extent, ("weight 1", "weight 2"), width, height)
    panel.axes(axes)
    place = _place(axes, best).tolist()
    words = f"the least loss: {vector_text(best)}"
    panel.add(Dots("best", tuple(place), shape="star", size=13.0, fill="loss", words=words))
    panel.label("best name", _around("least loss", np.array(place)))
    ways = [
        ("one process", moment.alone, "grey", "dashed", "ring", 12.0),
        ("rank 0", moment.ranks[0].path, "weights", "", "triangle", 9.0),
        ("rank 1", moment.ranks[1].path, "weights", "dotted", "down", 9.0),
    ]
    x = axes.left
    for name, path, role, dash, shape, size in ways:
        points = np.array([_place(axes, each) for each in path]).ravel()
        said = f"{name}: {vector_text(path[-1])} after {len(path) - 1} updates"
        if len(path) > 1:
            panel.add(Path(f"{name} way", points, stroke=role, width=2.0, dash=dash, words=said))
        panel.add(Dots(name, points, shape=shape, size=size, stroke=role, width=1.5, words=said))
        panel.add(Dots(f"key {name}", (x + 6.0, 38.0), shape=shape, size=size, stroke=role, width=1.5))
        panel.label(f"key {name} word", [Spot(name, x + 16.0, 38.0)])
        x += 30.0 + 7.0 * len(name)
    return panel.finish(_weights_words(moment))


def vector_text(vector: Vector) -> str:
    """Write two numbers: ``(−3.79, −2.39)``."""
    return f"({short(vector[0])}, {short(vector[1])})"


def _equal_axes(extent: Extent, names: tuple[str, str], width: int, height: int) -> Axes:
    """Return axes with as many pixels to a unit along both, so that arrows keep their angles."""
    left, top, right, bottom = _LEFT, _TOP, width - _RIGHT, height - _BOTTOM
    low, high = np.array(extent.low), np.array(extent.high)
    spans = np.maximum(high - low, 1e-6) * 1.12
    per_pixel = max(spans[0] / (right - left), spans[1] / (bottom - top))
    room = per_pixel * np.array([right - left, bottom - top])
    low = (low + high) / 2 - room / 2
    x, y = (Side(float(low[at]), float(low[at] + room[at]), words=names[at]) for at in (0, 1))
    return make_axes((width, height), left, top, right, bottom, x, y)


def _extent(points: Sequence[Vector]) -> Extent:
    """Return the box around all points."""
    array = np.array(points)
    low, high = array.min(axis=0).tolist(), array.max(axis=0).tolist()
    return Extent((low[0], low[1]), (high[0], high[1]))


def _place(axes: Axes, point: Vector) -> Pixels:
    return np.array([axes.x.at(point[0]), axes.y.at(point[1])])


def _add_arrow(
    panel: PanelBuilder,
    id: str,
    tail: Pixels,
    head: Pixels,
    width: float,
    kind: str,
    words: str,
) -> None:
    corners = arrow_outline(tail, head, width)
    if len(corners):
        panel.add(Path(id, corners.ravel(), words=words, **BATCH_STYLES[kind]))


def _keep_free(panel: PanelBuilder, tail: Pixels, head: Pixels) -> None:
    """Keep labels off an arrow."""
    steps = max(int(math.dist(tail, head) / 6), 1)
    for x, y in (tail + (head - tail) * (step / steps) for step in range(steps + 1)):
        panel.placer.take([Box(x - 5, y - 5, x + 5, y + 5)])


def _beside(text: str, tail: Pixels, head: Pixels) -> list[Spot]:
    """Return spots beside the middle of an arrow, on both sides."""
    (x0, y0), (x1, y1) = tail.tolist(), head.tolist()
    length = math.hypot(x1 - x0, y1 - y0) or 1.0
    across, down = -(y1 - y0) / length, (x1 - x0) / length
    spots = []
    for far in (16.0, -16.0, 24.0, -24.0):
        right = far * across
        anchor = "start" if right > 5 else "end" if right < -5 else "middle"
        spots.append(Spot(text, (x0 + x1) / 2 + right, (y0 + y1) / 2 + far * down, anchor))
    return spots


def _distance(spot: Spot, tail: Pixels, head: Pixels) -> float:
    """Return how far the near end of a label is from an arrow: it must be nearest to its own."""
    along, point = head - tail, np.array([spot.x, spot.y])
    share = float(np.clip((point - tail) @ along / max(float(along @ along), 1e-9), 0.0, 1.0))
    return float(np.linalg.norm(point - tail - share * along))


def _around(text: str, point: Pixels) -> list[Spot]:
    """Return spots around a point."""
    x, y = point.tolist()
    near = [Spot(text, x + 10, y), Spot(text, x - 10, y, "end")]
    return [*near, Spot(text, x, y - 14, "middle"), Spot(text, x, y + 14, "middle")]


def _gradient_words(moment: Moment, number: int) -> str:
    rank = moment.ranks[number]
    if rank.grad is None:
        return f"Rank {number}: .grad is None."
    parts = "; ".join(f"{arrow.names[0]} {vector_text(arrow.vector)}" for arrow in arrows_of(rank))
    words = f"Rank {number}: .grad holds {vector_text(rank.grad)}: {parts}."
    if moment.complete and rank.off > 1e-3:
        words += f" One process with all samples would have {vector_text(rank.whole)}: off by {rank.off:.0%}."
    return words


def _weights_words(moment: Moment) -> str:
    zero, one = (rank.path[-1] for rank in moment.ranks)
    alone = f"one process with all samples is at {vector_text(moment.alone[-1])}"
    if moment.apart == 0:
        return f"Both ranks are at {vector_text(zero)}; {alone}."
    return f"Rank 0 is at {vector_text(zero)}, rank 1 at {vector_text(one)}, {short(moment.apart)} apart; {alone}."
