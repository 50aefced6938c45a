"""The picture of autograd's graph: forward reads from left to right, backward follows the arrows."""

from __future__ import annotations

from collections.abc import Mapping
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
from ...drawing import own_look, small_png, tint
from .graph import ACCUMULATE, Graph, Node

ACTIVATIONS, GRADIENTS, GREY, INK, WEIGHTS = map(colour_of, ("activations", "gradients", "grey", "ink", "weights"))

Point = tuple[float, float]

MOST_NODES = 40
"""A picture of more nodes says nothing."""
_WIDE, _LINE, _STRIP = 1.68, 0.24, 0.3  # inches: a box, a line of text, a strip
_NEAR, _FAR = 0.5, 0.98  # from column to column; with gradients written between them
_BETWEEN, _GAP, _PORT, _SEED = 0.34, 0.3, 0.3, 0.8  # from box to box, kept free for an edge, from arrow to arrow
_SIZE = 14  # of the letters: of a picture as wide as a notebook the last row can read them
_INCH, _DENSITY = 72, 144  # CSS pixels to an inch, and pixels: twice as many, for a projector
_LONG = 13  # letters that a line of a box has room for
_LABEL = 11  # bold letters that it has room for


@dataclass(frozen=True)
class GraphPicture:
    """A picture of a graph; a notebook shows it, and without pictures its words."""

    graph: Graph
    png: bytes
    width: int
    """CSS pixels, so that letters are as large in a small graph as in a large one."""

    def __repr__(self) -> str:
        return repr(self.graph)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"image/png": self.png, "text/plain": repr(self)}, {"image/png": {"width": self.width}}


def draw_graph(graph: Graph) -> GraphPicture:
    """Draw a graph of at most 40 nodes; raises ValueError for a larger one, whose text form still reads well."""
    if len(graph.nodes) > MOST_NODES:
        raise ValueError(
            f"draw_graph: a graph of at most {MOST_NODES} nodes can be read, got {len(graph.nodes)}; print it instead"
        )
    arranged = layers(graph)
    tall = max(_full(graph, column) for column in arranged.columns) + 0.3
    gap = _gap(graph)
    wide = (_WIDE + gap) * len(arranged.columns) - gap + 0.2 + (_SEED if graph.seed else 0)
    with own_look():
        figure = Figure(figsize=(wide, tall), dpi=_DENSITY, facecolor="white")
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, wide), ylim=(0, tall))
        axes.axis("off")
        middle = _places(graph, arranged, tall)
        for place, node in enumerate(graph.nodes):
            _box(axes, node, *middle[place])
        _arrows(axes, graph, arranged, middle)
        canvas.draw()
        png = small_png(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy()))
    return GraphPicture(graph, png, round(wide * _INCH))


def _gap(graph: Graph) -> float:
    return _FAR if any(edge.gradient for edge in graph.edges) else _NEAR


def _lines(node: Node) -> list[str]:
    """Return what stands in the upper part of a box, a line each."""
    if node.kind == ACCUMULATE:
        return [node.operation]
    stem, found, rest = node.operation.partition("Backward")
    operation = [stem, found + rest] if len(node.operation) > _LONG and stem and found else [node.operation]
    label = [node.label] if len(node.label) <= _LABEL or not node.value else [node.name, f"= {node.value}"]
    return [line for line in [*label, *operation, _shape(node)] if line]


def _shape(node: Node) -> str:
    """Return the shape to write in a box; ``()`` would say nothing there."""
    return "" if node.shape == () else node.size


def _strips(node: Node) -> list[tuple[str, str]]:
    """Return what stands in the lower part of a box: what is held, and what is in .grad; a text and a kind each."""
    if node.kind == ACCUMULATE:
        long = node.value and len(node.label) > _LABEL
        leaf = node.name if long else f"{node.label} {_shape(node)}".strip()
        return [(leaf, "leaf"), (f".grad {node.grad}", "grad")]
    strips = [("freed", "freed")] if node.freed else []
    if node.keeps:
        names = ", ".join(node.keeps)
        strips = [(f"keeps {names}" if len(names) + 6 <= _LONG else f"keeps {len(node.keeps)}", "keeps")]
    return strips + ([(f".grad {node.grad}", "grad")] if node.grad else [])


def _height(node: Node) -> float:
    return _LINE * len(_lines(node)) + _STRIP * len(_strips(node)) + 0.14


