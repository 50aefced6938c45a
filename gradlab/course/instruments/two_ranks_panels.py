"""The panels of two ranks: what is in each ``.grad``, what passes between them, and where the weights go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...drawing import (
    Axes,
    Box,
    Dots,
    Drag,
    Drawing,
    Mark,
    PanelBuilder,
    Path,
    Side,
    Spot,
    add_arrow_names,
    add_arrows,
    add_key,
    arrow_ends,
    make_axes,
    make_box,
    text_width,
)
from ...formatting import number_of, short
from ...scenes import Arrows
from ..figures.curves import equal_axes
from .two_ranks_numbers import MOMENTS, LoopSettings, Moment, RankMoment, Vector, best_weights

_FRAME = 58.0, 54.0, 12.0, 40.0  # CSS pixels around arrows and weights: left, top, right, bottom
_WEIGHTS = "weight 1", "weight 2"

Points = npt.NDArray[np.float64]
"""Two coordinates each."""


def gradient_points(moments: Sequence[Moment]) -> Points:
    """Return what the pictures of both ``.grad`` have to hold over all moments, so that their axes stay."""
    ranks = [rank for moment in moments for rank in moment.ranks]
    return np.vstack([[rank.whole for rank in ranks], *(arrow_ends(_scene(rank)) for rank in ranks)])


def weights_points(moments: Sequence[Moment]) -> Points:
    """Return what the picture of the weights has to hold at the last moment, and with it at all."""
    last = moments[-1]
    return np.array([*last.ranks[0].path, *last.ranks[1].path, *last.alone, best_weights()])


def draw_rank_gradient(moment: Moment, number: int, points: Points, width: int, height: int) -> Drawing:
    """Draw the contributions to one rank's ``.grad`` head to tail, and their sum; ``points`` are to be seen."""
    rank = moment.ranks[number]
    panel = PanelBuilder(f".grad of rank {number}", width, height)
    panel.corner(_grad_text(rank))
    axes = equal_axes((width, height), _FRAME, points, _WEIGHTS)
    panel.axes(axes)
    panel.placer.take([Box(0, axes.top, axes.left, axes.bottom)])  # names stay inside
    origin, unit = _place(axes, (0.0, 0.0)), (axes.right - axes.left) / (axes.x.high - axes.x.low)
    panel.add(Dots("origin", origin, shape="plus", size=9.0, stroke="grey", width=1.5))
    add_key(panel, ("fresh", "stale", "sum"), axes.left, 38.0, axes.right)
    scene = _scene(rank)
    places, thick = add_arrows(panel, scene, arrow_ends(scene), origin, np.array([unit, -unit]))
    off = moment.complete and rank.off > 1e-3
    alone = _place(axes, rank.whole)
    if off:
        x, y = alone.tolist()
        words = f"one process with all samples: {vector_text(rank.whole)}"
        look: dict[str, Any] = {"stroke": "ink", "width": 1.8, "words": words}
        panel.add(Path("whole", np.concatenate([origin, alone]), dash="dotted", **look))
        panel.add(Dots("whole end", alone, shape="ring", size=9.0, **look))
        panel.placer.take([Box(x - 5, y - 5, x + 5, y + 5)])
    add_arrow_names(panel, scene, places, thick, backed=True)
    if off:
        panel.label("whole name", _around("one process", alone), backed=True)
    parts = "; ".join(f"{arrow.names[0]} {vector_text((arrow.x, arrow.y))}" for arrow in rank.arrows)
    words = (
        f"Rank {number}: .grad holds {_grad_text(rank)}: {parts}." if rank.grad else f"Rank {number}: .grad is None."
    )
    if off:
        words += f" One process with all samples would have {vector_text(rank.whole)}: off by {rank.off:.0%}."
    return panel.finish(words)


def _scene(rank: RankMoment) -> Arrows:
    return Arrows(rank.arrows, rank.grad or (0.0, 0.0))


def draw_weights(moment: Moment, points: Points, width: int, height: int) -> Drawing:
    """Draw the way of both ranks' weights, and of one process with all samples."""
    panel = PanelBuilder("weights", width, height)
    apart = moment.apart
    panel.corner("the ranks are equal" if apart == 0 else f"the ranks are {short(apart)} apart")
    axes = equal_axes((width, height), _FRAME, points, _WEIGHTS)
    panel.axes(axes)
    best = _place(axes, best_weights())
    words = f"the least loss: {vector_text(best_weights())}"
    panel.add(Dots("best", best, shape="star", size=13.0, fill="loss", words=words))
    panel.label("best name", _around("least loss", best))
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
    zero, one = (rank.path[-1] for rank in moment.ranks)
    both = "Both ranks are" if apart == 0 else "Rank 0 is"
    other = "" if apart == 0 else f", rank 1 at {vector_text(one)}, {short(apart)} apart"
    alone = f"one process with all samples is at {vector_text(moment.alone[-1])}"
    return panel.finish(f"{both} at {vector_text(zero)}{other}; {alone}.")


