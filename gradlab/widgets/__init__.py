"""Widgets for notebooks: the Lab, the ForecastLab, instruments, ``compare``, and the questions of ``predict``."""

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from .comparison import compare as compare
    from .controls import Control as Control
    from .forecast_lab import ForecastLab as ForecastLab
    from .instrument import Instrument as Instrument
    from .instrument import Settings as Settings
    from .instrument import View as View
    from .lab import Lab as Lab
    from .predict import predict as predict
    from .question import find_question as find_question
    from .question import question_names as question_names

load_lazily(__name__)
