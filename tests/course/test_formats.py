"""Pictures of number formats: what is drawn is where it belongs. Oracles: powers of two written by hand."""

from __future__ import annotations

import io
from typing import Any

import matplotlib
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from gradlab.course.figures.formats import MOST_TICKS, range_figure, ticks_figure, vanishing_figure

pytestmark = pytest.mark.filterwarnings("error")

RANGES = {"fp32": (2.0**-149, 2.0**-126, 3.4e38), "fp16": (2.0**-24, 2.0**-14, 65504.0)}
BITS = {"fp32": (8, 23), "fp16": (5, 10)}


def drawn(figure: Figure) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=50)
    return out.getvalue()


def words(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in (*axes.texts, axes.title, axes.xaxis.label)]


def test_a_range_says_its_bits_and_both_its_ends() -> None:
    figure = range_figure(RANGES, BITS, {"1": 1.0, "0.00001": 1e-5})
    assert drawn(figure)
    said = words(figure)
    for word in ("fp32", "fp16", "1 + 8 + 23 bits", "1 + 5 + 10 bits", "65,504", "0.00001"):
        assert word in said, word
    boxes = [patch for patch in figure.axes[0].patches if patch.get_height() > 0.2]
    assert len(boxes) == 32 + 16
    bars = sorted((bar.get_x(), bar.get_width()) for bar in figure.axes[1].patches if round(bar.get_y()) == 1)
    assert bars[0][0] == pytest.approx(-7.22, abs=0.01)  # 2**-24
    assert bars[1][0] == pytest.approx(-4.21, abs=0.01)  # 2**-14
    assert sum(bars[1]) == pytest.approx(4.816, abs=0.01)  # 65504


def test_each_number_is_a_tick_until_there_are_too_many() -> None:
    few, many = [1 + k / 32 for k in range(33)], [1 + k / 1000 for k in range(MOST_TICKS + 1)]
    figure = ticks_figure([("near 1", 1.0, 2.0, {"fp32": 8_388_609, "bf16": many, "fp16": few})])
    assert drawn(figure)
    assert {"near 1", "8,388,609 numbers", "401 numbers", "33 numbers"} <= set(words(figure))
    ticks = [lines for lines in figure.axes[0].collections if isinstance(lines, LineCollection)]
    assert max(len(lines.get_segments()) for lines in ticks) == 33
    assert len(figure.axes[0].patches) == 2  # two blocks


def test_gradients_stand_at_their_power_of_two() -> None:
    sizes = [2.0**-30, 2.0**-30, 2.0**-20, 0.0]
    figure = vanishing_figure({"a": (sizes, [size * 2**16 for size in sizes])}, scale=65536)
    assert drawn(figure)
    assert {"a", "as they are", "x 65,536", "becomes 0", "fewer digits", "inf"} <= {
        *words(figure),
        figure.axes[0].get_title("left"),
    }
    before, after = (patch.get_data() for patch in figure.axes[0].patches if isinstance(patch, StepPatch))
    assert before.values[0] == pytest.approx(2 / 3)  # the zero is left out
    assert (before.edges[0], before.edges[-1]) == (-30, -19)
    assert (after.edges[0], after.edges[-1]) == (-14, -3)


@pytest.mark.parametrize("sizes", [[], [0.0], [float("nan"), float("inf")], [1e-300, 1e300]])
def test_odd_gradients_are_drawn_too(sizes: list[float]) -> None:
    assert drawn(vanishing_figure({"odd": (sizes, sizes)}, scale=2))


def test_a_learners_own_look_changes_nothing() -> None:
    def picture() -> bytes:
        return drawn(ticks_figure([("near 1", 1.0, 2.0, {"fp16": [1.0, 1.5, 2.0]})]))

    plain: Any = picture()
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "lines.linewidth": 9}):
        assert len(picture()) == pytest.approx(len(plain), rel=0.05)
