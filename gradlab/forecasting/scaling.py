"""Extrapolation of a simulated update: from 3 and 4 blocks to the full model, and from one card to a group of cards.

The blocks of a published model have the same architecture, so the number of bytes is linear in the number of blocks.

The formulas give the bytes on each card: W, G and O are the sizes of the weights, gradients and optimizer state at a
given moment, N is the number of cards, and B is the size of the largest block's weights. Other bytes are not divided.

- "ddp" (DistributedDataParallel): W + G + O + max G, where max G is the highest G of the update: from the first
  backward pass on, the reducer's buckets hold a second copy of all gradients and are never freed (documentation of
  DistributedDataParallel, ``gradient_as_bucket_view``).
- "zero1", "zero2", "zero3": W + G + O/N, W + G/N + O/N, (W + G + O)/N: Rajbhandari et al., "ZeRO: Memory Optimizations
  Toward Training Trillion Parameter Models", arXiv 1910.02054, section 5 and figure 1. The paper leaves out the weights
  gathered for the block that is running: "zero3" adds 2B, for its weights and those prefetched for the next block.
- "fsdp" (``torch.distributed.fsdp.fully_shard`` on each block): as "zero3", plus B for the gradients of the running
  block before their reduce-scatter. Zhao et al., "PyTorch FSDP", arXiv 2304.11277, section 3.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise

from .._checks import one_of, whole_number
from ..memory import MOST_POINTS, MemoryPoint
from .simulate import SimulatedUpdate, number_from_one, simulate
from .training import Training
from .workload import Workload

SHARDINGS = ("ddp", "zero1", "zero2", "zero3", "fsdp")
_DIVIDED = {
    "zero1": ("optimizer",),
    "zero2": ("optimizer", "gradients"),
    "zero3": ("optimizer", "gradients", "weights"),
    "fsdp": ("optimizer", "gradients", "weights"),
}
_GATHERED_BLOCKS = {"zero3": 2, "fsdp": 3}
_MOST_CARDS = 2**17
_BLOCK = re.compile(r"blocks\.(\d+)(.*)")
Section = tuple[int | None, list[MemoryPoint]]  # index of a block, or None outside all blocks, and the section's points


def check_sharding(shard: object, cards: object) -> None:
    """Raise ValueError or TypeError for an unknown ``shard``, invalid ``cards``, or several cards without ``shard``."""
    if shard is not None:
        one_of("forecast: shard", shard, SHARDINGS, kind=ValueError)
    whole_number("forecast: cards", cards, 1, _MOST_CARDS)
    if shard is None and cards != 1:
        raise ValueError(f"forecast: cards={cards} needs shard, one of {', '.join(map(repr, SHARDINGS))}")


def share_of_one_card(whole: SimulatedUpdate, shard: str | None, cards: int) -> SimulatedUpdate:
    """Return ``whole`` with only the bytes that one of ``cards`` cards holds, or unchanged if ``shard`` is None."""
    if shard is None:
        return whole
    buckets = max(point.high["gradients"] for point in whole.timeline)  # bytes of DDP's buckets, never freed

    def divide(amounts: dict[str, int]) -> dict[str, int]:
        divided = _DIVIDED.get(shard, ())
        share = {name: -(-size // cards) if name in divided else size for name, size in amounts.items()}
        more = buckets if shard == "ddp" else _GATHERED_BLOCKS.get(shard, 0) * whole.largest_block
        return {**share, "other": share["other"] + more}

    def divide_point(point: MemoryPoint) -> MemoryPoint:
        return replace(point, bytes=divide(point.bytes), high=divide(point.high))

    # After the division, the peak may be at another moment than before.
    timeline = [divide_point(point) for point in whole.timeline]
    peak_at = max([*timeline, divide_point(whole.peak_at)], key=lambda point: point.top)
    return replace(whole, timeline=timeline, peak_at=peak_at)


def simulate_blocks(workload: Workload, training: Training) -> SimulatedUpdate:
    """Return a simulated update; a published size of over 4 blocks is extrapolated from models of 3 and 4 blocks."""
    size = workload.size
    if size is None or size.layers <= 4:
        return simulate(workload, training)
    three, four = (simulate(workload.with_layers(layers), training) for layers in (3, 4))
    points = extrapolate(three.timeline, four.timeline, size.layers)
    timeline, peak_at = _thinned(points, max(points, key=lambda point: point.top))
    parameters = four.parameters + (size.layers - 4) * (four.parameters - three.parameters)
    return replace(four, peak_at=peak_at, timeline=timeline, parameters=parameters)


def extrapolate(three: Sequence[MemoryPoint], four: Sequence[MemoryPoint], layers: int) -> list[MemoryPoint]:
    """Return the timeline of a model with ``layers`` blocks, given its timelines with 3 and with 4 blocks.

    The first and the last block may hold other amounts than the blocks between them. So each amount is extrapolated
    linearly in the number of blocks and, between the first and the last block, in the block's index.
    """
    result: list[MemoryPoint] = []
    more = layers - 4
    for of_3, of_4 in zip(_statements(three), _statements(four), strict=True):
        few, many = ({block: points for block, points in of if block is not None} for of in (of_3, of_4))
        outside = iter([points for block, points in of_3 if block is None])
        for block, points in of_4:
            if block is None:
                result += _shifted(points, (more, next(outside), points))
            elif block == next(iter(many)):  # once for all blocks, in forward or backward order
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
    """Return each statement's points, cut into sections that run in one block or outside all blocks."""
    return [_sections(list(group)) for _, group in groupby(points, key=lambda point: point.number)]


def _sections(points: list[MemoryPoint]) -> list[Section]:
    blocks = [int(match[1]) if (match := _BLOCK.match(point.module)) else None for point in points]
    # Checkpointing recomputes a block under other module names, so points between two points of a block belong to it.
    for start, end in pairwise([i for i, block in enumerate(blocks) if block is not None]):
        if blocks[start] == blocks[end]:
            blocks[start:end] = [blocks[start]] * (end - start)
    cut = groupby(zip(blocks, points, strict=True), key=lambda pair: pair[0])
    return [(block, [point for _, point in group]) for block, group in cut]


def _shifted(points: list[MemoryPoint], *steps: tuple[int, list[MemoryPoint], list[MemoryPoint]]) -> list[MemoryPoint]:
    """Return ``points`` plus ``times * (after - before)``, for each (times, before, after) in ``steps``."""

    def amounts(i: int, which: str) -> dict[str, int]:
        total: dict[str, int] = getattr(points[i], which).copy()
        for times, before, after in steps:
            low, high = getattr(before[i], which), getattr(after[i], which)
            for name in total:
                total[name] += times * (high[name] - low[name])
        return total

    return [replace(p, bytes=amounts(i, "bytes"), high=amounts(i, "high")) for i, p in enumerate(points)]


def _thinned(points: list[MemoryPoint], peak: MemoryPoint) -> tuple[list[MemoryPoint], MemoryPoint]:
    """Return the points and the peak. If there are too many points, neighbouring points are merged, as in a Ledger."""
    merged: list[MemoryPoint] = []
    for point in points:
        merged.append(point)
        if len(merged) == MOST_POINTS:
            pairs = list(zip(merged[::2], merged[1::2], strict=True))
            merged = [replace(a if a.top > b.top else b, bytes=b.bytes) for a, b in pairs]
            peak = next((new for pair, new in zip(pairs, merged, strict=True) if any(p is peak for p in pair)), peak)
    *timeline, peak_at = number_from_one([*merged, peak])
    return timeline, peak_at
