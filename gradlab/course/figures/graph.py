"""The autograd graph of a tensor, or of a plain object that imitates one: nodes, saved tensors, and gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...formatting import number_of
from ...memory import graph_nodes

LEAF = "AccumulateGrad"
VALUE = "Value"  # the operation of a leaf in a graph of plain objects
LEAF_NAMES = (LEAF, VALUE)
_MAX_CHARS = 9  # maximum length of the text of a tensor's values; a longer text is replaced with the shape


@dataclass(frozen=True)
class Node:
    """A node of a Graph, which is either a recorded operation or a leaf."""

    operation: str
    """PyTorch's name, such as ``"MulBackward0"``; for a plain value, the slopes of its operation or ``"Value"``."""
    name: str = ""
    """The learner's name for the node's output or, for AccumulateGrad, for its leaf; "" if there is none."""
    shape: tuple[int, ...] | None = None
    """The shape of the output or leaf, and of its gradient; None if PyTorch does not report it."""
    keeps: tuple[str, ...] = ()
    """The tensors that are saved for backward, each as its name or its shape."""
    freed: bool = False
    """Whether the saved tensors have been freed."""
    grad: str = ""
    """``.grad`` of a leaf, or of a named output that retains it, as text, which may be "None"; "" for other outputs."""
    value: str = ""
    """The number in a plain value or in a named tensor without dimensions, as text; "" for other tensors."""

    @property
    def label(self) -> str:
        """The name and the value of the node as text, such as ``y = 7``; a missing part is left out."""
        return " = ".join(filter(None, (self.name, self.value)))

    @property
    def size(self) -> str:
        """The shape as text, or "" if the shape is unknown or the node has a value to show instead."""
        return "" if self.shape is None or self.value else str(self.shape)


class Edge(NamedTuple):
    """An edge of a Graph, which carries a gradient from ``source`` to ``target``, two indices into ``Graph.nodes``."""

    source: int
    target: int
    gradient: str = ""
    """The gradient as text; "" if it was not recorded."""


@dataclass(frozen=True)
class Graph:
    """An autograd graph. Its nodes are in an order in which backward can visit them, beginning with the result."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    seed: str = ""
    """The gradient that backward began with, as text; "" if it was not recorded."""

    def __repr__(self) -> str:
        leaves = sum(node.operation in LEAF_NAMES for node in self.nodes)
        head = f"{number_of(len(self.nodes) - leaves, 'operation')}, {leaves:,} {'leaf' if leaves == 1 else 'leaves'}"
        rows = [self._row(index) for index in range(len(self.nodes))]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([f"{head}; backward begins with {self.seed}" if self.seed else head, *lines])

    def _row(self, index: int) -> tuple[str, ...]:
        node = self.nodes[index]
        edges = [edge for edge in self.edges if edge.source == index]
        targets = [f"{edge.target + 1}" + f" ({edge.gradient})" * bool(edge.gradient) for edge in edges]
        holds = "freed" if node.freed else f"keeps {' and '.join(node.keeps)}" if node.keeps else ""
        grad = f".grad {node.grad}" if node.grad else ""
        after = "; ".join(part for part in (holds, grad, f"to {', '.join(targets)}" if targets else "") if part)
        return f"{index + 1:2}", node.operation, node.label, node.size, after


RecordedGradients = dict[Any, tuple[str, ...]]
"""Gradients as text, by the node that passed them on; under None, the gradient that backward began with."""


def graph_of(result: Any, gradients: Mapping[Any, tuple[str, ...]] | None = None, /, **names: Any) -> Graph:
    """Return the current graph of ``result``. Keyword arguments name tensors in it, as in ``graph_of(y, w=w)``.

    ``gradients`` is the dictionary from ``record_gradients``. The graph does not change, but checkpointed parts of it
    are computed again. ``result`` may also be a plain object: ``data`` and ``grad`` are numbers, and ``slopes`` has a
    number for each of ``inputs``. Raises TypeError for other types, and ValueError for a tensor without a graph.
    """
    if not isinstance(result, Tensor) and hasattr(result, "inputs"):
        return _graph_of_values(result, {id(value): name for name, value in names.items()})
    for name, tensor in {"result": result, **names}.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"graph_of: {name} must be a tensor, got {type(tensor).__name__}")
    nodes, gradients = nodes_of(result), gradients or {}
    indices = {node: index for index, node in enumerate(nodes)}
    edges = [
        Edge(indices[node], indices[target], gradients[node][slot] if node in gradients else "")
        for node in nodes
        for slot, (target, _) in enumerate(node.next_functions)
        if target is not None
    ]
    called = {root_of(tensor): (name, tensor) for name, tensor in names.items() if tensor.requires_grad}
    seed = gradients[None][0] if None in gradients else ""
    return Graph(tuple(_node(node, called, names) for node in nodes), tuple(edges), seed)


def _graph_of_values(result: Any, names: Mapping[int, str]) -> Graph:
    values: dict[int, Any] = {}

    def visit(value: Any) -> None:
        for each in value.inputs if id(value) not in values else ():
            visit(each)
        values.setdefault(id(value), value)

    visit(result)
    indices = {key: index for index, key in enumerate(reversed(values))}
    nodes, edges, arriving = [], [], {key: [] for key in indices} | {id(result): [result.grad]}
    for index, (key, value) in enumerate(reversed(values.items())):
        operation = f"slopes {', '.join(map(_number, value.slopes))}" if value.inputs else VALUE
        nodes.append(Node(operation, names.get(key, ""), (), grad=_number(value.grad), value=_number(value.data)))
        for number in arriving[key]:
            for target, slope in zip(value.inputs, value.slopes, strict=True):  # arriving gradients are not summed
                edges.append(Edge(index, indices[id(target)], _number(number * slope) if result.grad else ""))
                arriving[id(target)].append(number * slope)
    return Graph(tuple(nodes), tuple(edges), _number(result.grad) if result.grad else "")


def _number(value: float) -> str:
    return _text(torch.tensor(float(value)))


@contextmanager
def record_gradients(result: Tensor) -> Iterator[RecordedGradients]:
    """Yield a dictionary that records the gradients along the graph's edges while ``result.backward()`` runs."""
    gradients: RecordedGradients = {}
    nodes = nodes_of(result)

    def note(node: Any, inputs: Any, outputs: Any) -> None:
        gradients[node] = tuple(map(_text, inputs))
        if node is nodes[0]:
            gradients[None] = tuple(map(_text, outputs))

    with ExitStack() as hooks:
        for node in nodes:
            hooks.callback(node.register_hook(partial(note, node)).remove)
        yield gradients


