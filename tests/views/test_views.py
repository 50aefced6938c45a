"""The panels draw any scene, right and rarely anew. Oracles: a full draw by matplotlib, a PNG reader, colours."""

from __future__ import annotations

import io
import math
import subprocess
import sys
import warnings
from typing import Any

import matplotlib
import numpy as np
import pytest
from PIL import Image
from seen import words

from gradlab.formatting import bytes_text, short
from gradlab.scenes import kinds as scene
from gradlab.scenes.kinds import (
    Arrow,
    Arrows,
    Bar,
    Bars,
    Boundary,
    Contours,
    Curve,
    Fit,
    Landscape,
    Memory,
    Samples,
    ScalerHistory,
    Slice,
)
from gradlab.views import Canvas, comparison_figure, compose, palette, panel_for
from gradlab.views.bars import batches_text, fresh_and_stale
from gradlab.views.limits import AxisScale, Range, nice_step

pytestmark = pytest.mark.filterwarnings("error")

X, Y = np.linspace(-3, 3, 21), np.linspace(-2, 2, 15)
BOWL = Contours(X.tolist(), Y.tolist(), (X[None] ** 2 + 4 * Y[:, None] ** 2).tolist(), ("slope", "bias"))
NAN, INF = math.nan, math.inf


def curve(count: int, **more: Any) -> Curve:
    """Return a falling loss over so many updates."""
    at = np.arange(1, count + 1)
    mean = 0.3 + np.exp(-at / 40) + 0.1 * np.sin(at)
    return Curve(at.tolist(), mean.tolist(), (mean * 0.9).tolist(), (mean * 1.1).tolist(), **more)


def arrows(stale: bool, scale: float = 1.0) -> Arrows:
    """Return two arrows, the first of them stale or not."""
    two = [Arrow(3, -scale, 2 * scale, stale), Arrow(4, -2 * scale, scale, False)]
    return Arrows(BOWL, (-1.0, 0.5), two, (-scale, 0.0), (-4 * scale, 3 * scale))


def boundary(label: int = 1) -> Boundary:
    """Return a plane cut in two, with three points."""
    grid = np.linspace(-1, 1, 9)
    labels = [[label if x > 0 else 0 for x in grid] for _ in grid]
    sure = [[0.5 + abs(x) / 2 for x in grid] for _ in grid]
    return Boundary(
        grid.tolist(), grid.tolist(), labels, sure, [(0.5, 0.5), (-0.5, 0), (0.3, -0.4)], [label, 0, 1], 0.9
    )


def memory(peak: int = 90_000) -> Memory:
    """Return one update of four statements."""
    return Memory(
        ["zero_grad", "forward", "backward", "step"],
        range(4),
        {
            "weights": [40_000] * 4,
            "gradients": [0, 0, 40_000, 40_000],
            "activations": [0, peak, 100, 0],
            "odd": [9] * 4,
        },
        [(0, 41)],
        allocated=150_000,
        reserved=200_000,
    )


