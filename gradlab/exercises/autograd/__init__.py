"""The exercises of notebook 01."""

from __future__ import annotations

from .count_paths import CountPaths
from .keeps_grad import KeepsGrad
from .pull_back import PullBack

EXERCISES = (KeepsGrad, PullBack, CountPaths)
