"""Right answers to the exercise ``all_reduces``."""

import math


def by_steps(batches, accumulate, buckets, no_sync):
    steps = math.ceil(batches / accumulate)
    return buckets * (steps if no_sync else batches)


def by_windows(batches, accumulate, buckets, no_sync):
    if not no_sync:
        return buckets * batches
    return buckets * len(range(0, batches, accumulate))


RIGHT = (by_steps, by_windows)
