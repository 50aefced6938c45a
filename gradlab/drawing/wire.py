"""Drawings on the wire: JSON, and from frame to frame only what has changed.

A number is sent with five significant digits, a whole one exactly, so a curve that grows by a point sends that point
alone. ``front/wire.js`` reads it.

A panel on the wire is ``{"title": ..., "axes": [...], field: value, ..., "ids": [id, ...], "marks": [mark, ...]}``, a
mark ``{"k": kind, "p": [numbers], field: value, ...}``, both with the fields that are not at their defaults. A change
of a panel holds the fields that are new, null for one that is back at its default, and in place of ``marks`` the
changed ones as ``"set": [[index, fields], ...]``. There ``"p"`` is ``[kept, number, ...]``: of the numbers before,
``kept`` stay, and the others follow. Where marks came or went, ``ids`` is there: a mark keeps its fields by its id,
and a new one is whole in ``set``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .marks import AXES_EDGE, Drawing, Mark, non_default_fields

SIGNIFICANT_DIGITS = 5
"""The number of significant digits of a coordinate."""
_KINDS = {"Line": "l", "Area": "a", "Band": "b", "Dots": "d", "Arrow": "v", "Text": "t", "Image": "i"}

Panel = dict[str, Any]
_Encoded = tuple[dict[str, Any], "npt.NDArray[np.float64] | None"]


class Encoder:
    """Writes the Drawings of one panel one after the other; ``encode`` says it all, ``change`` only what is new."""

    def __init__(self) -> None:
        """Start with nothing sent."""
        self._drawing: Drawing | None = None
        self._head: dict[str, Any] = {}
        self._marks: list[_Encoded] = []

    def encode(self, drawing: Drawing) -> Panel:
        """Return the whole Drawing; the next change is counted from it."""
        self._drawing, self._head = drawing, _encode_head(drawing)
        self._marks = [_encode_mark(mark) for mark in drawing.marks]
        marks = [fields if numbers is None else {**fields, "p": _to_json(numbers)} for fields, numbers in self._marks]
        return {**self._head, "ids": [mark.id for mark in drawing.marks], "marks": marks}

    def change(self, drawing: Drawing) -> Panel:
        """Return what has changed since the Drawing before."""
        before = self._drawing
        if drawing is before:
            return {}
        if before is None:
            return self.encode(drawing)
        known = {old.id: (old, encoded) for old, encoded in zip(before.marks, self._marks, strict=True)}
        new: list[_Encoded] = []
        changes: list[list[Any]] = []
        for index, mark in enumerate(drawing.marks):
            old, encoded = known.get(mark.id, (None, None))
            if encoded is not None and mark is old:
                new.append(encoded)
                continue
            new.append(_encode_mark(mark))
            if difference := _difference(encoded, new[-1]):
                changes.append([index, difference])
        head = _encode_head(drawing)
        out = _changed_fields(self._head, head)
        ids = [mark.id for mark in drawing.marks]
        if ids != [*known]:
            out["ids"] = ids
        self._drawing, self._head, self._marks = drawing, head, new
        return {**out, "set": changes} if changes else out


def _encode_head(drawing: Drawing) -> dict[str, Any]:
    return {name: _plain(value) for name, value in non_default_fields(drawing) if name != "marks"}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: a dataclass as its fields that are not at their defaults."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "__dataclass_fields__"):
        return _plain_fields(value)
    return value


@lru_cache(maxsize=1024)
def _plain_fields(value: Any) -> dict[str, Any]:
    return {name: _plain(each) for name, each in non_default_fields(value)}


def _encode_mark(mark: Mark) -> _Encoded:
    """Return the fields of a mark as they are sent, and its points, rounded."""
    fields: dict[str, Any] = {"k": _KINDS[type(mark).__name__]}
    numbers = None
    for name, value in non_default_fields(mark):
        if name == "points":
            numbers = _rounded(np.clip(np.asarray(value, dtype=np.float64).ravel(), -AXES_EDGE, AXES_EDGE))
        elif name == "cells":
            fields["cells"] = (np.asarray(value).ravel() + 48).astype(np.uint8).tobytes().decode("latin-1")
        else:
            fields[name] = _plain(value)
    return fields, numbers


def _rounded(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Round to so many significant digits; whole numbers stay."""
    size = np.abs(numbers)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        power = np.floor(np.log10(size)) - (SIGNIFICANT_DIGITS - 1)
        ten = 10.0 ** np.abs(power)
        rounded = np.where(power < 0, np.rint(numbers * ten) / ten, np.rint(numbers / ten) * ten)
    return np.where((numbers == np.rint(numbers)) | ~np.isfinite(rounded), numbers, rounded)


def _to_json(numbers: npt.NDArray[np.float64]) -> list[int | float | None]:
    """Return numbers for JSON: whole ones without a point, null for NaN."""
    return [
        None if value != value else int(value) if value == value // 1 and abs(value) < 1e15 else value
        for value in numbers.tolist()
    ]


def _difference(old: _Encoded | None, new: _Encoded) -> dict[str, Any]:
    """Return what has to be sent of a mark: its fields that differ, and its points from where they differ."""
    fields, numbers = new
    if old is None or old[0]["k"] != fields["k"]:
        return fields if numbers is None else {**fields, "p": _to_json(numbers)}
    out = _changed_fields(old[0], fields)
    before = old[1]
    if numbers is None or before is None:
        return out
    count = min(len(before), len(numbers))
    same = (before[:count] == numbers[:count]) | (np.isnan(before[:count]) & np.isnan(numbers[:count]))
    kept = count if same.all() else int(same.argmin())
    if kept < max(len(before), len(numbers)):
        out["p"] = [kept, *_to_json(numbers[kept:])]
    return out


def _changed_fields(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that differ, null for one that is gone."""
    out: dict[str, Any] = {name: None for name in old if name not in new}
    out |= {name: value for name, value in new.items() if old.get(name) != value}
    return out
