"""The exercises of notebook 09."""

from __future__ import annotations

from .bytes_after_step import BytesAfterStep
from .evaluate import Evaluate
from .largest_batch import LargestBatch

EXERCISES = (BytesAfterStep, Evaluate, LargestBatch)
