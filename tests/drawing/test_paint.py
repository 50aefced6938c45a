"""Stills: every mark at its coordinates in its colour, and nothing of the learner's own settings."""

from __future__ import annotations

import gc
import io
import subprocess
import sys
from typing import Any

import matplotlib
import numpy as np
import pytest
from made_scenes import DEGENERATE, USUAL
from matplotlib.backends.backend_agg import RendererAgg
from PIL import Image as Picture

from gradlab.drawing import Band, Dots, Drawing, Image, Path, Text, colour, draw, to_png, to_svg
from gradlab.drawing.marks import SHAPES

pytestmark = pytest.mark.filterwarnings("error")


def pixels(*drawings: Drawing, **more: Any) -> np.ndarray:
    return np.array(Picture.open(io.BytesIO(to_png(drawings, **more))).convert("RGB"))


def rgb(role: str) -> list[int]:
    return [int(colour(role)[at : at + 2], 16) for at in (1, 3, 5)]


def test_marks_are_painted_where_they_say() -> None:
    marks = [
        Path("area", (20, 10, 60, 10, 60, 40, 20, 40), fill="weights"),
        Band("band", np.array([100, 40, 20, 140, 40, 20]), fill="gradients/50"),
        Dots("dots", (30, 70, 50, 70), shape="square", size=8, fill="stale"),
        Image("image", 100, 60, 40, 20, 2, [0, 1, 2, 3], ("ink", "class1", "class2/50", "paper")),
        Path("line", (10, 95, 190, 95), stroke="ink", width=4),
    ]
    seen = pixels(Drawing("all", marks, width=200, height=100), density=2)
    assert seen.shape == (200, 400, 3)
    spots = {(40, 25): "weights", (120, 30): "gradients/50", (30, 70): "stale", (50, 70): "stale", (40, 70): "paper"}
    cells = {(110, 65): "ink", (130, 65): "class1", (110, 75): "class2/50", (130, 75): "paper", (100, 95): "ink"}
    for (x, y), role in {**spots, **cells}.items():
        assert seen[2 * y, 2 * x].tolist() == rgb(role), (x, y)
    for (x, y), role in {
        (20.5, 10.5): "weights",
        (59.5, 39.5): "weights",
        (19.5, 10.5): "paper",
        (60.5, 39): "paper",
    }.items():
        assert seen[int(2 * y), int(2 * x)].tolist() == rgb(role), (x, y)


def test_what_comes_later_lies_in_front() -> None:
    below, above = ((0, 0, 40, 0, 40, 40, 0, 40), (10, 10, 30, 10, 30, 30, 10, 30))
    image = Image("image", 0, 0, 40, 40, 1, [0], ("ink",))
    seen = pixels(
        Drawing("", [image, Path("a", below, fill="weights"), Path("b", above, fill="loss")], width=40, height=40)
    )
    assert seen[40, 40].tolist() == rgb("loss")
    assert seen[10, 10].tolist() == rgb("weights")


def test_smooth_cells_run_into_each_other_and_others_do_not() -> None:
    colours = []
    for smooth in (False, True):
        image = Image("image", 0, 0, 80, 40, 2, [0, 1], ("ink", "paper"), smooth=smooth)
        row = pixels(Drawing("", [image], width=80, height=40), density=1.0)[20, :, 0]
        colours.append(len(np.unique(row)))
    assert colours[0] == 2
    assert colours[1] > 8


def test_several_panels_stand_in_rows() -> None:
    def one(role: str, wide: int) -> Drawing:
        return Drawing("", [Path("a", (5, 5, 15, 5, 15, 15, 5, 15), fill=role)], width=wide, height=20)

    seen = pixels(one("weights", 30), one("stale", 50), one("optimizer", 20), columns=2, density=1)
    assert seen.shape == (40, 80, 3)
    assert [seen[10, 10].tolist(), seen[10, 40].tolist(), seen[30, 10].tolist()] == [
        rgb("weights"), rgb("stale"), rgb("optimizer"),
    ]  # fmt: skip
    assert to_png([])
    with pytest.raises(ValueError, match="columns must be at least 1, got 0"):
        to_png([], columns=0)


def test_a_hatch_and_a_dash_are_seen() -> None:
    area = (10, 10, 90, 10, 90, 90, 10, 90)

    def share(role: str, **look: Any) -> float:
        seen = pixels(Drawing("", [Path("a", area, **look)], width=100, height=100))
        return float((np.abs(seen.astype(int) - rgb(role)).max(axis=2) < 40).mean())

    for hatch in ("//", "\\\\", "..", "--"):
        assert 0.02 < share("ink", fill="gradients/50", hatch=hatch) < 0.4
    assert share("ink", stroke="ink", width=3, dash="dashed") < 0.8 * share("ink", stroke="ink", width=3)


def test_texts_are_anchored() -> None:
    def columns(anchor: str) -> np.ndarray:
        seen = pixels(Drawing("", [Text("a", 100, 20, "HHHH", anchor=anchor)], width=200, height=40), density=1)
        return np.flatnonzero((seen < 128).any(axis=(0, 2)))

    start, middle, end = (columns(anchor) for anchor in ("start", "middle", "end"))
    assert 99 <= start.min() <= 103
    assert 97 <= end.max() <= 101
    assert (middle.min() + middle.max()) / 2 == pytest.approx(99.5, abs=1)
    turned = pixels(
        Drawing("", [Text("a", 100, 100, "HHHH", anchor="start", angle=90)], width=200, height=200), density=1
    )
    assert np.flatnonzero((turned < 128).any(axis=(1, 2))).max() <= 101  # it goes upward


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_painted(shape: str) -> None:
    seen = pixels(
        Drawing("", [Dots("a", (20, 20), shape=shape, size=12, fill="ink", stroke="ink", width=2)], width=40, height=40)
    )
    assert 20 < (seen < 100).all(axis=2).sum() < 1200


def test_every_scene_is_painted_without_a_warning() -> None:
    for scene in [*USUAL, *DEGENERATE]:
        assert to_png([draw(scene)], density=1)
    png = to_png([draw(scene) for scene in USUAL])
    assert len(png) < 400_000
    seen = np.array(Picture.open(io.BytesIO(png)).convert("RGB")).reshape(-1, 3)
    for role in ("paper", "ink", "fresh", "stale", "weights", "gradients/50"):  # exact, however many colours there are
        assert (seen == rgb(role)).all(axis=1).any(), role


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


def test_the_pixels_are_freed_without_a_garbage_collection() -> None:
    gc.collect()
    gc.disable()
    try:
        to_png([Drawing("all", [Text("text", 10, 10, "text")], width=200, height=100)])
        renderers = [one for one in gc.get_objects() if type(one) is RendererAgg]
    finally:
        gc.enable()
    assert not any(vars(one) for one in renderers)


def test_neither_pyplot_nor_torch_is_imported() -> None:
    code = (
        "import sys\nfrom gradlab.drawing import draw, to_png, to_svg\nfrom gradlab.scenes import Curve\n"
        "one = draw(Curve([1], [1], [1], [1]))\nto_png([one])\nto_svg([one])\n"
        "print([m for m in ('matplotlib.pyplot', 'torch', 'IPython') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
