"""The picture of a graph: the positions of the boxes, and no overlaps."""

from __future__ import annotations

from io import BytesIO
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from PIL import Image

from gradlab.course.figures.graph import LEAF, Edge, Graph, Node
from gradlab.course.figures.graph_picture import draw_graph, layers


def make_graph(edges: str, *, seed: str = "") -> Graph:
    """A graph from "01 02 12": from node 0 to node 1, ..."""
    pairs = [(int(pair[0], 36), int(pair[1], 36)) for pair in edges.split()]
    last = max(max(pair) for pair in pairs)
    ends = set(range(last + 1)) - {source for source, _ in pairs}
    nodes = [
        Node(LEAF, f"w{i}", (3, 4), grad="None") if i in ends else Node("MulBackward0", shape=())
        for i in range(last + 1)
    ]
    return Graph(tuple(nodes), tuple(Edge(*pair, "\u22126") for pair in pairs), seed)


def drawn(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> Figure:
    """The figure in which a graph is drawn."""
    figures: list[Figure] = []

    class Kept(Figure):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            figures.append(self)

    monkeypatch.setattr("gradlab.course.figures.graph_picture.Figure", Kept)
    draw_graph(graph)
    (figure,) = figures
    return figure


GRAPHS = ["01 01", "01 12 23 03 02", "01 02 03 14 24 34 05 45"]


@pytest.mark.parametrize("edges", GRAPHS)
def test_each_edge_leads_left_column_by_column(edges: str) -> None:
    graph = make_graph(edges)
    columns, routes = layers(graph)
    column = {node: number for number, members in enumerate(columns) for node in members}
    assert set(range(len(graph.nodes))) <= set(column)
    for edge, route in zip(graph.edges, routes, strict=True):
        assert (route[0], route[-1]) == (edge.source, edge.target)
        assert all(column[before] - column[after] == 1 for before, after in pairwise(route))
        assert all(gap >= len(graph.nodes) for gap in route[1:-1])
    assert columns[-1] == [0]


@pytest.mark.parametrize("edges", GRAPHS)
def test_no_box_covers_another_and_none_leaves_the_picture(edges: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = make_graph(edges)
    (axes,) = drawn(graph, monkeypatch).axes
    patches = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    widest = max(patch.get_width() for patch in patches)
    boxes = [patch.get_bbox() for patch in patches if patch.get_width() == widest]  # the others are the strips in them
    assert len(boxes) == len(graph.nodes)
    (wide, tall) = axes.get_xlim()[1], axes.get_ylim()[1]
    assert all(0 <= box.x0 < box.x1 <= wide and 0 <= box.y0 < box.y1 <= tall for box in boxes)
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_two_gradients_between_the_same_boxes_stand_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (axes,) = drawn(make_graph("01 01"), monkeypatch).axes
    notes = [text for text in axes.texts if text.get_text() == "\u22126"]
    assert [text.get_verticalalignment() for text in notes] == ["bottom", "top"]
    assert notes[0].get_position()[1] > notes[1].get_position()[1]


def test_a_drawing_is_a_picture_and_its_words() -> None:
    graph = make_graph(GRAPHS[1], seed="1")
    bundle, metadata = draw_graph(graph)._repr_mimebundle_()
    assert 0 < metadata["image/png"]["width"] < 1000
    assert bundle["text/plain"] == repr(graph) == repr(draw_graph(graph))
    picture = np.asarray(Image.open(BytesIO(bundle["image/png"])).convert("RGB"))
    colours = {tuple(int(c) for c in colour) for colour in np.unique(picture.reshape(-1, 3), axis=0)}
    assert {(0x00, 0x72, 0xB2), (0xE6, 0x9F, 0x00)} <= colours  # a weight is blue, a gradient's way orange


@pytest.mark.parametrize(
    ("node", "lines"),
    [
        (Node("MulBackward0", keeps=("x", "w")), ["MulBackward0", "keeps x, w"]),
        (Node("MulBackward0", keeps=("(5, 3)", "(3, 1)")), ["MulBackward0", "keeps 2"]),
        (Node("MulBackward0", freed=True, grad="2"), ["MulBackward0", "freed", ".grad 2"]),
        (Node(LEAF, "", (3,), grad="None"), ["AccumulateGrad", "(3,)", ".grad None"]),
        # a single number with a name shows its value
        (Node("AddBackward0", name="y", shape=(), value="7"), ["y = 7", "AddBackward0"]),
        (Node("AddBackward0", name="first_loss", shape=(), value="0.5"), ["first_loss", "= 0.5", "AddBackward0"]),
        (
            Node(LEAF, "w", (), grad="None", value="2"),
            ["AccumulateGrad", "w = 2", ".grad None"],
        ),
        # a long name is broken where PyTorch has a joint
        (Node("ConvolutionBackward0", name="y", shape=(2,)), ["y", "Convolution", "Backward0", "(2,)"]),
    ],
)
def test_what_stands_in_a_box(node: Node, lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (axes,) = drawn(Graph((node,), ()), monkeypatch).axes
    assert [text.get_text() for text in axes.texts] == lines


def test_too_many_nodes_are_refused_and_still_read() -> None:
    graph = Graph(tuple(Node("AddBackward0") for _ in range(41)), tuple(Edge(i, i + 1) for i in range(40)))
    with pytest.raises(ValueError, match="at most 40 nodes, got 41"):
        draw_graph(graph)
    assert len(repr(graph).splitlines()) == 42
