"""Answers to the exercise ``all_reduces``: right ones, and one for each typical mistake."""

import math


def by_steps(batches, accumulate, buckets, no_sync):
    steps = math.ceil(batches / accumulate)
    return buckets * (steps if no_sync else batches)


def by_windows(batches, accumulate, buckets, no_sync):
    if not no_sync:
        return buckets * batches
    return buckets * len(range(0, batches, accumulate))


def rounded_down(batches, accumulate, buckets, no_sync):
    return buckets * (batches // accumulate) if no_sync else buckets * batches


def saved(batches, accumulate, buckets, no_sync):
    if no_sync:
        return buckets * (batches - math.ceil(batches / accumulate))
    return buckets * batches


RIGHT = (by_steps, by_windows)
WRONG = {
    "no-window": lambda batches, accumulate, buckets, no_sync: buckets * batches,
    "steps-only": lambda batches, accumulate, buckets, no_sync: buckets * math.ceil(batches / accumulate),
    "left-over": rounded_down,
    "one-bucket": lambda batches, accumulate, buckets, no_sync: by_steps(batches, accumulate, 1, no_sync),
    "the-silent-ones": saved,
}
