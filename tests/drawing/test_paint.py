"""Stills: every mark at its coordinates in its colour, and nothing of the learner's own settings."""

from __future__ import annotations

import io
from typing import Any

import matplotlib
import numpy as np
import pytest
from made_scenes import DEGENERATE, USUAL
from PIL import Image as Picture

from gradlab.drawing import Band, Dots, Drawing, Image, Mark, Path, Text, colour, draw, to_png, to_svg
from gradlab.drawing.marks import SHAPES

pytestmark = pytest.mark.filterwarnings("error")


def pixels(*drawings: Drawing, **more: Any) -> np.ndarray:
    return np.array(Picture.open(io.BytesIO(to_png(drawings, **more))).convert("RGB"))


def painted(*marks: Mark, width: int = 100, height: int = 100, density: float = 2) -> np.ndarray:
    return pixels(Drawing("", marks, width=width, height=height), density=density)


def rgb(role: str) -> list[int]:
    return [int(colour(role)[at : at + 2], 16) for at in (1, 3, 5)]


def test_marks_are_painted_where_they_say() -> None:
    seen = painted(
        Path("area", (20, 10, 60, 10, 60, 40, 20, 40), fill="weights"),
        Band("band", np.array([100, 40, 20, 140, 40, 20]), fill="gradients/50"),
        Dots("dots", (30, 70, 50, 70), shape="square", size=8, fill="stale"),
        Image("image", 100, 60, 40, 20, 2, [0, 1, 2, 3], ("ink", "activations", "scale/50", "paper")),
        Path("line", (10, 95, 190, 95), stroke="ink", width=4),
        width=200,
    )
    assert seen.shape == (200, 400, 3)
    spots = {(40, 25): "weights", (120, 30): "gradients/50", (30, 70): "stale", (50, 70): "stale", (40, 70): "paper"}
    cells = {(110, 65): "ink", (130, 65): "activations", (110, 75): "scale/50", (130, 75): "paper", (100, 95): "ink"}
    corners = {(20.5, 10.5): "weights", (59.5, 39.5): "weights", (19.5, 10.5): "paper", (60.5, 39): "paper"}
    for (x, y), role in {**spots, **cells, **corners}.items():
        assert seen[int(2 * y), int(2 * x)].tolist() == rgb(role), (x, y)


def test_what_comes_later_lies_in_front() -> None:
    below, above = ((0, 0, 40, 0, 40, 40, 0, 40), (10, 10, 30, 10, 30, 30, 10, 30))
    image = Image("image", 0, 0, 40, 40, 1, [0], ("ink",))
    seen = painted(image, Path("a", below, fill="weights"), Path("b", above, fill="loss"), width=40, height=40)
    assert [seen[at, at].tolist() for at in (40, 10)] == [rgb("loss"), rgb("weights")]


def test_several_panels_stand_in_rows() -> None:
    def one(role: str, wide: int) -> Drawing:
        return Drawing("", [Path("a", (5, 5, 15, 5, 15, 15, 5, 15), fill=role)], width=wide, height=20)

    seen = pixels(one("weights", 30), one("stale", 50), one("optimizer", 20), columns=2, density=1)
    assert seen.shape == (40, 80, 3)
    for (y, x), role in {(10, 10): "weights", (10, 40): "stale", (30, 10): "optimizer"}.items():
        assert seen[y, x].tolist() == rgb(role)
    seen = pixels(one("weights", 30), above=one("stale", 50), beside=one("optimizer", 20), density=1)
    for (y, x), role in {(10, 10): "stale", (30, 10): "optimizer", (30, 40): "weights"}.items():
        assert seen[y, x].tolist() == rgb(role)
    assert to_png([])
    with pytest.raises(ValueError, match="columns must be at least 1, got 0"):
        to_png([], columns=0)


def test_a_hatch_a_dash_and_every_shape_are_seen() -> None:
    def share(**look: Any) -> float:
        seen = painted(Path("a", (10, 10, 90, 10, 90, 90, 10, 90), **look))
        return float((np.abs(seen.astype(int) - rgb("ink")).max(axis=2) < 40).mean())

    for hatch in ("//", "\\\\", "..", "--"):
        assert 0.02 < share(fill="gradients/50", hatch=hatch) < 0.4
    assert share(stroke="ink", width=3, dash="dashed") < 0.8 * share(stroke="ink", width=3)
    for shape in SHAPES:
        dots = Dots("a", (20, 20), shape=shape, size=12, fill="ink", stroke="ink", width=2)
        assert 20 < (painted(dots, width=40, height=40) < 100).all(axis=2).sum() < 1200, shape


def test_texts_are_anchored_and_turned() -> None:
    def dark(axis: tuple[int, int], **look: Any) -> tuple[int, int]:
        seen = painted(Text("a", 100, 100, "HHHH", **look), width=200, height=200, density=1)
        found = np.flatnonzero((seen < 128).any(axis=axis))
        return int(found.min()), int(found.max())

    assert 99 <= dark((0, 2), anchor="start")[0] <= 103
    assert 97 <= dark((0, 2), anchor="end")[1] <= 101
    assert sum(dark((0, 2), anchor="middle")) / 2 == pytest.approx(99.5, abs=1)
    assert dark((1, 2), anchor="start", angle=90)[1] <= 101  # it goes upward


def test_every_scene_is_painted_without_a_warning() -> None:
    assert to_png([draw(scene, 260, 200) for scene in DEGENERATE], density=0.5)
    seen = pixels(*(draw(scene) for scene in USUAL))
    assert len(to_png([draw(scene) for scene in USUAL])) < 400_000
    for role in ("paper", "ink", "fresh", "stale", "weights", "gradients/50"):  # exact, however many colours there are
        assert (seen == rgb(role)).all(axis=2).any(), role


def test_the_learners_own_settings_change_nothing() -> None:
    drawings = [draw(scene) for scene in USUAL[:4]]
    plain, text = to_png(drawings), to_svg(drawings)
    odd = {"text.color": "red", "font.size": 30, "lines.linewidth": 9, "hatch.linewidth": 7, "savefig.dpi": 10}
    with matplotlib.rc_context(odd):  # type: ignore[arg-type]
        assert to_png(drawings) == plain
        assert to_svg(drawings) == text
        assert matplotlib.rcParams["font.size"] == 30
    assert "<svg" in text
    assert "dc:date" not in text
