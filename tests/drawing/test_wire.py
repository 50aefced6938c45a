"""What the wire carries is the drawings: read back by a decoder written from the protocol's description alone."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import numpy as np
import pytest
from made_scenes import DEGENERATE, USUAL, curve, random_scene

from gradlab.drawing import Band, Drawing, Encoder, Image, draw
from gradlab.drawing.marks import Mark, told

KINDS = {"Path": "p", "Band": "b", "Dots": "d", "Text": "t", "Image": "i"}


class Reader:
    """A panel as a browser keeps it."""

    def __init__(self) -> None:
        self.panel: dict[str, Any] = {}

    def read(self, message: dict[str, Any]) -> None:
        message = json.loads(json.dumps(message, allow_nan=False))
        if "marks" in message:
            self.panel = message
            return
        if "ids" in message:
            known = dict(zip(self.panel["ids"], self.panel["marks"], strict=True))
            self.panel["marks"] = [known.get(id, {}) for id in message["ids"]]
        for index, fields in message.pop("set", []):
            if "k" in fields:
                self.panel["marks"][index] = fields
                continue
            mark = self.panel["marks"][index]
            for name, value in fields.items():
                if value is None:
                    mark.pop(name)
                elif name == "p" and "p" in mark:
                    mark["p"] = [*mark["p"][: value[0]], *value[1:]]
                else:
                    mark[name] = value
        self.panel |= message


def pieces(numbers: list[int | None], each: int) -> list[np.ndarray]:
    """The points between lifted pens, in pixels."""
    parts: list[list[int]] = [[]]
    for number in numbers:
        if number is None:
            parts.append([])
        else:
            parts[-1].append(number)
    return [np.cumsum(np.array(part).reshape(-1, each), axis=0) / 4 for part in parts if part]


def wanted_pieces(points: Any, each: int) -> list[np.ndarray]:
    rows = np.asarray(points, dtype=float).reshape(-1, each)
    found: list[list[np.ndarray]] = [[]]
    for row in rows:
        if np.isfinite(row).all():
            found[-1].append(row)
        else:
            found.append([])
    return [np.array(part) for part in found if part]


def check_mark(read: dict[str, Any], mark: Mark) -> None:
    assert read["k"] == KINDS[type(mark).__name__]
    fields = dict(told(mark))
    points, cells = fields.pop("points", None), fields.pop("cells", None)
    if points is not None:
        each = 3 if isinstance(mark, Band) else 2
        got, wanted = pieces(read["p"], each), wanted_pieces(points, each)
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            assert one.shape == other.shape
            assert np.abs(one - np.clip(other, -1e5, 1e5)).max() <= 0.125 + 1e-9
    if isinstance(mark, Image):
        assert [ord(sign) - 48 for sign in read["cells"]] == np.asarray(cells).ravel().tolist()
    assert set(read) - {"k", "p", "cells"} == set(fields)
    for name, value in fields.items():
        if isinstance(value, float):
            assert read[name] == pytest.approx(value, abs=0.005)
        elif isinstance(value, (str, bool, int)):
            assert read[name] == value
        elif name == "palette":
            assert tuple(read[name]) == value
        else:  # a Readout or a Drag
            assert read[name]["x"] == {"start": value.x.start, "per_pixel": value.x.per_pixel, "log": value.x.log}


def check(reader: Reader, drawing: Drawing) -> None:
    panel = reader.panel
    assert panel["size"] == [drawing.width, drawing.height]
    assert (panel["title"], panel["words"]) == (drawing.title, drawing.words)
    assert panel["ids"] == [mark.id for mark in drawing.marks]
    assert len(panel["marks"]) == len(drawing.marks)
    for read, mark in zip(panel["marks"], drawing.marks, strict=True):
        check_mark(read, mark)


@pytest.mark.parametrize("block", range(10))
def test_a_random_sequence_arrives_as_it_was_sent(block: int) -> None:
    chance = random.Random(block)
    pool = [*USUAL, *DEGENERATE, *(random_scene(10 * at + block) for at in range(4))]
    some = [scene for scene in pool if type(scene) is type(USUAL[block])]
    encoder, reader = Encoder(), Reader()
    for _ in range(25):
        drawing = draw(chance.choice(some), *chance.choice([(400, 260), (400, 260), (900, 380)]))
        reader.read(encoder.change(drawing) if chance.random() < 0.9 else encoder.encode(drawing))
        check(reader, drawing)


def test_a_growing_curve_sends_its_end_only() -> None:
    encoder, reader = Encoder(), Reader()
    reader.read(encoder.encode(draw(curve(40))))
    sizes = []
    for count in range(41, 49):  # the axis stays up to 60 updates
        drawing = draw(curve(count))
        message = encoder.change(drawing)
        assert "marks" not in message
        sizes.append(len(json.dumps(message["set"])))
        reader.read(message)
        check(reader, drawing)
    assert max(sizes) < 400


def test_what_is_the_same_is_not_sent() -> None:
    for scene in USUAL:
        encoder = Encoder()
        encoder.encode(draw(scene))
        assert encoder.change(draw(scene)) == {}
        again = draw(scene)
        kept = [mark for mark, other in zip(again.marks, draw(scene).marks, strict=True) if mark is other]
        assert len(kept) >= 0.5 * len(again.marks) - 3 or scene is USUAL[5], type(scene)


def test_a_path_far_outside_is_sent_as_far_as_it_can_be() -> None:
    from gradlab.drawing import Path

    encoder, reader = Encoder(), Reader()
    drawing = Drawing("far", [Path("a", np.array([0.0, 1e300, math.nan, math.nan, -1e300, 2.0]), stroke="ink")])
    reader.read(encoder.encode(drawing))
    check(reader, drawing)
