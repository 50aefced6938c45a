"""The exercises of notebook 10."""

from __future__ import annotations

from .leak import Leak
from .mended_head import ThreeMistakes
from .stale_steps import StaleSteps

EXERCISES = (StaleSteps, ThreeMistakes, Leak)
