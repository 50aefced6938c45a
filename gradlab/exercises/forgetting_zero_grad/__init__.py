"""The exercises of notebook 03."""

from __future__ import annotations

from .curvature_from import CurvatureFrom
from .mended import Mended
from .period_of import PeriodOf

EXERCISES = (Mended, CurvatureFrom, PeriodOf)
