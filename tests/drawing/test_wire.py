"""Drawings on the wire, as the browser reads them: whole and change by change."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from deno import TESTS, deno
from made_scenes import DEGENERATE, USUAL, curve, random_scene

from gradlab.drawing import (
    AXES_EDGE,
    Arrow,
    Axes,
    Axis,
    AxisSpan,
    Band,
    Dots,
    Drawing,
    Encoder,
    Image,
    Key,
    Line,
    Mark,
    Text,
    draw,
)

KINDS = {"Line": "l", "Area": "a", "Band": "b", "Dots": "d", "Arrow": "v", "Text": "t", "Image": "i"}
LEFT_OPEN = 5e-5  # of what an axis shows, and on a log axis of a number: what rounding leaves open


def read(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the browser's panel after each message."""
    sent = "\n".join(json.dumps(message, allow_nan=False) for message in messages)
    return [json.loads(line) for line in deno("run", TESTS / "decode.js", text=sent).splitlines()]


def check(drawings: list[Drawing]) -> list[dict[str, Any]]:
    """Send drawings whole, and change by change; compare what arrives, and return the changes."""
    encoder = Encoder()
    changes = [encoder.change(drawing) for drawing in drawings]
    wholes = read(Encoder().encode(drawing) for drawing in drawings)
    for drawing, whole, changed in zip(drawings, wholes, read(changes), strict=True):
        assert changed == whole
        check_drawing(whole, drawing)
    return changes


def check_drawing(panel: dict[str, Any], drawing: Drawing) -> None:
    assert (panel["title"], panel.get("words", "")) == (drawing.title, drawing.words)
    assert panel["ids"] == [mark.id for mark in drawing.marks]
    assert panel.get("notes", []) == [list(note) for note in drawing.notes]
    for axes, sent in zip(drawing.axes, panel["axes"], strict=True):
        for axis, way in ((axes.x, sent["x"]), (axes.y, sent["y"])):
            assert [way["low"], way["high"]] == pytest.approx([axis.low, axis.high], rel=1e-6)
            assert (way.get("log", False), way.get("ticks", "number")) == (axis.log, axis.ticks)
            assert [span[2] for span in way.get("spans", [])] == [list(span.texts) for span in axis.spans]
    for sent, mark in zip(panel["marks"], drawing.marks, strict=True):
        check_mark(sent, mark, drawing)


def check_mark(sent: dict[str, Any], mark: Mark, drawing: Drawing) -> None:
    assert sent["k"] == KINDS[type(mark).__name__]
    if (points := getattr(mark, "points", None)) is not None:
        values = np.clip(np.asarray(points, dtype=float).ravel(), -AXES_EDGE, AXES_EDGE)
        arrived = np.array(sent.get("p", []), dtype=float)  # null becomes NaN
        whole = values == np.rint(values)
        np.testing.assert_array_equal(arrived[whole], values[whole])
        axes, each = drawing.axes[getattr(mark, "axes", 0)], 3 if isinstance(mark, Band) else 2
        for column in range(each):
            axis = axes.y if column else axes.x
            wide = {"rtol": LEFT_OPEN, "atol": 1e-300} if axis.log else {"atol": LEFT_OPEN * (axis.high - axis.low)}
            np.testing.assert_allclose(arrived[column::each], values[column::each], **wide)
    if isinstance(mark, Image):
        assert [ord(sign) - 48 for sign in sent["cells"]] == np.asarray(mark.cells).ravel().tolist()
    if isinstance(mark, Text):
        assert (sent["texts"], sent.get("where", "around")) == (list(mark.texts), mark.where)
    for name in ("stroke", "fill", "words", "press", "readout"):
        if getattr(mark, name, ""):
            assert sent.get(name, "ink") == getattr(mark, name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted({type(scene).__name__ for scene in USUAL}))
def test_panels_arrive_as_they_were_sent(kind: str) -> None:
    chance = random.Random(kind)
    pool = [scene for scene in (*USUAL, *DEGENERATE, *map(random_scene, range(24))) if type(scene).__name__ == kind]
    check([draw(chance.choice(pool)) for _ in range(25)])


def random_points(chance: np.random.Generator, count: int, each: int) -> Any:
    """Numbers of all sizes: whole, tiny, huge, and lifted pens."""
    values = chance.normal(size=(count, each)) * 10.0 ** chance.integers(-300, 280, (count, each))
    values[chance.random(count) < 0.3] = np.rint(chance.normal(size=each) * 1e6)
    values[chance.random(count) < 0.2] = math.nan
    return values.ravel()


def random_drawing(chance: np.random.Generator) -> Drawing:
    """Marks of all kinds in any order, each there or not, with fields at their defaults or not."""
    grown = [[0.1 * i, 0.1 * i * i] for i in range(int(chance.integers(0, 30)))]
    text, stroke = str(chance.choice(["", "a", "\u221e"])), str(chance.choice(["ink", "loss", "grey/50"]))
    marks: list[Mark] = [
        Line("grown", np.array(grown).ravel(), stroke, words=text),
        Line("any", random_points(chance, int(chance.integers(0, 9)), 2), stroke, dash="dashed"),
        Line("edge", (math.inf, -math.inf, 1.0, AXES_EDGE)),
        Band("band", random_points(chance, 5, 3), fill=stroke),
        Dots("dots", random_points(chance, 3, 2), size=float(chance.integers(1, 9)), drag=text),
        Arrow("arrow", random_points(chance, 2, 2), press=text, line=2.5),
        Text("text", (text, "b")[: 1 + int(chance.integers(2))], 1 / 3, swatch=Key((text,), fill=stroke)),
        Image("image", (0.0, 0.0, 1.0, 1.0), 3, chance.integers(0, 3, 9), ("ink", "paper", stroke)),
    ]
    marks = [marks[int(i)] for i in chance.permutation(len(marks))[: int(chance.integers(len(marks) + 1))]]
    x = Axis(1 / 3, float(chance.integers(1, 9)), words=text, spans=(AxisSpan(0.0, 1.0, (text, "b")),) * len(text))
    axes = (Axes(x, Axis(log=bool(chance.integers(2)), low=1e-9)),) * int(chance.integers(1, 3))
    return Drawing("any", marks, axes, text, corner=(text,) * len(text), notes=((text, "c"),), faint=bool(text))


def test_any_drawing_arrives_as_it_was_sent() -> None:
    chance = np.random.default_rng(5)
    check([random_drawing(chance) for _ in range(150)])


def test_a_mark_that_becomes_one_of_another_kind_arrives_whole() -> None:
    line, dots = Line("mark", (0.0, 1.0, 2.0, 3.0), "loss", 2.5), Dots("mark", (0.0, 1.0, 2.0, 3.0), size=5.0)
    check([Drawing("any", [mark], (Axes(Axis(), Axis()),), "") for mark in (line, dots, line)])


def test_a_growing_curve_sends_its_end_only() -> None:
    for change in check([draw(curve(count)) for count in range(40, 49)])[1:]:  # the axis stays up to 60 updates
        assert "marks" not in change
        assert len(json.dumps(change["set"])) < 400


def test_what_is_the_same_is_not_sent() -> None:
    for scene in USUAL:
        encoder = Encoder()
        encoder.encode(draw(scene))
        assert encoder.change(draw(scene)) == {}
