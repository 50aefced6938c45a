"""Sharding: what of a simulated update one of N cards holds, by arithmetic on the categories of its timeline.

W, G, O are the bytes of weights, gradients and optimizer state at a moment, N the number of cards, B the weights of the
largest repeated block. Activations, inputs and other bytes are each card's own.

- "ddp" (DistributedDataParallel): W + 2G + O. The reducer's buckets hold a second copy of the gradients from the first
  backward on, as long as the model is; ``gradient_as_bucket_view=True`` saves it ("the saved memory size will be equal
  to the total gradients size": documentation of DistributedDataParallel). Formula "ddp-view": W + G + O.
- "zero1", "zero2", "zero3": W + G + O/N, W + G/N + O/N, (W + G + O)/N: Rajbhandari et al., "ZeRO: Memory Optimizations
  Toward Training Trillion Parameter Models", arXiv 1910.02054, section 5 and figure 1. The paper leaves out what is
  gathered for the block at work: with "zero3" 2B are added, this block's weights and those fetched for the next one.
- "fsdp" (``torch.distributed.fsdp.fully_shard``, each block wrapped): as "zero3", and B more for the gradients of the
  block at work before they are reduced and scattered. Zhao et al., "PyTorch FSDP", arXiv 2304.11277, section 3.
"""

from __future__ import annotations

from dataclasses import replace

from .._checks import one_of, whole_number
from ..memory import MemoryPoint
from .simulate import SimulatedUpdate

SHARDINGS = ("ddp", "ddp-view", "zero1", "zero2", "zero3", "fsdp")
_DIVIDED = {
    "zero1": ("optimizer",),
    "zero2": ("optimizer", "gradients"),
    "zero3": ("optimizer", "gradients", "weights"),
    "fsdp": ("optimizer", "gradients", "weights"),
}
_GATHERED = {"zero3": 2, "fsdp": 3}
MOST_CARDS = 2**17


def check_sharding(shard: object, cards: object) -> None:
    """Raise ValueError or TypeError for a way of sharding that is not known or a number of cards that is none."""
    if shard is not None:
        one_of("forecast: shard", shard, SHARDINGS, kind=ValueError)
    whole_number("forecast: cards", cards, 1, MOST_CARDS)
    if shard is None and cards != 1:
        raise ValueError(f"forecast: cards={cards} needs shard, one of {', '.join(map(repr, SHARDINGS))}")


def one_card_of(found: SimulatedUpdate, shard: str | None, cards: int) -> SimulatedUpdate:
    """Return what one of several cards holds."""
    if shard is None:
        return found
    buckets = max(point.high["gradients"] for point in found.timeline)  # of all gradients, as they come and stay

    def share(amounts: dict[str, int]) -> dict[str, int]:
        own = {name: -(-size // cards) if name in _DIVIDED.get(shard, ()) else size for name, size in amounts.items()}
        more = buckets if shard == "ddp" else _GATHERED.get(shard, 0) * found.largest_block
        return {**own, "other": own["other"] + more}

    def point(before: MemoryPoint) -> MemoryPoint:
        return replace(before, bytes=share(before.bytes), high=share(before.high))

    # Divided amounts may have their highest moment elsewhere than whole ones.
    timeline = [point(each) for each in found.timeline]
    peak_at = max([*timeline, point(found.peak_at)], key=lambda each: each.top)
    return replace(found, timeline=timeline, peak_at=peak_at, at_peak=peak_at.high, peak=peak_at.top)
