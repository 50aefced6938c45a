"""The exercises of notebook 11."""

from __future__ import annotations

from .all_reduces import AllReduces
from .fair_average import FairAverage
from .rank_samples import RankSamples

EXERCISES = (RankSamples, AllReduces, FairAverage)
