"""Autograd's graph as plain parts: which nodes there are, what each holds, which gradient went where; and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...formatting import number_of

OPERATION, ACCUMULATE = "operation", "accumulate"


@dataclass(frozen=True)
class Node:
    """One node of the graph: an operation that was recorded, or the AccumulateGrad of a leaf."""

    operation: str
    """PyTorch's own name: ``"MulBackward0"``, ``"AccumulateGrad"``."""
    kind: str = OPERATION
    name: str = ""
    """What the learner calls the tensor that it made or, for AccumulateGrad, the leaf that it writes to."""
    shape: tuple[int, ...] | None = None
    """The shape of that tensor, and so of its gradient; None where PyTorch does not tell."""
    keeps: tuple[str, ...] = ()
    """The tensors that it holds for backward, by name or by shape."""
    freed: bool = False
    """Whether backward has let go of what it held."""
    grad: str = ""
    """What is in ``.grad`` of the tensor, in words; empty where nothing can be."""
    value: str = ""
    """The value of a named tensor that is a single number; empty for all others."""

    @property
    def label(self) -> str:
        """The name, with its value if it has one: ``y = 7``."""
        return f"{self.name} = {self.value}" if self.value else self.name

    @property
    def size(self) -> str:
        """The shape, unless the value says it already."""
        return "" if self.shape is None or self.value else shape_text(self.shape)


@dataclass(frozen=True)
class Edge:
    """The way of a gradient from the node ``source`` to the node ``target``, both places in ``Graph.nodes``."""

    source: int
    target: int
    gradient: str = ""
    """What went along it, in words; empty where nobody listened."""


@dataclass(frozen=True)
class Graph:
    """Nodes in an order in which backward can visit them, the result's first."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    seed: str = ""
    """The gradient that backward began with, in words."""

    def __repr__(self) -> str:
        leaves = sum(node.kind == ACCUMULATE for node in self.nodes)
        head = f"{number_of(len(self.nodes) - leaves, 'operation')}, {leaves:,} {'leaf' if leaves == 1 else 'leaves'}"
        rows = [self._row(place) for place in range(len(self.nodes))]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([f"{head}; backward begins with {self.seed}" if self.seed else head, *lines])

    def _row(self, place: int) -> tuple[str, ...]:
        node = self.nodes[place]
        ways = [
            f"{edge.target + 1}" + (f" ({edge.gradient})" if edge.gradient else "")
            for edge in self.edges
            if edge.source == place
        ]
        holds = "freed" if node.freed else f"keeps {' and '.join(node.keeps)}" if node.keeps else ""
        grad = f".grad {node.grad}" if node.grad else ""
        after = "; ".join(part for part in (holds, grad, f"to {', '.join(ways)}" if ways else "") if part)
        return f"{place + 1:2}", node.operation, node.label, node.size, after


def shape_text(shape: tuple[int, ...]) -> str:
    """Write a shape as PyTorch does: ``()`` for a single number, ``(3,)``, ``(5, 3)``."""
    return str(tuple(shape))


_ROOM = 9  # letters that the numbers of a tensor may take; longer ones are told by their shape
Seen = dict[Any, tuple[str, ...]]


def graph_of(result: Tensor, seen: Mapping[Any, tuple[str, ...]] | None = None, /, **names: Tensor) -> Graph:
    """Return the graph behind ``result``, as it is now; ``names`` says what you call which tensor.

    ``seen`` is what ``record_gradients`` noted of a backward pass. Raises TypeError for what is no tensor, ValueError
    for a tensor that has no graph. Looking changes nothing, but a checkpointed part is computed again to look inside.
    """
    for name, tensor in {"result": result, **names}.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"graph_of: {name} must be a tensor, got {type(tensor).__name__}")
    nodes = nodes_of(result)
    place = {node: number for number, node in enumerate(nodes)}
    seen = seen or {}
    edges = [
        Edge(place[node], place[target], seen[node][slot] if node in seen else "")
        for node in nodes
        for slot, (target, _) in enumerate(node.next_functions)
        if target is not None
    ]
    called = {root_of(tensor): (name, tensor) for name, tensor in names.items() if tensor.requires_grad}
    shown = tuple(_node(node, called, names) for node in nodes)
    return Graph(shown, tuple(edges), seen[None][0] if None in seen else "")


@contextmanager
def record_gradients(result: Tensor) -> Iterator[Seen]:
    """Note which gradients go along the edges of this graph while ``result.backward()`` runs inside."""
    seen: Seen = {}
    nodes = nodes_of(result)
    handles = []
    for node in nodes:

        def note(inputs: Any, outputs: Any, node: Any = node) -> None:
            seen[node] = tuple(map(_words, inputs))
            if node is nodes[0]:
                seen[None] = tuple(map(_words, outputs))

        handles.append(node.register_hook(note))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def nodes_of(result: Tensor) -> list[Any]:
    """Return autograd's own nodes behind a tensor, each after all that pass a gradient to it."""
    if not result.requires_grad:
        raise ValueError("graph_of: this tensor has no graph: nothing that requires a gradient was recorded on its way")
    found: list[Any] = []
    done: set[Any] = set()
    stack: list[tuple[Any, bool]] = [(root_of(result), False)]
    while stack:  # depth first without recursion: a loop over 1,000 steps makes a deep graph
        node, finished = stack.pop()
        if finished:
            found.append(node)
        elif node not in done:
            done.add(node)
            stack.append((node, True))
            stack += [(target, False) for target, _ in reversed(node.next_functions) if target is not None]
    return found[::-1]


