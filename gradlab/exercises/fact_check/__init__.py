"""Exercises of notebook 12: from facts to a verdict, where a claim flips, and an experiment that decides one."""

from __future__ import annotations

from .flips_at import FlipsAt
from .same_effect import SameEffect
from .verdict_of import VerdictOf

EXERCISES = (VerdictOf, FlipsAt, SameEffect)
