"""Few cases that cover every pair of values: most bugs need one value, or two together."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import Any

Row = dict[str, Any]


def combinations(factors: dict[str, Sequence[Any]], threes: Collection[str] = ()) -> list[Row]:
    """Return all pairs of values of two factors, and all triples of values of three factors in ``threes``."""
    groups = [*itertools.combinations(factors, 2), *itertools.combinations(threes, 3)]
    return [
        dict(zip(group, values, strict=True))
        for group in groups
        for values in itertools.product(*(factors[name] for name in group))
    ]


def covering(factors: dict[str, Sequence[Any]], threes: Collection[str] = ()) -> list[Row]:
    """Return rows that hold all ``combinations``; the result is deterministic.

    A row begins with the last missing combination; each other factor gets the value that completes most missing ones.
    """
    missing, rows = combinations(factors, threes), []
    while missing:
        row = dict(missing[-1])
        for name in [name for name in factors if name not in row]:
            candidates = [group for group in missing if group.keys() - row.keys() == {name}]
            counts = [
                sum(group.items() <= {**row, name: value}.items() for group in candidates) for value in factors[name]
            ]
            row[name] = factors[name][counts.index(max(counts))]
        rows.append({name: row[name] for name in factors})
        missing = [group for group in missing if not group.items() <= row.items()]
    return rows
