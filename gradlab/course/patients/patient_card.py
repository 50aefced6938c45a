"""A patient as a picture to look at, without controls."""

from __future__ import annotations

import base64
from functools import cached_property
from typing import Any

from .patient import Patient


class PatientCard:
    """The still picture of a patient: the doctor's card beside the sick curve and the cured one."""

    def __init__(self, name: str) -> None:
        """Take the name of a patient; its loops run when the picture is first shown."""
        self._patient: Patient | None = Patient(name)
        self._title = self._patient.title

    def __repr__(self) -> str:
        # JupyterLab shows the first line of a folded picture's text, which must not give the outcome away.
        return f"{self._title}\n{self._seen[1]}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        png, words = self._seen
        data = {"image/png": base64.b64encode(png).decode(), "text/plain": repr(self)}
        width = int.from_bytes(png[16:20], "big") // 2  # CSS pixels
        return data, {"image/png": {"width": width, "alt": words}}

    @cached_property
    def _seen(self) -> tuple[bytes, str]:
        """The picture and its words; the runs behind them are not kept, because a notebook keeps each card."""
        patient, self._patient = self._patient, None
        assert patient is not None
        return patient.png(), patient.words


def patient_card(name: str) -> PatientCard:
    """Return the picture of one of the patients in ``patient_names()``; ValueError for another name."""
    return PatientCard(name)
