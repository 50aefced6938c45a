"""Autograd's graph as plain parts: against autograd's own nodes, and against gradients computed by hand."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from gradlab.course.figures.graph import LEAF, Edge, Graph, Node, graph_of, nodes_of, record_gradients
from gradlab.course.figures.graph_picture import draw_graph


def line() -> tuple[dict[str, Tensor], Tensor]:
    w, b, x = torch.tensor(2.0, requires_grad=True), torch.tensor(1.0, requires_grad=True), torch.tensor(3.0)
    error = w * x + b - 10.0
    return {"w": w, "b": b, "x": x, "error": error}, error**2


def node(graph: Graph, operation: str, name: str = "") -> Node:
    (match,) = [node for node in graph.nodes if node.operation == operation and node.name == name]
    return match


def test_a_node_stands_after_those_that_pass_a_gradient_to_it() -> None:
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 3), nn.Tanh())
    h = net(torch.randn(2, 4))
    graph = graph_of((h + net[2](h)).square().mean())
    assert all(edge.source < edge.target for edge in graph.edges)
    assert {edge.target for edge in graph.edges} == set(range(1, len(graph.nodes)))
    assert sum(node.operation == LEAF for node in graph.nodes) == 4


def test_names_shapes_and_what_is_kept() -> None:
    names, loss = line()
    graph = graph_of(loss, loss=loss, **names)
    assert graph.nodes[0] == Node("PowBackward0", name="loss", shape=(), keeps=("error",), value="9")
    assert node(graph, "MulBackward0").keeps == ("x",)
    assert node(graph, "AccumulateGrad", "w") == Node(LEAF, "w", (), grad="None", value="2")
    assert [node.value for node in graph.nodes if not node.name] == ["", ""], "a number without a name has no label"
    assert not any(node.freed for node in graph.nodes)
    loss.backward()
    after = graph_of(loss, loss=loss, **names)
    assert [node.freed for node in after.nodes] == [bool(node.keeps) for node in graph.nodes]
    assert node(after, "AccumulateGrad", "w").grad == "\u221218"
    assert after.edges == graph.edges


def test_what_flows_is_what_autograd_says() -> None:
    names, loss = line()
    with record_gradients(loss) as gradients:
        loss.backward()
    graph = graph_of(loss, gradients, **names)
    (to_w,) = [edge for edge in graph.edges if graph.nodes[edge.target].name == "w"]
    (to_b,) = [edge for edge in graph.edges if graph.nodes[edge.target].name == "b"]
    assert (to_w.gradient, to_b.gradient, graph.seed) == ("\u221218", "\u22126", "1")
    assert graph_of(loss, **names).seed == ""
    w = torch.ones(2, requires_grad=True)
    with record_gradients(y := w * 2) as gradients:
        y.backward(gradient=torch.tensor([1.0, 0.5]))
    assert graph_of(y, gradients).seed == "[1, 0.5]", "several numbers"


def test_each_use_has_an_edge_and_their_sum_is_the_gradient() -> None:
    a = torch.tensor(3.0, requires_grad=True)
    result = a * a + a
    with record_gradients(result) as gradients:
        result.backward()
    graph = graph_of(result, gradients, a=a, result=result)  # any name that a learner gives
    brought = [float(edge.gradient) for edge in graph.edges if graph.nodes[edge.target].name == "a"]
    assert sorted(brought) == [1, 3, 3]
    assert graph.nodes[0].name == "result"


def test_looking_changes_nothing() -> None:
    (names, loss), (twins, twin) = line(), line()
    hooks = [len(node._raw_hooks or {}) if hasattr(node, "_raw_hooks") else 0 for node in nodes_of(loss)]
    with record_gradients(loss):
        graph_of(loss, **names)
        loss.backward()
    twin.backward()
    assert torch.equal(names["w"].grad, twins["w"].grad)  # type: ignore[arg-type]
    assert hooks == [len(node._raw_hooks or {}) if hasattr(node, "_raw_hooks") else 0 for node in nodes_of(loss)]
    names, loss = line()
    with pytest.raises(KeyError), record_gradients(loss) as gradients:
        raise KeyError
    loss.backward()
    assert gradients == {}


def test_no_warning_for_a_gradient_that_nobody_kept() -> None:
    w = torch.ones(2, requires_grad=True)
    h = w * 2
    k = h * h
    k.retain_grad()
    k.sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = graph_of(k.sum(), w=w, h=h, k=k)
    assert [node.grad for node in graph.nodes if node.name in ("k", "h", "w")] == ["[1, 1]", "", "[8, 8]"]


def test_a_leaf_alone_is_its_own_graph() -> None:
    w = torch.ones(2, 3, requires_grad=True)
    with torch.no_grad():
        assert graph_of(w, w=w) == Graph((Node(LEAF, "w", (2, 3), grad="None"),), ())


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return 2 * x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return 2 * grads[0]


def test_functions_of_a_learners_own() -> None:
    w = torch.ones(2, requires_grad=True)
    assert node(graph_of(Double.apply(w), w=w), "DoubleBackward").keeps == ("w",)


def test_lists_of_tensors_and_what_was_changed_in_place() -> None:
    w, h = torch.ones(2, requires_grad=True), torch.ones(2)
    index = torch.tensor([0, 1])
    picked = (w * h)[index]
    assert node(graph_of(picked, i=index), "IndexBackward0").keeps == ("i",)
    h.add_(1)
    assert not node(graph_of(picked), "MulBackward0").freed


def test_a_checkpoint_can_be_looked_into() -> None:
    layer, x = nn.Linear(3, 3), torch.randn(2, 3)
    loss = checkpoint(lambda x: torch.tanh(layer(x)), x, use_reentrant=False).sum()
    assert len(graph_of(loss).nodes) >= 4
    loss.backward()


def test_a_deep_graph_needs_no_deep_stack() -> None:
    total = torch.ones((), requires_grad=True)
    for _ in range(3000):
        total = total + 1
    assert len(graph_of(total).nodes) == 3001


@pytest.mark.parametrize(("result", "error"), [(3, TypeError), (torch.ones(2), ValueError)])
def test_what_has_no_graph_is_refused(result: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="graph_of: "):
        graph_of(result)
    with pytest.raises(TypeError, match="w must be a tensor, got int"):
        graph_of(torch.ones(2, requires_grad=True), w=3)  # type: ignore[arg-type]


def test_the_words() -> None:
    nodes = Node("AddBackward0", name="y", shape=()), Node(LEAF, "w", (2,), grad="None")
    assert repr(Graph(nodes, (Edge(0, 1, "3"),), "1")).splitlines() == [
        "1 operation, 1 leaf; backward begins with 1",
        " 1  AddBackward0    y  ()    to 2 (3)",
        " 2  AccumulateGrad  w  (2,)  .grad None",
    ]


def test_tensors_without_an_address_are_told_by_their_shape() -> None:
    rows = torch.eye(2).to_sparse()
    table = torch.nn.Embedding(3, 2, sparse=True)
    loss = (rows @ table(torch.tensor([0, 1]))).sum()
    with record_gradients(loss) as gradients:
        loss.backward()
    again = (rows @ table(torch.tensor([0, 1]))).sum()
    leaf = graph_of(again, gradients, rows=rows, weight=table.weight).nodes[-1]
    assert (leaf.name, leaf.grad) == ("weight", "(3, 2)")


class Plain:
    """A number with a gradient, as the learner of notebook 01 writes it."""

    def __init__(self, data: float, inputs: tuple[Plain, ...] = (), slopes: tuple[float, ...] = ()) -> None:
        self.data, self.inputs, self.slopes, self.grad = data, inputs, slopes, 0.0

    def backward(self, arriving: float = 1.0) -> None:
        self.grad += arriving
        for value, slope in zip(self.inputs, self.slopes, strict=True):
            value.backward(arriving * slope)


def test_the_graph_of_plain_values() -> None:
    w, x = Plain(2.0), Plain(3.0)
    product = Plain(6.0, (w, x), (3.0, 2.0))
    square = Plain(36.0, (product, product), (6.0, 6.0))
    before = graph_of(square, w=w, square=square)
    assert (before.seed, {edge.gradient for edge in before.edges}) == ("", {""})
    square.backward()
    graph = graph_of(square, w=w, square=square)
    assert graph.seed == "1"
    assert graph.nodes[0] == Node("slopes 6, 6", "square", (), grad="1", value="36")
    assert graph.nodes[1] == Node("slopes 3, 2", "", (), grad="12", value="6")
    assert {(node.operation, node.label, node.grad) for node in graph.nodes[2:]} == {
        ("Value", "w = 2", "36"),
        ("Value", "3", "24"),
    }
    edges = [(0, "6"), (0, "6"), (1, "18"), (1, "12"), (1, "18"), (1, "12")]  # each 6 goes on by itself
    assert [(edge.source, edge.gradient) for edge in graph.edges] == edges
    assert repr(graph).startswith("2 operations, 2 leaves; backward begins with 1\n")
    assert draw_graph(graph).png