DIGITS = np.random.default_rng(0).random((6, 8, 8)).tolist()
PAIRS: list[tuple[Any, Any]] = [
    (curve(50), curve(60, switches=((20, "zero_grad off"), (22, "lr 0.3")))),
    (arrows(True), arrows(False, 0.8)),
    (Bars([Bar("w", 2, 1, 3), Bar("b", 1, 1, 0)], [(1, 4)]), Bars([Bar("w", 1.5, 1, 4), Bar("b", 1, 20, 9)], [(1, 5)])),
    (Landscape(BOWL, [(-2, 1), (-1, 0.4)]), Landscape(BOWL, [(-2, 1), (-1, 0.4), (0.3, -0.2)])),
    (Slice([0, 0.1, 0.2], [1, 0.5, 0.7], 0.1), Slice([0, 0.1, 0.2], [0.9, 0.4, 0.6], 0.1)),
    (
        ScalerHistory([1, 2], [65536, 32768], [1], [0.1, 0.2]),
        ScalerHistory([1, 2, 3], [65536, 32768, 32768], [1], [0, 0, 1]),
    ),
    (boundary(), boundary(2)),
    (Samples(DIGITS, [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 7], 0.8), Samples(DIGITS, [1] * 6, [1, 2, 3, 4, 5, 7], 0.2)),
    (memory(), memory(70_000)),
    (
        Fit([("now", {"weights": 9})], [("T4", 20)]),
        Fit([("before", {"weights": 9}), ("now", {"odd": 12})], [("T4", 20)]),
    ),
]
NAMES = [type(first).__name__ for first, _ in PAIRS]
DEGENERATE: list[Any] = [
    Curve([], [], [], []),
    Curve([1], [0.5], [0.5], [0.5]),
    Curve([1, 2], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]),
    Curve([1, 2, 3], [1, INF, NAN], [1, INF, NAN], [1, NAN, INF], broken=2),
    Curve([1, 2, 3], [1e-30, 1e30, 1e308], [0, 1, 1], [1, 1e30, 1e308]),
    Curve(
        [1, 2],
        [-5, 1e-320],
        [-5, 0],
        [-5, 0],
        switches=tuple((1, "a very long name of a switch" * 2) for _ in range(50)),
    ),
    Curve([], [], [], [], broken=1),
    Arrows(BOWL, (0, 0), []),
    Arrows(BOWL, (NAN, INF), [Arrow(1, NAN, INF, True)], (NAN, 0), (INF, 0)),
    Arrows(BOWL, (1e30, 0), [Arrow(1, 1e308, 1e308, False), Arrow(2, 1e308, -1e308, True)], (1e-300, 0), (1e308, 1)),
    Arrows(Contours([0, 1], [0, 1], [[2, 2], [2, 2]]), (0, 0), [Arrow(1, 0, 0, False)]),
    Arrows(Contours([], [], []), (0, 0), [Arrow(1, 1, 1, False)] * 300),
    Landscape(Contours([1], [1], [[1]]), []),
    Landscape(Contours([0, 1], [0, 1], [[NAN, INF], [1e30, 1]]), [(0, 0), (NAN, NAN)]),
    Landscape(Contours([0, 1, 2], [0, 1, 2], [[1, 2, 3], [1e308, 2, 3], [0, 0, NAN]]), [(1e300, -1e300)]),
    Bars([]),
    Bars([Bar("w", NAN, 1, 0), Bar("b", INF, 0, 2), Bar("$x_$", 1e308, 100, 100), Bar("z", 0, 0, 0)]),
    Bars([Bar(f"{n}.weight", 0.0, 0, 0) for n in range(300)], [(n, n) for n in range(1, 99, 2)]),
    Bars([Bar(f"{n}.weight", 1e308, 1, 1) for n in range(300)]),
    Slice([], [], 0.1),
    Slice([0.0], [1.0], 0.1),
    Slice([0, 1, 2], [NAN, INF, 1e30], 1e30),
    Slice([0, 1], [2, 2], 0.5),
    ScalerHistory([], [], [], []),
    ScalerHistory([1, 2, 3], [0, INF, 2.0**-20], [1, 2, 9], [NAN, 2, -1]),
    ScalerHistory([1], [2.0**120], [1], [0]),
    Boundary([], [], [], [], [], [], NAN),
    Boundary([0], [0], [[3]], [[NAN]], [(0, 0)], [17], 1.0),
    Boundary([0, 1], [0, 1], [[0, 0], [0, 0]], [[1, 1], [1, 1]], [(NAN, 1e30)], [0], 0.0),
    Samples([], [], [], NAN),
    Samples(DIGITS * 9, list(range(54)), list(range(54)), 1.0),
    Samples([[[NAN] * 8] * 8], [1], [2], 0.0),
    Memory([]),
    Memory(["step"]),
    Memory(["step"], [0], {}, [(0, 1)]),
    Memory(["a", "b"], [0, 1], {"weights": [0, 0], "gradients": []}),
    Memory(["a"] * 70, range(70), {"weights": [10**15] * 70, "optimizer": [10**30] * 70}, allocated=10**18, reserved=0),
    Memory(["a", "b"], [5, -3], {"weights": [1, NAN, INF]}, [(-1, 1), (1, 2), (9, 3)], ["m"], ("T4", 0)),
    Fit([], []),
    Fit([("a" * 80, {})] * 9, [("T4", 0), ("b" * 80, 10**30)]),
    Fit([("a", {"weights": 10**300, "odd": 1}), ("", {"other": -5})], [("T4", 1)] * 30, "a title" * 40),
]


def draw(shown: Any, panel: Canvas[Any] | None = None) -> Any:
    """Return the RGB pixels of a scene."""
    panel = panel or panel_for(type(shown))()
    panel.update(shown)
    return panel.pixels()[..., :3].copy()


