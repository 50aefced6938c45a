"""Few cases that hold every pair of values: what fails mostly fails with one value, or with two that stand together."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import Any

Row = dict[str, Any]


def combinations(factors: dict[str, Sequence[Any]], threes: Collection[str] = ()) -> list[Row]:
    """All that must stand together: each two values of two factors, and each three of three factors of ``threes``."""
    groups = [*itertools.combinations(factors, 2), *itertools.combinations(threes, 3)]
    return [
        dict(zip(group, values, strict=True))
        for group in groups
        for values in itertools.product(*(factors[name] for name in group))
    ]


def covering(factors: dict[str, Sequence[Any]], threes: Collection[str] = ()) -> list[Row]:
    """Return rows that hold all ``combinations``, the same ones every time.

    A row begins with the last combination that no row holds yet; each other factor gets the value that completes most
    of what is missing.
    """
    missing, rows = combinations(factors, threes), []
    while missing:
        row = dict(missing[-1])
        for name in [name for name in factors if name not in row]:
            near = [group for group in missing if group.keys() - row.keys() == {name}]
            counts = [sum(group.items() <= {**row, name: value}.items() for group in near) for value in factors[name]]
            row[name] = factors[name][counts.index(max(counts))]
        rows.append({name: row[name] for name in factors})
        missing = [group for group in missing if not group.items() <= row.items()]
    return rows
