"""Pictures of graphs, in which forward runs from left to right and arrows show the gradients of backward."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from PIL import Image

from ...drawing import colour as colour_of
from ...drawing import gradlab_style, small_png, tint
from .graph import LEAF_NAMES, Graph, Node

ACTIVATIONS, GRADIENTS, GREY, INK, WEIGHTS = map(colour_of, ("activations", "gradients", "grey", "ink", "weights"))

Point = tuple[float, float]

MOST_NODES = 40
"""The largest number of nodes in a readable picture."""
_WIDE, _LINE, _STRIP = 1.68, 0.24, 0.3  # inches: width of a box, height of a line of text, height of a strip
_NEAR, _FAR, _CHAR = 0.5, 0.98, 0.22  # inches between columns: without gradients, with short ones, per character
_BETWEEN, _GAP, _PORT, _SEED = 0.34, 0.3, 0.3, 0.8  # inches between boxes, of a gap, between arrows, of the seed arrow
_SIZE = 14  # font size in points, readable from a classroom's last row if the picture fills a notebook
_INCH, _DENSITY = 72, 144  # CSS pixels per inch, and twice as many image pixels per inch for projectors
_LONG, _LABEL = 13, 11  # number of characters that fit in a line of a box in normal and in bold type
_STRIPS: dict[str, tuple[Any, str, str]] = {
    "leaf": (WEIGHTS, WEIGHTS, "white"),
    "grad": ("white", GRADIENTS, INK),
    "keeps": (tint(ACTIVATIONS, 0.7), ACTIVATIONS, INK),
    "freed": ("white", GREY, GREY),
}
"""The colours of the fill, the edge and the text of each kind of strip."""


@dataclass(frozen=True)
class GraphPicture:
    """A picture of a graph, which a notebook displays. The repr is that of the graph."""

    graph: Graph
    png: bytes
    width: int
    """The width in CSS pixels, at which text has the same size in small and large graphs."""

    def __repr__(self) -> str:
        return repr(self.graph)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"image/png": self.png, "text/plain": repr(self)}, {"image/png": {"width": self.width}}


def draw_graph(graph: Graph) -> GraphPicture:
    """Return a picture of ``graph``. Raises ValueError for more than 40 nodes; a larger graph can only be printed."""
    if (count := len(graph.nodes)) > MOST_NODES:
        raise ValueError(f"draw_graph: graph must have at most {MOST_NODES} nodes, got {count}; print it instead")
    columns, routes = layers(graph)
    heights = defaultdict(lambda: _GAP, {i: _height(node) for i, node in enumerate(graph.nodes)})
    full = [sum(heights[i] for i in column) + _BETWEEN * (len(column) - 1) for column in columns]
    step = _WIDE + max((max(_FAR, _CHAR * len(way.gradient)) for way in graph.edges if way.gradient), default=_NEAR)
    wide, tall = step * (len(columns) - 1) + _WIDE + 0.2 + (_SEED if graph.seed else 0), max(full) + 0.3
    middle: dict[int, Point] = {}
    for number, column in enumerate(columns):  # each column is centred
        top = (tall + full[number]) / 2
        for i in column:
            middle[i] = 0.1 + step * number + _WIDE / 2, top - heights[i] / 2
            top -= heights[i] + _BETWEEN
    with gradlab_style():
        figure = Figure(figsize=(wide, tall), dpi=_DENSITY, facecolor="white")
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, wide), ylim=(0, tall))
        axes.axis("off")
        for i, node in enumerate(graph.nodes):
            _box(axes, node, *middle[i])
        _arrows(axes, graph, routes, middle)
        canvas.draw()
        png = small_png(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy()))
    return GraphPicture(graph, png, round(wide * _INCH))


def _lines(node: Node) -> list[str]:
    if node.operation in LEAF_NAMES:
        return [node.operation]
    stem, backward, rest = node.operation.partition("Backward")
    operation = [stem, backward + rest] if len(node.operation) > _LONG and stem and backward else [node.operation]
    label = [node.label] if len(node.label) <= _LABEL or not node.value else [node.name, f"= {node.value}"]
    return [line for line in [*label, *operation, node.size if node.shape else ""] if line]


def _strips(node: Node) -> list[tuple[str, str]]:
    """Return the text and the kind (a key of _STRIPS) of each strip in the lower part of a node's box."""
    strips = [("freed", "freed")] if node.freed else []
    if node.operation in LEAF_NAMES:
        full = f"{node.label} {node.size if node.shape else ''}".strip()
        strips.append((node.name if node.value and len(node.label) > _LABEL else full, "leaf"))
    elif node.keeps:
        names = ", ".join(node.keeps)
        strips.append((f"keeps {names}" if len(names) + 6 <= _LONG else f"keeps {len(node.keeps)}", "keeps"))
    return strips + ([(f".grad {node.grad}", "grad")] if node.grad else [])


def _height(node: Node) -> float:
    return _LINE * len(_lines(node)) + _STRIP * len(_strips(node)) + 0.14


