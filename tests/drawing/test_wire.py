"""What the wire carries is the drawings: read back by a reader written from the protocol's description alone."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import numpy as np
import pytest
from made_scenes import DEGENERATE, USUAL, curve, random_scene
from page import PanelSeen, lines_of

from gradlab.drawing import Band, Drawing, Encoder, Image, Mark, Path, draw
from gradlab.drawing.marks import non_default_fields

KINDS = {"Path": "p", "Band": "b", "Dots": "d", "Text": "t", "Image": "i"}


class Reader:
    """Reads messages as a browser does, and compares what it has with the Drawing that was sent."""

    def __init__(self) -> None:
        self.encoder = Encoder()
        self.panel: PanelSeen | None = None

    def send(self, drawing: Drawing, *, whole: bool = False) -> dict[str, Any]:
        """Send a Drawing, check what has arrived, and return the message."""
        sent = self.encoder.encode(drawing) if whole else self.encoder.change(drawing)
        message = json.loads(json.dumps(sent, allow_nan=False))
        self.panel = panel = PanelSeen(message) if "marks" in message or not self.panel else self.panel.changed(message)
        assert (panel.size, panel.title, panel.words) == ([drawing.width, drawing.height], drawing.title, drawing.words)
        assert panel.ids == [mark.id for mark in drawing.marks]
        for read, mark in zip(panel.marks, drawing.marks, strict=True):
            check_mark(read, mark)
        return message


def wanted_lines(points: Any, each: int) -> list[np.ndarray]:
    """The points between lifted pens."""
    rows = np.asarray(points, dtype=float).reshape(-1, each)
    sound = np.isfinite(rows).all(axis=1)
    parts = np.split(rows, np.flatnonzero(~sound))
    return [part for whole in parts if len(part := whole[np.isfinite(whole).all(axis=1)])]


def check_mark(read: dict[str, Any], mark: Mark) -> None:
    assert read["k"] == KINDS[type(mark).__name__]
    fields = dict(non_default_fields(mark))
    points, cells = fields.pop("points", None), fields.pop("cells", None)
    if points is not None:
        lines = wanted_lines(points, 3 if isinstance(mark, Band) else 2)
        for one, other in zip(lines_of(read), lines, strict=True):
            assert np.array(one) == pytest.approx(np.clip(other, -1e5, 1e5), abs=0.125 + 1e-9)
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


@pytest.mark.parametrize("block", range(len(USUAL)))
def test_a_random_sequence_arrives_as_it_was_sent(block: int) -> None:
    chance = random.Random(block)
    pool = [*USUAL, *DEGENERATE, *map(random_scene, range(12))]
    some = [scene for scene in pool if type(scene) is type(USUAL[block])]
    reader = Reader()
    for _ in range(25):
        drawing = draw(chance.choice(some), *chance.choice([(400, 260), (400, 260), (900, 380)]))
        reader.send(drawing, whole=chance.random() < 0.1)


def test_marks_that_change_places_arrive_in_their_new_order() -> None:
    one, other = (Path(id, (0.0, 0.0, 9.0, 9.0), stroke="ink") for id in "ab")
    reader = Reader()
    for marks in ([one, other], [other, one], [other]):
        reader.send(Drawing("turned round", marks))


def test_a_growing_curve_sends_its_end_only() -> None:
    reader = Reader()
    reader.send(draw(curve(40)))
    for count in range(41, 49):  # the axis stays up to 60 updates
        message = reader.send(draw(curve(count)))
        assert "marks" not in message
        assert len(json.dumps(message["set"])) < 400


def test_what_is_the_same_is_not_sent() -> None:
    for scene in USUAL:
        encoder = Encoder()
        encoder.encode(draw(scene))
        assert encoder.change(draw(scene)) == {}
        again = draw(scene)
        kept = [mark for mark, other in zip(again.marks, draw(scene).marks, strict=True) if mark is other]
        assert len(kept) >= 0.5 * len(again.marks) - 3 or scene is USUAL[5], type(scene)


def test_a_path_far_outside_is_sent_as_far_as_it_can_be() -> None:
    Reader().send(Drawing("far", [Path("a", np.array([0.0, 1e300, math.nan, math.nan, -1e300, 2.0]), stroke="ink")]))
