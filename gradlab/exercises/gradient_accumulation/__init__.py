"""The exercises of notebook 07."""

from __future__ import annotations

from .accumulated import Accumulated
from .by_tokens import ByTokens
from .one_update import OneUpdate

EXERCISES = (ByTokens, Accumulated, OneUpdate)
