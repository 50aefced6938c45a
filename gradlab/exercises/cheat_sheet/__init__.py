"""The exercises of notebook 13."""

from __future__ import annotations

from .calls_in_order import CallsInOrder
from .whole_loop import WholeLoop

EXERCISES = (CallsInOrder, WholeLoop)