def near(pixels: Any, colour: str, far: int = 12) -> int:
    """Count the pixels of about this colour."""
    target = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)])
    return int((np.abs(pixels.astype(int) - target).max(axis=2) <= far).sum())


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=NAMES)
def test_a_blitted_frame_is_a_full_draw(first: Any, second: Any) -> None:
    """Moving artists over a kept background gives what matplotlib gives when it draws everything."""
    panel = panel_for(type(first))()
    draw(first, panel)
    blitted = draw(second, panel)
    moving = panel.figure.findobj(lambda artist: artist.get_animated())
    assert moving
    for artist in moving:
        artist.set_animated(False)
    canvas: Any = panel.figure.canvas
    canvas.draw()
    whole = np.asarray(canvas.buffer_rgba())[..., :3]
    assert np.array_equal(blitted, whole)


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=NAMES)
def test_a_png_shows_the_scene_and_is_kept(first: Any, second: Any) -> None:
    """The PNG has the real size and nearly the drawn colours, and changes exactly when the scene does."""
    panel = panel_for(type(first))(400, 260)
    panel.update(first)
    png = panel.png()
    assert panel.png() is png
    panel.update(type(first)(**vars(first)))
    assert panel.png() is png
    image = Image.open(io.BytesIO(png))
    image.verify()
    shown = np.array(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    assert shown.shape == (520, 800, 3)
    assert len(np.unique(shown.reshape(-1, 3), axis=0)) <= 64
    off = np.abs(shown - panel.pixels()[..., :3]).max(axis=2)
    assert (off > 40).mean() < 0.005
    panel.update(second)
    assert panel.png() != png


@pytest.mark.parametrize("shown", DEGENERATE, ids=[f"{type(s).__name__}{n}" for n, s in enumerate(DEGENERATE)])
def test_any_numbers_draw(shown: Any) -> None:
    """Nothing, one point, zeros, NaN, inf and huge values draw without a warning, also after a usual scene and back."""
    usual = next(first for first, _ in PAIRS if type(first) is type(shown))
    panel = panel_for(type(shown))(300, 200, 1)
    for one in (shown, usual, shown):
        panel.update(one)
        assert panel.png()


def test_stale_is_seen_only_when_there_is_some() -> None:
    """Outside the key, the stale colour appears exactly when a batch was used before; so does its label."""
    assert near(draw(arrows(False))[:, :600], palette.STALE) == 0
    assert near(draw(arrows(True))[:, :600], palette.STALE) > 50
    assert near(draw(Bars([Bar("w", 2, 3, 0)]))[130:], palette.STALE) == 0
    assert near(draw(Bars([Bar("w", 2, 3, 1)]))[130:], palette.STALE) > 500


def test_a_bar_is_shared_out_by_counts() -> None:
    """Fresh and stale take lengths in proportion to their batches."""
    pixels = draw(Bars([Bar("w", 2, 4, 0)]))[130:440]
    whole = near(pixels, palette.FRESH)
    half = near(draw(Bars([Bar("w", 2, 2, 2)]))[130:440], palette.FRESH)
    assert half == pytest.approx(whole / 2, rel=0.06)
    assert fresh_and_stale(Bar("w", 1, 30, 10)) == [(0.0, 0.25, True), (0.25, 1.0, False)]
    assert [part[2] for part in fresh_and_stale(Bar("w", 1, 1, 3))] == [True, True, True, False]


def test_memory_areas_have_the_area_of_their_bytes() -> None:
    """Twice the bytes fill twice the pixels."""
    tint = "#{:02x}{:02x}{:02x}".format(*(round(255 * c) for c in palette.tint(palette.WEIGHTS, 0.5)))
    both = [
        near(draw(Memory(["a", "b"], [0, 1], {"weights": [n] * 2, "other": [200 - n] * 2})), tint, 2) for n in (50, 100)
    ]
    assert both[1] == pytest.approx(2 * both[0], rel=0.08)  # the outlines cover some of each


def test_a_broken_curve_ends_and_says_so() -> None:
    """After the update that broke, nothing is drawn, and the panel carries its number."""
    panel: Any = panel_for(Curve)()
    panel.update(curve(50, broken=30))
    x, y = max((line.get_data() for line in panel.axes.lines), key=lambda data: len(data[0]))
    assert len(x) == 50
    assert np.isnan(y[x > 30]).all()
    assert np.isfinite(y[x <= 30]).all()
    assert words(panel, ".*NaN.*") == ["inf or NaN from update 30"]


def test_backgrounds_are_redrawn_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over 500 growing updates the frame is drawn anew a few times an order of magnitude."""
    panels = {kind: panel_for(kind)() for kind in (Curve, Bars, Arrows, Memory)}
    due: set[type] = set(panels)
    for kind, panel in panels.items():
        # A frame without a new background is not drawn here: it would take time and change nothing.
        monkeypatch.setattr(panel, "refresh", lambda kind=kind, refresh=panel.refresh: (due.add(kind), refresh()))
    for update in range(1, 501):
        for shown in (
            curve(update),
            Bars([Bar("w", 1 + update / 100, 1, update % 5)], [(1, update)]),
            arrows(True, 1 + 0.3 * math.sin(update / 9)),
            memory(90_000 + update),
        ):
            panel = panels[type(shown)]
            panel.update(shown)
            if type(shown) in due:
                panel.pixels()
                due.discard(type(shown))
    assert panels[Curve].redraws <= 30
    assert panels[Bars].redraws <= 8
    assert panels[Arrows].redraws <= 4
    assert panels[Memory].redraws <= 2


def test_limits_hold_the_data_and_do_not_flicker() -> None:
    """A wobble of the data moves no limit; the choice between linear and log has two thresholds."""
    kept = Range(floor=0.0)
    assert len({kept.fit([0.0, 70 + 10 * math.sin(n)]) for n in range(100)}) <= 2
    for value in (1e-300, 3e-7, 0.999, 1.0, 41, 1e299):
        assert value <= nice_step(value) * (1 + 1e-9)
        assert nice_step(value) <= 2.01 * value
    scale = AxisScale()
    chosen = []
    for top in (100, 299, 301, 100, 31, 29, 100):
        low, high = scale.fit(np.array([1.0, top]))
        assert low <= 1
        assert high >= top
        chosen.append(scale.log)
    assert chosen == [False, False, True, True, True, False, False]


def test_the_learners_own_settings_change_nothing() -> None:
    """Dark style sheets and odd fonts in rcParams leave the picture as it is, and stay as they are."""
    for first, second in PAIRS:
        plain = draw(first)
        odd = {
            "text.color": "red",
            "axes.facecolor": "black",
            "font.size": 30,
            "xtick.labelsize": 22,
            "axes.grid": True,
        }
        with matplotlib.rc_context(odd):
            panel = panel_for(type(first))()
            draw(second, panel)
            assert np.array_equal(draw(first), plain)
            assert matplotlib.rcParams["font.size"] == 30


def test_every_scene_has_a_panel() -> None:
    """Each class of the Scene union is drawn; anything else is refused by name."""
    for kind in scene.Scene.__args__:  # type: ignore[attr-defined]
        assert issubclass(panel_for(kind), Canvas)
    with pytest.raises(TypeError, match="int"):
        panel_for(int)


def test_compose_pastes_and_comparison_names_every_curve() -> None:
    """A sheet is as large as its parts; a comparison draws each curve in a colour of its own."""
    one = panel_for(Curve)(200, 100)
    one.update(curve(5))
    sheet = Image.open(io.BytesIO(compose([one.png()] * 3, 2))).convert("RGB")
    assert sheet.size == (800, 400)
    pasted = Image.open(io.BytesIO(one.png())).convert("RGB")
    assert np.abs(np.array(sheet)[:200, :400].astype(int) - np.array(pasted)).max() <= 8
    assert compose([], 2)
    with pytest.raises(ValueError, match="columns"):
        compose([], 0)
    empty = Curve([], [], [], [])
    png = comparison_figure({"a": curve(90), "b": curve(80), "none": empty, "bad": curve(50, broken=9)}, "two loops")
    pixels = np.array(Image.open(io.BytesIO(png)).convert("RGB"))
    assert all(near(pixels, colour) > 20 for colour in (palette.LOSS, palette.WEIGHTS, palette.OPTIMIZER))
    assert comparison_figure({}, "nothing")


def test_numbers_are_written_short() -> None:
    """Formatters give few characters and the right unit."""
    assert [short(v) for v in (0, 0.31, 12.44, 1500, 25_000, 1e30, -2.5, INF, NAN)] == [
        "0", "0.31", "12.4", "1500", "25k", "1e30", "\u22122.5", "inf", "NaN",
    ]  # fmt: skip
    assert [bytes_text(v) for v in (0, 512, 24.1 * 1024, 1024**3)] == ["0 B", "512 B", "24.1 KiB", "1 GiB"]
    assert batches_text([(38, 41)]) == "holds batches 38\u201341"
    assert batches_text([(7, 7)]) == "holds batch 7"


def test_neither_pyplot_nor_torch_is_imported() -> None:
    """Drawing a frame leaves pyplot and torch alone."""
    code = (
        "import sys\nfrom gradlab.views import panel_for\nfrom gradlab.scenes import Curve\n"
        "p = panel_for(Curve)()\np.update(Curve([1], [1], [1], [1]))\np.png()\n"
        "print([m for m in ('matplotlib.pyplot', 'torch', 'IPython') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_warnings_are_errors_here() -> None:
    """The mark above works: without it the degenerate cases would prove little."""
    with pytest.raises(UserWarning, match="seen"):
        warnings.warn("seen", stacklevel=1)