def draw_messages(moments: Sequence[Moment], now: Moment, settings: LoopSettings, width: int, height: int) -> Drawing:
    """Draw what each rank does, statement by statement, and what passes between them; a line marks this moment."""
    panel = PanelBuilder("messages", width, height)
    panel.corner(count_text(now), f"{len(now.messages)}, {sum(now.messages)} B")
    side = Side(0.0, MOMENTS + 1.0, words="statements", ticks="updates")
    rows = Side(0.0, 1.0, ticks="none")
    axes = make_axes((width, height), 58.0, 68.0, width - 12.0, height - 42.0, side, rows)
    panel.axes(axes)
    tall = axes.bottom - axes.top
    rank_y = (axes.top + 0.18 * tall, axes.top + 0.74 * tall)
    half = min(7.0, 0.42 * (axes.x.at(1.0) - axes.x.at(0.0)))
    for number, y in enumerate(rank_y):
        panel.label(f"rank {number}", [Spot(f"rank {number}", axes.left - 6, y, "end")])
    _add_key(panel, settings)
    x = axes.x.at(now.number)
    panel.add(make_box("now", x - half - 3, axes.top, x + half + 3, axes.bottom, fill="faint", words="this moment"))
    panel.add(Dots("now mark", (x, axes.top - 3), shape="down", size=11.0, fill="ink", words="this moment"))
    for moment in moments[1:]:
        x = axes.x.at(moment.number)
        _add_statement(panel, moment, settings, x, rank_y, half, later=moment.number > now.number)
        if moment.statement == "step" and moment.number < MOMENTS:
            edge = axes.x.at(moment.number + 0.5)
            panel.add(Path(f"end {moment.update}", (edge, axes.top, edge, axes.bottom), stroke="faint", width=1.0))
    drag = Drag("moment", axes.x.axis, axes.y.axis)
    panel.add(make_box("moment", axes.left, axes.top - 10, axes.right, axes.bottom, drag=drag))
    last = moments[-1]
    return panel.finish(f"{count_text(now)} so far. After {last.update} updates it will be {count_text(last)}.")


def count_text(moment: Moment) -> str:
    """Say how many all-reduces there were and how many bytes each rank handed in."""
    count = len(moment.messages)
    return f"{number_of(count, 'all-reduce')}, {sum(moment.messages)} bytes from each rank"


def _add_statement(
    panel: PanelBuilder,
    moment: Moment,
    settings: LoopSettings,
    x: float,
    rank_y: tuple[float, float],
    half: float,
    later: bool,
) -> None:
    """Draw one statement of both ranks; what is still to come is pale."""
    pale = "/35" if later else ""
    name, told = str(moment.number), f"update {moment.update}"
    if moment.statement == "all-reduce":
        top, bottom = rank_y[0] + 13, rank_y[1] - 13
        told += f", micro-batch {moment.micro}"
        if moment.quiet:
            words = f"{told}: inside no_sync(), nothing is sent"
            panel.add(Path(name, (x, top, x, bottom), stroke="grey" + pale, width=1.2, dash="dotted", words=words))
            return
        words = f"{told}: all-reduce, {moment.sent} bytes from each rank"
        panel.add(make_box(name, x - half * 0.6, top, x + half * 0.6, bottom, words=words, **_message_look(pale)))
        panel.label(f"size {name}", [Spot(f"{moment.sent} B", x, rank_y[1] + 20, "middle")], size=11.0, role="grey")
        return
    for rank, y in enumerate(rank_y):
        forgotten = moment.statement == "zero_grad" and not settings.clears(rank)
        words = f"{told}, rank {rank}: {moment.statement}{' is forgotten' * forgotten}"
        kind = "forgotten" if forgotten else moment.statement
        panel.add(_statement_mark(f"{name} {rank}", kind, x, y, half, pale, words))


def _statement_mark(id: str, kind: str, x: float, y: float, half: float, pale: str = "", words: str = "") -> Mark:
    """Return the mark of what one rank does in a statement; ``half`` is about half of its width."""
    if kind == "backward":
        look = {"fill": "fresh" + pale, "stroke": "ink" + pale, "width": 1.0}
        return make_box(id, x - half, y - half, x + half, y + half, words=words, **look)
    looks: dict[str, dict[str, Any]] = {
        "zero_grad": {"shape": "ring", "size": 1.6 * half, "stroke": "grey" + pale, "width": 1.6},
        "step": {"shape": "diamond", "size": 1.6 * half, "fill": "optimizer" + pale},
        "forgotten": {"shape": "cross", "size": 2 * half, "stroke": "wrong" + pale, "width": 2.2},
    }
    return Dots(id, (x, y), words=words, **looks[kind])


def _message_look(pale: str = "") -> dict[str, Any]:
    return {"fill": "gradients" + pale, "hatch": "//", "stroke": "ink" + pale, "width": 1.0}


def _add_key(panel: PanelBuilder, settings: LoopSettings) -> None:
    x, y = 8.0, 38.0
    for name in ("zero_grad", "backward", "all-reduce", "step", *(["forgotten"] * (settings.forgets != "none"))):
        wide = 16.0 + text_width(name)
        if x + wide > panel.width:
            x, y = 8.0, y + 16.0
        if name == "all-reduce":
            panel.add(make_box(f"key {name}", x + 2, y - 6, x + 10, y + 6, **_message_look()))
        else:
            panel.add(_statement_mark(f"key {name}", name, x + 6.0, y, 6.0))
        panel.label(f"key {name} word", [Spot(name, x + 16.0, y)])
        x += wide + 7.0


def vector_text(vector: Vector) -> str:
    """Write two numbers: ``(−3.79, −2.39)``."""
    return f"({short(vector[0])}, {short(vector[1])})"


def _grad_text(rank: RankMoment) -> str:
    return "None" if rank.grad is None else vector_text(rank.grad)


def _place(axes: Axes, point: Vector) -> Points:
    return np.array([axes.x.at(point[0]), axes.y.at(point[1])])


def _around(text: str, point: Points) -> list[Spot]:
    """Return spots around a point."""
    x, y = point.tolist()
    near = [Spot(text, x + 10, y), Spot(text, x - 10, y, "end")]
    return [*near, Spot(text, x, y - 14, "middle"), Spot(text, x, y + 14, "middle")]
