"""A graph of autograd as plain parts, and in words: what a picture is drawn from, and what a screen reader reads."""

from __future__ import annotations

from dataclasses import dataclass

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
        head = f"{_many(len(self.nodes) - leaves, 'operation')}, {_many(leaves, 'leaf', 'leaves')}"
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


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"
