"""Drawings on the wire: as lists of small whole numbers, and from frame to frame only what has changed.

A place is sent in quarters of a pixel, a point as its difference from the one before. So a curve that grows by a point
sends that point alone: the numbers before it are the same as in the frame before. ``front/wire.js`` reads it.

A panel on the wire is
``{"size": [width, height], "title": ..., "words": ..., "ids": [id, ...], "marks": [mark, ...]}``,
a mark ``{"k": kind, "p": [numbers], field: value, ...}`` with the fields that are not at their defaults. A change of a
panel holds the keys that are new, and in place of ``marks`` the changed ones as ``"set": [[index, fields], ...]``,
where ``"p"`` is ``[kept, number, ...]``: so many numbers stay, the others follow; a field that went back to its
default is null. Where marks came or went, ``ids`` is there: a mark keeps its fields by its id, and a new one is whole
in ``set``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np

from .marks import Band, Drag, Drawing, Mark, Readout, non_default_fields

QUARTERS = 4
"""Places are rounded to so many parts of a CSS pixel."""
_KINDS = {"Path": "p", "Band": "b", "Dots": "d", "Text": "t", "Image": "i"}
_FARTHEST = 1e5  # CSS pixels
_LIFTED = None  # stands for a lifted pen; the pair after it is counted from 0 again

Panel = dict[str, Any]


class Encoder:
    """Writes the Drawings of one panel one after the other; ``encode`` says it all, ``change`` only what is new."""

    def __init__(self) -> None:
        """Start with nothing sent."""
        self._drawing: Drawing | None = None
        self._marks: list[dict[str, Any]] = []

    def encode(self, drawing: Drawing) -> Panel:
        """Return the whole Drawing; the next change is counted from it."""
        self._drawing, self._marks = drawing, [encode_mark(mark) for mark in drawing.marks]
        return {**_head(drawing), "ids": [mark.id for mark in drawing.marks], "marks": self._marks}

    def change(self, drawing: Drawing) -> Panel:
        """Return what has changed since the Drawing before."""
        before = self._drawing
        if drawing is before:
            return {}
        if before is None:
            return self.encode(drawing)
        known = {old.id: (old, encoded) for old, encoded in zip(before.marks, self._marks, strict=True)}
        new: list[dict[str, Any]] = []
        changes: list[list[Any]] = []
        for index, mark in enumerate(drawing.marks):
            old, encoded = known.get(mark.id, (None, None))
            if encoded is not None and mark is old:
                new.append(encoded)
                continue
            now = encode_mark(mark)
            new.append(now)
            if encoded is None or now["k"] != encoded["k"]:
                changes.append([index, now])
            elif now != encoded:
                changes.append([index, _difference(encoded, now)])
        was = _head(before)
        out: Panel = {key: value for key, value in _head(drawing).items() if value != was[key]}
        ids = [mark.id for mark in drawing.marks]
        if ids != [*known]:
            out["ids"] = ids
        self._drawing, self._marks = drawing, new
        return {**out, "set": changes} if changes else out


def encode_mark(mark: Mark) -> dict[str, Any]:
    """Return one mark as it is sent."""
    out: dict[str, Any] = {"k": _KINDS[type(mark).__name__]}
    for name, value in non_default_fields(mark):
        if isinstance(value, float):
            out[name] = round(value, 2)
        elif name == "points":
            out["p"] = encode_deltas(value, 3 if isinstance(mark, Band) else 2)
        elif name == "cells":
            out["cells"] = (np.asarray(value).ravel() + 48).astype(np.uint8).tobytes().decode("latin-1")
        elif isinstance(value, Readout | Drag):
            out[name] = _as_dict(value)
        else:
            out[name] = value
    return out


_as_dict: Callable[[Readout | Drag], dict[str, Any]] = lru_cache(maxsize=256)(asdict)


def encode_deltas(points: Any, each: int) -> list[int | None]:
    """Return points (``each`` numbers a point) as differences in quarters of a pixel."""
    if isinstance(points, tuple):
        return _encode_few(points, each)
    array = np.asarray(points, dtype=np.float64).reshape(-1, each)
    if not len(array):
        return []
    sound = np.isfinite(array)
    if np.logical_and.reduce(sound, axis=None):
        whole = _whole(array)
        whole[1:] -= whole[:-1].copy()
        return [*whole.ravel().tolist()]
    lifted = np.flatnonzero(~np.logical_and.reduce(sound, axis=1)).tolist()
    whole = _whole(np.where(sound, array, 0.0))
    differences = np.diff(whole, axis=0, prepend=0)
    parts: list[int | None] = []
    for begin, end in zip([0, *(at + 1 for at in lifted)], [*lifted, len(array)], strict=True):
        if end <= begin:
            continue
        if parts:
            parts.append(_LIFTED)
        parts += whole[begin].tolist()
        parts += differences[begin + 1 : end].ravel().tolist()
    return parts


def _whole(array: Any) -> Any:
    """Return places in quarters of a pixel."""
    return np.rint(np.minimum(np.maximum(array, -_FARTHEST), _FARTHEST) * QUARTERS).astype(np.int64)


def _encode_few(points: tuple[float, ...], each: int) -> list[int | None]:
    """Do the same for a tuple without lifted pens: for a few points numpy takes several times as long."""
    if not (points and -_FARTHEST < min(points) <= max(points) < _FARTHEST):
        points = tuple(min(max(place, -_FARTHEST), _FARTHEST) for place in points)
    whole = [round(place * QUARTERS) for place in points]
    return [*whole[:each], *(now - before for now, before in zip(whole[each:], whole, strict=False))]


def _head(drawing: Drawing) -> dict[str, Any]:
    return {"size": [drawing.width, drawing.height], "title": drawing.title, "words": drawing.words}


def _difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that differ, null for one that is gone."""
    out: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        was = old.get(name)
        if value == was:
            continue
        if name == "p" and was is not None:
            kept = _common(was, value)
            out["p"] = [kept, *value[kept:]]
        else:
            out[name] = value
    return out


def _common(old: list[Any], new: list[Any]) -> int:
    """Return how many numbers both begin with."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (before, now) in pairs if before != now), min(len(old), len(new)))