def _heights(graph: Graph, column: list[int]) -> list[float]:
    return [_height(graph.nodes[i]) if i < len(graph.nodes) else _GAP for i in column]


def _full(graph: Graph, column: list[int]) -> float:
    return sum(_heights(graph, column)) + _BETWEEN * (len(column) - 1)


def _places(graph: Graph, arranged: Layers, tall: float) -> dict[int, Point]:
    """Return the middle of each box and of each gap, in inches; a column stands in the middle of the height."""
    found = {}
    for number, column in enumerate(arranged.columns):
        top = (tall + _full(graph, column)) / 2
        for i, high in zip(column, _heights(graph, column), strict=True):
            found[i] = 0.1 + (_WIDE + _gap(graph)) * number + _WIDE / 2, top - high / 2
            top -= high + _BETWEEN
    return found


def _box(axes: Any, node: Node, x: float, y: float) -> None:
    high, left = _height(node), x - _WIDE / 2
    leaf = node.kind == ACCUMULATE
    face = tint(GRADIENTS, 0.45) if leaf else "white"
    _patch(axes, (left, y - high / 2), (_WIDE, high), face, GRADIENTS if leaf else INK)
    top = y + high / 2 - 0.07
    for line in _lines(node):
        weight = "bold" if line in (node.name, node.label) and not leaf else "normal"
        axes.text(x, top - _LINE / 2, line, ha="center", va="center", fontsize=_SIZE, fontweight=weight)
        top -= _LINE
    for text, kind in _strips(node):
        filling: Any = {"leaf": WEIGHTS, "grad": "white", "keeps": tint(ACTIVATIONS, 0.7), "freed": "white"}[kind]
        rim = {"leaf": WEIGHTS, "grad": GRADIENTS, "keeps": ACTIVATIONS, "freed": GREY}[kind]
        _patch(axes, (left + 0.05, top - _STRIP + 0.02), (_WIDE - 0.1, _STRIP - 0.03), filling, rim, kind == "freed")
        colour = {"leaf": "white", "freed": GREY}.get(kind, INK)
        look = {"style": "italic" if kind == "freed" else "normal", "weight": "bold" if kind == "leaf" else "normal"}
        axes.text(x, top - _STRIP / 2, text, ha="center", va="center", fontsize=_SIZE, color=colour, **look)
        top -= _STRIP


def _patch(axes: Any, corner: Point, size: Point, face: Any, rim: str, dashed: bool = False) -> None:
    style = "round,pad=0,rounding_size=0.07"
    box = FancyBboxPatch(corner, *size, style, facecolor=face, edgecolor=rim, linestyle="--" if dashed else "-")
    box.set_linewidth(1.6)
    axes.add_patch(box)


def _arrows(axes: Any, graph: Graph, arranged: Layers, middle: dict[int, Point]) -> None:
    """Draw each edge along its route, and beside its first piece what went along it."""
    routes = arranged.routes
    leaving = _ports([(route[0], number, middle[route[1]][1]) for number, route in enumerate(routes)])
    coming = _ports([(route[-1], number, middle[route[-2]][1]) for number, route in enumerate(routes)])
    pairs = [(edge.source, edge.target) for edge in graph.edges]
    for number, (edge, route) in enumerate(zip(graph.edges, routes, strict=True)):
        points = [(middle[route[0]][0] - _WIDE / 2, middle[route[0]][1] + leaving[number])]
        for gap in route[1:-1]:
            x, y = middle[gap]
            points += [(x + _WIDE / 2, y), (x - _WIDE / 2, y)]
        points.append((middle[route[-1]][0] + _WIDE / 2, middle[route[-1]][1] + coming[number]))
        _arrow(axes, points)
        if edge.gradient:
            _note(axes, edge.gradient, points[0], points[1], below=pairs[number] in pairs[:number])
    if graph.seed:
        x, y = middle[0]
        _arrow(axes, [(x + _WIDE / 2 + _SEED, y), (x + _WIDE / 2, y)])
        _note(axes, graph.seed, (x + _WIDE / 2 + _SEED, y), (x + _WIDE / 2, y))


