"""A forecast as a scene: its timeline in the shape that the memory panel draws."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ..memory import CATEGORIES, MemoryPoint
from .kinds import Memory


def forecast_scene(points: Sequence[MemoryPoint], card: tuple[str, int] | None = None) -> Memory:
    """Return the scene of one update, the second, which is the one that a forecast is about."""
    statements, starts, at = [], [], 0
    for _, group in groupby(points, key=lambda point: (point.number, point.statement)):
        interval = list(group)
        statements.append(interval[0].statement)
        starts.append(2 * at)
        at += len(interval)
    return Memory(
        statements,
        starts,
        {name: [size for p in points for size in (p.high[name], p.bytes[name])] for name in CATEGORIES},
        [(0, 2)],
        [module for point in points for module in (point.module, point.module)],
        card,
        note="forecast",
    )