def _box(axes: Any, node: Node, x: float, y: float) -> None:
    high, left, leaf = _height(node), x - _WIDE / 2, node.operation in LEAF_NAMES
    face, rim = (tint(GRADIENTS, 0.45), GRADIENTS) if leaf else ("white", INK)
    _patch(axes, (left, y - high / 2), (_WIDE, high), face, rim)
    top = y + high / 2 - 0.07
    centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": _SIZE}
    for line in _lines(node):
        weight = "bold" if line in (node.name, node.label) and not leaf else "normal"
        axes.text(x, top - _LINE / 2, line, fontweight=weight, **centred)
        top -= _LINE
    for text, kind in _strips(node):
        filling, rim, ink = _STRIPS[kind]
        _patch(axes, (left + 0.05, top - _STRIP + 0.02), (_WIDE - 0.1, _STRIP - 0.03), filling, rim, kind == "freed")
        font = {"style": "italic" if kind == "freed" else "normal", "weight": "bold" if kind == "leaf" else "normal"}
        axes.text(x, top - _STRIP / 2, text, color=ink, **font, **centred)
        top -= _STRIP


def _patch(axes: Any, corner: Point, size: Point, face: Any, rim: str, dashed: bool = False) -> None:
    style = "round,pad=0,rounding_size=0.07"
    colours = {"facecolor": face, "edgecolor": rim}
    axes.add_patch(FancyBboxPatch(corner, *size, style, linewidth=1.6, linestyle="--" if dashed else "-", **colours))


def _arrows(axes: Any, graph: Graph, routes: list[list[int]], middle: dict[int, Point]) -> None:
    leaving = _ports([(route[0], middle[route[1]][1]) for route in routes])
    coming = _ports([(route[-1], middle[route[-2]][1]) for route in routes])
    pairs = [(edge.source, edge.target) for edge in graph.edges]
    for number, (edge, route) in enumerate(zip(graph.edges, routes, strict=True)):
        points = [(middle[route[0]][0] - _WIDE / 2, middle[route[0]][1] + leaving[number])]
        for gap in route[1:-1]:
            x, y = middle[gap]
            points += [(x + _WIDE / 2, y), (x - _WIDE / 2, y)]
        points.append((middle[route[-1]][0] + _WIDE / 2, middle[route[-1]][1] + coming[number]))
        _arrow(axes, points, edge.gradient, below=pairs[number] in pairs[:number])
    if graph.seed:
        x, y = middle[0]
        _arrow(axes, [(x + _WIDE / 2 + _SEED, y), (x + _WIDE / 2, y)], graph.seed)


def _ports(ends: list[tuple[int, float]]) -> dict[int, float]:
    """Return the height of each arrow's end above its box's middle; a box's arrows are sorted by their other ends."""
    ports = {}
    for box in {box for box, _ in ends}:
        here = sorted((-height, number) for number, (other, height) in enumerate(ends) if other == box)
        for row, (_, number) in enumerate(here):
            ports[number] = _PORT * ((len(here) - 1) / 2 - row)
    return ports


def _arrow(axes: Any, points: list[Point], text: str, *, below: bool = False) -> None:
    """Draw a smooth arrow through ``points``, with its head at the last one and ``text`` next to its first segment."""
    vertices, codes = [points[0]], [Path.MOVETO]
    for (x0, y0), (x1, y1) in pairwise(points):
        vertices += [((x0 + x1) / 2, y0), ((x0 + x1) / 2, y1), (x1, y1)]
        codes += [Path.CURVE4] * 3
    head: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 18}
    axes.add_patch(FancyArrowPatch(path=Path(vertices, codes), color=GRADIENTS, linewidth=2.2, **head))
    if not text:
        return
    (x0, y0), (x1, y1) = points[:2]
    flat = abs(y1 - y0) < 0.15
    across = "center" if flat else "left" if (y1 > y0) != below else "right"
    x = (x0 + x1) / 2 + {"center": 0, "left": -0.02, "right": -0.06}[across]
    y = (y0 + y1) / 2 + (-0.05 if below else 0.05)
    rim = [withStroke(linewidth=4, foreground="white")]
    font: dict[str, Any] = {"fontsize": _SIZE, "fontweight": "bold", "path_effects": rim}
    axes.text(x, y, text, ha=across, va="top" if below else "bottom", **font)


def layers(graph: Graph) -> tuple[list[list[int]], list[list[int]]]:
    """Arrange a graph in columns. An edge to a distant column passes through a gap in every column between.

    Returns:
        The columns from left to right, each with the indices of its nodes and gaps from top to bottom, and the routes
        of the edges, each with the indices of the source, the gaps and the target. Gaps are numbered after the nodes.
    """
    level = [0] * len(graph.nodes)  # length of the longest path from the result, so a weight is next to its first use
    for edge in graph.edges:
        level[edge.target] = max(level[edge.target], level[edge.source] + 1)
    columns = [[i for i, its_level in enumerate(level) if its_level == number] for number in range(max(level) + 1)]
    routes, gaps = [], len(graph.nodes)
    for edge in graph.edges:
        passed = range(level[edge.source] + 1, level[edge.target])
        routes.append([edge.source, *range(gaps, gaps + len(passed)), edge.target])
        for gap, number in enumerate(passed, gaps):
            columns[number].append(gap)
        gaps += len(passed)
    return columns[::-1], routes