def nodes_of(result: Tensor) -> list[Any]:
    """Return a graph's nodes, each after the nodes that pass it a gradient. Raises ValueError if there is no graph."""
    if not result.requires_grad:
        raise ValueError("graph_of: result must have a graph, got a tensor that does not require a gradient")
    return graph_nodes([root_of(result)])


def root_of(tensor: Tensor) -> Any:
    """Return the node at which ``tensor.backward()`` begins: ``grad_fn`` or, for a leaf, the AccumulateGrad node."""
    if tensor.grad_fn is not None:
        return tensor.grad_fn
    with torch.enable_grad():
        return tensor.view_as(tensor).grad_fn.next_functions[0][0]  # type: ignore[union-attr]


def _node(node: Any, called: Mapping[Any, tuple[str, Tensor]], names: Mapping[str, Tensor]) -> Node:
    name, tensor = called.get(node, ("", None))
    value = "" if tensor is None or tensor.dim() else _text(tensor).replace("()", "")
    if (leaf := getattr(node, "variable", None)) is not None:
        return Node(LEAF, name, tuple(leaf.shape), grad=_text(leaf.grad), value=value)
    keeps = _saved_tensors(node)
    metadata = getattr(node, "_input_metadata", None)  # the gradients that arrive at a node have its outputs' shapes
    shape = tuple(metadata[0].shape) if metadata else None
    grad = _text(tensor.grad) if tensor is not None and tensor.retains_grad else ""
    kept_names = tuple(_called(saved, names) for saved in keeps or ())
    return Node(node.name(), name, shape, kept_names, keeps is None, grad, value)


def _saved_tensors(node: Any) -> list[Tensor] | None:
    """Return the tensors that a node has saved for backward, or None if they have been freed."""
    saved: list[Tensor] = []
    for attribute in [name for name in dir(node) if name.startswith("_saved_") or name == "saved_tensors"]:
        try:
            value = getattr(node, attribute)
        except RuntimeError as error:
            if "second time" in str(error):  # PyTorch's message says this if the tensors were freed
                return None
            continue  # a tensor that was changed in place after it was saved cannot be read
        saved += [part for part in (value if isinstance(value, (tuple, list)) else [value]) if isinstance(part, Tensor)]
    return saved


def _called(tensor: Tensor, names: Mapping[str, Tensor]) -> str:
    """Return the name of a saved tensor, or its shape as text if no tensor in ``names`` has its memory and layout."""
    return next((name for name, other in names.items() if _is_same(tensor, other)), str(tuple(tensor.shape)))


def _is_same(tensor: Tensor, other: Tensor) -> bool:
    if tensor is other or torch.strided != tensor.layout or torch.strided != other.layout:
        return tensor is other
    places = [(each.data_ptr(), each.shape, each.stride()) for each in (tensor, other)]
    return places[0] == places[1] and not tensor.is_meta


def _text(value: Any) -> str:
    """Return a tensor's values as text, or its shape if they are too long or cannot be read, or "None" for None."""
    if not isinstance(value, Tensor):
        return "None"
    shape = str(tuple(value.shape))
    if value.numel() > _MAX_CHARS or value.is_meta or value.layout is not torch.strided:
        return shape
    numbers = [f"{number:.3g}".replace("-", "\u2212") for number in value.detach().reshape(-1).tolist()]
    text = numbers[0] if not value.dim() else f"[{', '.join(numbers)}]"
    return text if len(text) <= _MAX_CHARS else shape
