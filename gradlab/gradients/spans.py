"""Runs of consecutive batches, as pairs (first, last)."""

from __future__ import annotations

from collections.abc import Iterable

Span = tuple[int, int]
"""The numbers of the first and the last of some consecutive batches, both inclusive, counted from 1."""


def union(spans: Iterable[Span]) -> list[Span]:
    """Merge spans that overlap or touch, in ascending order."""
    merged: list[Span] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def within(number: int, spans: Iterable[Span]) -> bool:
    """Return whether a batch is among these."""
    return any(first <= number <= last for first, last in spans)
