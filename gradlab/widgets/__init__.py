"""What a notebook shows: the Lab, the ForecastLab, ``compare``, and the questions of ``predict`` with their record."""

from __future__ import annotations

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
    from .learner_record import CHECK as CHECK
    from .learner_record import GUESS as GUESS
    from .learner_record import RECORD as RECORD
    from .learner_record import RecordEvent as RecordEvent
    from .learner_record import RecordText as RecordText
    from .learner_record import delete_record as delete_record
    from .learner_record import first_guesses as first_guesses
    from .learner_record import read_record_text as read_record_text
    from .learner_record import record_path as record_path
    from .predict import predict as predict
    from .question import find_question as find_question
    from .question import question_names as question_names

load_lazily(__name__)
