"""The exercises of notebook 08."""

from __future__ import annotations

from .amp_order import AmpOrder
from .scales_after import ScalesAfter
from .smallest_scale import SmallestScale

EXERCISES = (AmpOrder, SmallestScale, ScalesAfter)
