"""Where the nodes of a graph stand: in columns, every edge leading left, few of them crossing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx

from ..autograd_parts import Graph

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
            at = _heights(columns)
            means = {node: _mean([at[other] for other in neighbours(node)], at[node]) for node in column}
            column.sort(key=lambda node: means[node])
        if (crossings := _crossings(net, columns)) < fewest:
            best, fewest = [list(column) for column in columns], crossings
    columns[:] = best


def _heights(columns: list[list[int]]) -> dict[int, float]:
    return {node: row - (len(column) - 1) / 2 for column in columns for row, node in enumerate(column)}


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _crossings(net: Any, columns: list[list[int]]) -> int:
    at: Mapping[int, float] = _heights(columns)
    count = 0
    for column in columns:
        ways = [(at[node], at[other]) for node in column for other in net.successors(node)]
        count += sum((a - c) * (b - d) < 0 for i, (a, b) in enumerate(ways) for c, d in ways[:i])
    return count
