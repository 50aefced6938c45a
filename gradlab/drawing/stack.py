"""Bytes by category, stacked: how each category looks wherever memory is drawn, and where its edges lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .limits import Numbers, numbers
from .palette import COLOURS

_ROLES = {
    "weights": ("weights", ""),
    "gradients": ("gradients", "//"),
    "optimizer": ("optimizer", ".."),
    "activations": ("activations", "\\\\"),
    "inputs": ("grey", "--"),
    "other": ("grey", ""),
}
CATEGORY_STYLES = {name: (COLOURS[role], hatch or None) for name, (role, hatch) in _ROLES.items()}
"""Colour and hatch of each category, from the bottom of the stack to the top; unknown ones look like "other"."""
_LARGEST = 1e290


def stacked(categories: Mapping[str, Iterable[float]], count: int) -> dict[str, tuple[Numbers, Numbers]]:
    """Return the lower and the upper edge of each category at ``count`` points; what is missing counts as 0."""
    heights = np.zeros((len(_ROLES) + 1, count))
    rows = {name: at for at, name in enumerate(_ROLES, 1)}
    for name, values in categories.items():
        got = np.clip(np.nan_to_num(numbers(values), posinf=0.0, neginf=0.0)[:count], 0, _LARGEST)
        heights[rows.get(name, rows["other"]), : len(got)] += got
    edges = np.cumsum(heights, axis=0)
    return {name: (edges[at - 1], edges[at]) for name, at in rows.items()}


def area_look(name: str) -> dict[str, Any]:
    """Return how the area of a category is drawn, as fields of a Path."""
    role, hatch = _ROLES[name]
    strength = 50 if role != "grey" else 25 if hatch else 40
    return {"fill": f"{role}/{strength}", "stroke": role if role != "grey" else "grey/70", "hatch": hatch}


def text_role(name: str) -> str:
    """Return the role of the category's name: dark enough to read on paper and on its own area."""
    return f"{_ROLES[name][0]}-text"


def spread_labels(heights: Mapping[str, float], gap: float, top: float) -> dict[str, float]:
    """Move labels that would lie on each other ``gap`` apart, as little as can be, and none above ``top``."""
    order = sorted(heights, key=lambda name: heights[name])
    placed: list[float] = []
    for name in order:
        placed.append(max(heights[name], placed[-1] + gap if placed else 0.0))
    ceiling = top
    for at in range(len(placed) - 1, -1, -1):
        placed[at] = max(min(placed[at], ceiling), 0.0)
        ceiling = placed[at] - gap
    return dict(zip(order, placed, strict=True))
