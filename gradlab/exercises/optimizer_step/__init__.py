"""The exercises of notebook 06."""

from __future__ import annotations

from .adamw_path import AdamWPath
from .decay_groups import DecayGroups
from .momentum_path import MomentumPath

EXERCISES = (DecayGroups, MomentumPath, AdamWPath)
