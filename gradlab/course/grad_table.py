"""A table of what decides whether a tensor keeps its gradient."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from .figures.graph import nodes_of, root_of

_HEAD = ("", "is_leaf", "requires_grad", "retains_grad", "in the graph", ".grad")


@dataclass(frozen=True)
class GradTable:
    """A row for each tensor; a notebook shows it as text."""

    rows: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        lines = [_HEAD, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )


def grad_table(result: Tensor, /, **tensors: Tensor) -> GradTable:
    """Return four properties of each tensor, and whether it has a ``.grad`` now.

    "in the graph" is True if a path leads from ``result`` to the tensor, so that ``result.backward()`` computes its
    gradient. Raises ValueError if ``result`` has no graph.
    """
    reached = set(nodes_of(result))
    return GradTable(tuple(_row(name, tensor, reached) for name, tensor in tensors.items()))


def _row(name: str, tensor: Tensor, reached: set[object]) -> tuple[str, ...]:
    keeps = tensor.is_leaf or tensor.retains_grad  # PyTorch warns if .grad of another tensor is read
    in_graph = tensor.requires_grad and root_of(tensor) in reached
    grad = "kept" if keeps and tensor.grad is not None else "None"
    return name, str(tensor.is_leaf), str(tensor.requires_grad), str(tensor.retains_grad), str(in_graph), grad