def _ports(ends: list[tuple[int, int, float]]) -> dict[int, float]:
    """Return how far above the middle of its box each arrow begins or ends, sorted by where it leads."""
    found = {}
    for box in {box for box, _, _ in ends}:
        here = sorted(((-height, number) for other, number, height in ends if other == box))
        for row, (_, number) in enumerate(here):
            found[number] = _PORT * ((len(here) - 1) / 2 - row)
    return found


def _arrow(axes: Any, points: list[Point]) -> None:
    """Draw a smooth line through points, level at each of them, with its head at the last."""
    vertices, codes = [points[0]], [Path.MOVETO]
    for (x0, y0), (x1, y1) in pairwise(points):
        vertices += [((x0 + x1) / 2, y0), ((x0 + x1) / 2, y1), (x1, y1)]
        codes += [Path.CURVE4] * 3
    arrow = FancyArrowPatch(path=Path(vertices, codes), arrowstyle="-|>", mutation_scale=18)
    arrow.set(color=GRADIENTS, linewidth=2.2)
    axes.add_patch(arrow)


def _note(axes: Any, text: str, start: Point, end: Point, *, below: bool = False) -> None:
    """Write a gradient beside the middle of its arrow, on the side where the line is not."""
    (x0, y0), (x1, y1) = start, end
    flat = abs(y1 - y0) < 0.15
    rises = y1 > y0
    across = "center" if flat else "left" if rises != below else "right"
    x = (x0 + x1) / 2 + (0 if flat else -0.02 if across == "left" else -0.06)
    y = (y0 + y1) / 2 + (-0.05 if below else 0.05)
    rim = [withStroke(linewidth=4, foreground="white")]
    look: dict[str, Any] = {"fontsize": _SIZE, "fontweight": "bold", "path_effects": rim}
    axes.text(x, y, text, ha=across, va="top" if below else "bottom", **look)


_SWEEPS = 8


@dataclass(frozen=True)
class Layers:
    """Columns from left to right, each from top to bottom."""

    columns: list[list[int]]
    """Places in ``Graph.nodes``; a number beyond them is a gap that is kept free for an edge passing by."""
    routes: list[list[int]]
    """For each edge all that it comes by, from its source to its target, with the gaps."""


def layers(graph: Graph) -> Layers:
    """Arrange a graph as Sugiyama does: in layers, long edges through gaps, each node between its neighbours."""
    import networkx as nx

    net: Any = nx.MultiDiGraph()
    net.add_nodes_from(range(len(graph.nodes)))
    net.add_edges_from((edge.source, edge.target) for edge in graph.edges)
    # A node's generation is the longest way to it from the result: a weight stands right before its first use.
    columns = [sorted(column) for column in nx.topological_generations(net)]
    level = {node: number for number, column in enumerate(columns) for node in column}
    routes = []
    for edge in graph.edges:
        route = [edge.source]
        for passed in range(level[edge.source] + 1, level[edge.target]):
            route.append(len(net))
            net.add_node(route[-1])
            columns[passed].append(route[-1])
        route.append(edge.target)
        nx.add_path(net, route)
        if len(route) > 2:
            net.remove_edge(edge.source, edge.target)
        routes.append(route)
    _order(net, columns)
    return Layers(columns[::-1], routes)


def _order(net: Any, columns: list[list[int]]) -> None:
    """Sort each column by where the neighbours stand, from the one end and then from the other; the best is kept."""
    best, fewest = [list(column) for column in columns], _crossings(net, columns)
    for sweep in range(_SWEEPS):
        neighbours = net.predecessors if sweep % 2 == 0 else net.successors
        for column in columns if sweep % 2 == 0 else columns[::-1]:
            at = _rows(columns)
            means = {node: _mean([at[other] for other in neighbours(node)], at[node]) for node in column}
            column.sort(key=lambda node: means[node])
        if (crossings := _crossings(net, columns)) < fewest:
            best, fewest = [list(column) for column in columns], crossings
    columns[:] = best


def _rows(columns: list[list[int]]) -> dict[int, float]:
    return {node: row - (len(column) - 1) / 2 for column in columns for row, node in enumerate(column)}


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _crossings(net: Any, columns: list[list[int]]) -> int:
    at: Mapping[int, float] = _rows(columns)
    count = 0
    for column in columns:
        ways = [(at[node], at[other]) for node in column for other in net.successors(node)]
        count += sum((a - c) * (b - d) < 0 for i, (a, b) in enumerate(ways) for c, d in ways[:i])
    return count