def root_of(tensor: Tensor) -> Any:
    """Return the node that backward would begin with: for a leaf its AccumulateGrad."""
    if tensor.grad_fn is not None:
        return tensor.grad_fn
    with torch.enable_grad():
        return tensor.view_as(tensor).grad_fn.next_functions[0][0]  # type: ignore[union-attr]


def _node(node: Any, called: Mapping[Any, tuple[str, Tensor]], names: Mapping[str, Tensor]) -> Node:
    name, tensor = called.get(node, ("", None))
    leaf = getattr(node, "variable", None)
    if leaf is not None:
        value = _value(leaf) if name else ""
        return Node("AccumulateGrad", ACCUMULATE, name, tuple(leaf.shape), grad=_grad(leaf), value=value)
    keeps, freed = _held(node, names)
    metadata = getattr(node, "_input_metadata", None)  # of the gradients that come in, so of what the node has made
    shape = tuple(metadata[0].shape) if metadata else None
    grad = _grad(tensor) if tensor is not None and tensor.retains_grad else ""
    return Node(node.name(), OPERATION, name, shape, keeps, freed, grad, "" if tensor is None else _value(tensor))


def _value(tensor: Tensor) -> str:
    """Return the number in a tensor that is a single number, and nothing for all others."""
    text = _words(tensor)
    return "" if tensor.dim() or text == shape_text(()) else text


def _grad(tensor: Tensor) -> str:
    return "None" if tensor.grad is None else _words(tensor.grad)


def _held(node: Any, names: Mapping[str, Tensor]) -> tuple[tuple[str, ...], bool]:
    """Return what a node holds for backward, and whether it has been freed."""
    held: list[Tensor] = []
    for attribute in dir(node):
        if not attribute.startswith("_saved_") and attribute != "saved_tensors":
            continue
        try:
            value = getattr(node, attribute)
        except RuntimeError as error:
            if "second time" in str(error):  # PyTorch's own words for what is no longer there
                return (), True
            continue  # changed in place since: held, but nobody can look at it
        held += [part for part in (value if isinstance(value, (tuple, list)) else [value]) if isinstance(part, Tensor)]
    return tuple(_called(tensor, names) for tensor in held), False


def _called(tensor: Tensor, names: Mapping[str, Tensor]) -> str:
    """Return the name of a tensor that is held: the same numbers at the same place; else its shape."""
    place = _place(tensor)
    for name, other in names.items():
        if other is tensor:
            return name
        if place and place == _place(other) and other.shape == tensor.shape and other.stride() == tensor.stride():
            return name
    return shape_text(tuple(tensor.shape))


def _place(tensor: Tensor) -> int:
    """Return where a tensor's numbers begin in memory, 0 where there is no such place: sparse, meta, fake."""
    try:
        return tensor.data_ptr()
    except RuntimeError:
        return 0


def _words(value: Any) -> str:
    """Write the numbers of a small tensor, the shape of a larger one."""
    if not isinstance(value, Tensor):
        return "None"
    shape = shape_text(tuple(value.shape))
    if value.numel() > _ROOM or value.is_meta or value.layout is not torch.strided:
        return shape
    numbers = [f"{number:.3g}".replace("-", "\u2212") for number in value.detach().reshape(-1).tolist()]
    text = numbers[0] if not value.dim() else f"[{', '.join(numbers)}]"
    return text if len(text) <= _ROOM else shape
