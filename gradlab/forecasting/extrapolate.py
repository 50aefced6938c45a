"""Extrapolate a published size from 3 and 4 of its repeated blocks: they are alike, so bytes are linear in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby, pairwise

from ..memory import MOST_POINTS, MemoryPoint
from .simulate import SimulatedUpdate, from_one, simulate
from .training import Training
from .workload import Workload

_BLOCK = re.compile(r"blocks\.(\d+)(.*)")
Section = tuple[int | None, list[MemoryPoint]]  # the number of a block, None outside of any; and its points


def simulate_blocks(
    workload: Workload,
    training: Training,
    *,
    on_calls: Callable[[int, int], None] | None = None,
) -> SimulatedUpdate:
    """Return what ``simulate`` returns for the whole model; a workload of no published size is simulated as it is."""
    size = workload.size
    if size is None or size.layers <= 4:
        return simulate(workload, training, on_calls=on_calls)

    def part(layers: int, done: int) -> SimulatedUpdate:
        half = None if on_calls is None else lambda calls, expected: on_calls(calls + done * expected, 2 * expected)
        few = workload.with_layers(layers)
        return simulate(few, training, on_calls=half)

    three, four = part(3, 0), part(4, 1)
    points = extrapolate(three.timeline, four.timeline, size.layers)
    peak = max(points, key=lambda point: point.top)
    timeline, peak_at = _thinned(points, peak)
    return SimulatedUpdate(
        peak.top, peak.high, peak_at, timeline, size.parameters, four.micro_batches, four.largest_block
    )


def extrapolate(three: Sequence[MemoryPoint], four: Sequence[MemoryPoint], layers: int) -> list[MemoryPoint]:
    """Return the timeline of a model of ``layers`` blocks, given those of the same model with 3 and with 4 of them.

    The first and the last block may hold something else than those between them. So every amount is linear in the
    number of blocks and, between the first and the last, in the number of the block.
    """
    result: list[MemoryPoint] = []
    more = layers - 4
    for of_3, of_4 in zip(_statements(three), _statements(four), strict=True):
        few, many = ({block: points for block, points in of if block is not None} for of in (of_3, of_4))
        outside = iter([points for block, points in of_3 if block is None])
        for block, points in of_4:
            if block is None:
                result += _shifted(points, (more, next(outside), points))
            elif block == next(iter(many)):  # all blocks, in the order in which they come
                for i in range(layers) if block == 0 else reversed(range(layers)):
                    if i == 0:
                        moved = _shifted(many[0], (more, few[0], many[0]))
                    elif i == layers - 1:
                        moved = _shifted(many[3], (more, few[2], many[3]))
                    else:
                        moved = _shifted(many[1], (more, few[1], many[1]), (i - 1, many[1], many[2]))
                    result += [replace(p, module=_BLOCK.sub(rf"blocks.{i}\2", p.module)) for p in moved]
    return result


def _statements(points: Sequence[MemoryPoint]) -> list[list[Section]]:
    """Return the points statement by statement, each of them cut into what runs in one block or outside of any."""
    return [_sections(list(group)) for _, group in groupby(points, key=lambda point: point.number)]


def _sections(points: list[MemoryPoint]) -> list[Section]:
    blocks = [int(found[1]) if (found := _BLOCK.match(point.module)) else None for point in points]
    # A block that computes its activations again does so under other names: what lies between two of its own is its.
    for at, then in pairwise([at for at, block in enumerate(blocks) if block is not None]):
        if blocks[at] == blocks[then]:
            blocks[at:then] = [blocks[at]] * (then - at)
    cut = groupby(zip(blocks, points, strict=True), key=lambda each: each[0])
    return [(block, [point for _, point in group]) for block, group in cut]


def _shifted(points: list[MemoryPoint], *steps: tuple[int, list[MemoryPoint], list[MemoryPoint]]) -> list[MemoryPoint]:
    """Return points with ``times`` the difference of two others added to them, for each (times, before, after)."""

    def amounts(at: int, which: str) -> dict[str, int]:
        own: dict[str, int] = getattr(points[at], which).copy()
        for times, before, after in steps:
            low, high = getattr(before[at], which), getattr(after[at], which)
            for name in own:
                own[name] += times * (high[name] - low[name])
        return own

    return [replace(p, bytes=amounts(at, "bytes"), high=amounts(at, "high")) for at, p in enumerate(points)]


def _thinned(points: list[MemoryPoint], peak: MemoryPoint) -> tuple[list[MemoryPoint], MemoryPoint]:
    """Merge neighbours as a Ledger does when there are too many; return the points, and the one with the peak."""
    past: list[MemoryPoint] = []
    for point in points:
        past.append(point)
        if len(past) == MOST_POINTS:
            pairs = list(zip(past[::2], past[1::2], strict=True))
            past = [replace(a if a.top > b.top else b, bytes=b.bytes) for a, b in pairs]
            peak = next((new for pair, new in zip(pairs, past, strict=True) if any(p is peak for p in pair)), peak)
    *timeline, peak_at = from_one([*past, peak])
    return timeline, peak_at
