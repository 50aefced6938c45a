"""A patient as a picture to look at, without controls."""

from __future__ import annotations

import base64
from typing import Any

from .patient import Patient


class PatientCard:
    """The still picture of a patient: the doctor's card beside the sick curve and the cured one."""

    def __init__(self, patient: Patient) -> None:
        """Keep the patient; its loops run when the picture is first shown."""
        self._patient = patient

    def __repr__(self) -> str:
        # JupyterLab shows the first line of a folded picture's text, which must not give the outcome away.
        return f"{self._patient.title}\n{self._patient.words}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        png = self._patient.png()
        data = {"image/png": base64.b64encode(png).decode(), "text/plain": repr(self)}
        width = int.from_bytes(png[16:20], "big") // 2  # CSS pixels
        return data, {"image/png": {"width": width, "alt": self._patient.words}}


def patient_card(name: str) -> PatientCard:
    """Return the picture of one of the patients in ``patient_names()``; ValueError for another name."""
    return PatientCard(Patient(name))
