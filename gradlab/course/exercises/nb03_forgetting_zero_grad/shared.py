"""What several exercises of notebook 03 share."""

from __future__ import annotations


def swing(product: float, updates: int = 400) -> list[float]:
    """Return the path of plain SGD without clearing on a bowl, from 1; ``product`` is lr times curvature."""
    path, held = [1.0], 0.0
    for _ in range(updates):
        held += product * path[-1]
        path.append(path[-1] - held)
    return path
