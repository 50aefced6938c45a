"""The JSON in which Drawings are sent to the browser: first as a whole, then only the changes from frame to frame.

Whole numbers are exact. Other coordinates are rounded in steps of at most a ten-thousandth of the axis's range or, on
a log axis, to five significant digits. Points that have not changed are not sent again: when a curve grows by a point,
only the new point is sent to ``front/wire.js``.

A panel is ``{"title": ..., "axes": [...], field: value, ..., "ids": [id, ...], "marks": [mark, ...]}`` and a mark is
``{"k": kind, "p": [numbers], field: value, ...}``, without fields at their defaults. A change of a panel has the fields
that changed; a field that is back at its default is null. Instead of ``marks``, the change has the changed marks as
``"set": [[index, fields], ...]``. There, ``"p"`` is ``[count, number, ...]``: keep the first ``count`` old numbers,
then append the new ones. If marks were added, removed or moved, the change has all ``ids``; marks with a known id keep
their fields, and new marks are whole in ``set``.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache, lru_cache
from typing import Any

import numpy as np

from .limits import Numbers
from .marks import AXES_EDGE, Axes, Band, Drawing, Mark

SIGNIFICANT_DIGITS = 5  # to which a coordinate is rounded on a log axis; on a linear axis, digits of the axis's range
_KINDS = {"Line": "l", "Area": "a", "Band": "b", "Dots": "d", "Arrow": "v", "Text": "t", "Image": "i"}

Panel = dict[str, Any]
_Encoded = tuple[dict[str, Any], Numbers | None]


class Encoder:
    """An encoder of one panel's Drawings: ``encode`` returns a whole panel, and ``change`` returns the changes."""

    def __init__(self) -> None:
        self._drawing: Drawing | None = None
        self._head: dict[str, Any] = {}
        self._marks: list[_Encoded] = []

    def encode(self, drawing: Drawing) -> Panel:
        """Return a Drawing as a whole panel, to which the next ``change`` refers."""
        self._drawing, self._head = drawing, _encode_fields(drawing, "marks")
        self._marks = [_encode_mark(mark, drawing) for mark in drawing.marks]
        marks = [_difference(None, encoded) for encoded in self._marks]
        return {**self._head, "ids": [mark.id for mark in drawing.marks], "marks": marks}

    def change(self, drawing: Drawing) -> Panel:
        """Return the changes since the previous Drawing, or the whole panel if there was no previous Drawing."""
        before = self._drawing
        if drawing is before:
            return {}
        if before is None:
            return self.encode(drawing)
        same_axes = drawing.axes == before.axes  # on other axes, numbers may be rounded differently
        encoded_by_id = {old.id: (old, encoded) for old, encoded in zip(before.marks, self._marks, strict=True)}
        new: list[_Encoded] = []
        changes: list[list[Any]] = []
        for index, mark in enumerate(drawing.marks):
            old, encoded = encoded_by_id.get(mark.id, (None, None))
            if encoded is not None and mark is old and same_axes:
                new.append(encoded)
                continue
            new.append(_encode_mark(mark, drawing))
            if difference := _difference(encoded, new[-1]):
                changes.append([index, difference])
        head, ids = _encode_fields(drawing, "marks"), [mark.id for mark in drawing.marks]
        panel = _changed_fields(self._head, head) | ({} if ids == [*encoded_by_id] else {"ids": ids})
        self._drawing, self._head, self._marks = drawing, head, new
        return {**panel, "set": changes} if changes else panel


def _encode_mark(mark: Mark, drawing: Drawing) -> _Encoded:
    """Return the fields of a mark for JSON and the mark's rounded points, which are None if the mark has none."""
    encoded: dict[str, Any] = {"k": _KINDS[type(mark).__name__], **_encode_fields(mark, "points", "cells")}
    if (cells := getattr(mark, "cells", None)) is not None:
        encoded["cells"] = (np.asarray(cells).ravel() + 48).astype(np.uint8).tobytes().decode("latin-1")
    points = getattr(mark, "points", None)
    if points is None:
        return encoded, None
    numbers = np.clip(np.asarray(points, dtype=np.float64).ravel(), -AXES_EDGE, AXES_EDGE)
    return encoded, _rounded(numbers, 3 if isinstance(mark, Band) else 2, drawing.axes[getattr(mark, "axes", 0)])


def _encode_fields(part: Any, *but: str) -> dict[str, Any]:
    """Return the encoded fields of a dataclass that are not at their defaults, without ``id`` and those in ``but``."""
    return {
        name: _encode(value)
        for name, default in _defaults(part.__class__)
        if (value := getattr(part, name)) is not default
        and name not in but
        and (default is MISSING or value != default)
    }


@cache
def _defaults(kind: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((each.name, each.default) for each in fields(kind) if each.name != "id")


def _encode(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, tuple):
        return [_encode(each) for each in value]
    return _encode_part(value) if hasattr(value, "__dataclass_fields__") else value


_encode_part = lru_cache(maxsize=1024)(_encode_fields)  # cached, because axes, keys and swatches rarely change


def _rounded(points: Numbers, each: int, axes: Axes) -> Numbers:
    """Return points of ``each`` numbers, rounded to ``SIGNIFICANT_DIGITS`` on ``axes``; whole numbers are kept."""
    rounded = points.copy()
    for column in range(each):
        axis, values = axes.y if column else axes.x, points[column::each]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            power = np.floor(np.log10(np.abs(values) if axis.log else axis.high - axis.low)) - (SIGNIFICANT_DIGITS - 1)
            ten = 10.0 ** np.abs(power)
            near = np.where(power < 0, np.rint(values * ten) / ten, np.rint(values / ten) * ten)
        rounded[column::each] = np.where((values == np.rint(values)) | ~np.isfinite(near), values, near)
    return rounded


def _difference(old: _Encoded | None, new: _Encoded) -> dict[str, Any]:
    """Return a mark's changed fields and its points from the first changed number on, or a new mark as a whole."""
    encoded, points = new
    if old is None or old[0]["k"] != encoded["k"]:
        return encoded if points is None else {**encoded, "p": _to_json(points)}
    difference, before = _changed_fields(old[0], encoded), old[1]
    if points is None or before is None:
        return difference
    count = min(len(before), len(points))
    same = (before[:count] == points[:count]) | (np.isnan(before[:count]) & np.isnan(points[:count]))
    count = count if same.all() else int(same.argmin())
    if count < max(len(before), len(points)):
        difference["p"] = [count, *_to_json(points[count:])]
    return difference


def _to_json(numbers: Numbers) -> list[int | float | None]:
    return [
        None if value != value else int(value) if value == value // 1 and abs(value) < 1e15 else value
        for value in numbers.tolist()
    ]


def _changed_fields(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    return {name: None for name in old if name not in new} | changed
