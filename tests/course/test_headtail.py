"""Arrows head to tail: where they begin and end, and what they look like."""

from __future__ import annotations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from gradlab.course.figures.headtail import head_to_tail
from gradlab.drawing import FRESH, GRADIENTS, WEIGHTS


@pytest.fixture
def axes():
    figure = Figure()
    FigureCanvasAgg(figure)
    made = figure.add_subplot()
    made.set(xlim=(-5, 5), ylim=(-5, 5))
    return made


def ends(axes):
    return [[tuple(map(float, end)) for end in patch._posA_posB] for patch in axes.patches]


def test_each_begins_where_the_one_before_it_ends(axes) -> None:
    assert head_to_tail(axes, [1.0, 2.0], [[2.0, 1.0], [-1.0, 0.5]], ["one", "two"]) == (2.0, 3.5)
    assert ends(axes) == [[(1.0, 2.0), (3.0, 3.0)], [(3.0, 3.0), (2.0, 3.5)]]
    assert [text.get_text() for text in axes.texts] == ["one", "two"]
    axes.figure.canvas.draw()


def test_no_arrow_where_there_is_no_way_to_go(axes) -> None:
    assert head_to_tail(axes, (0, 0), [(0, 0), (1, 0)], ["nothing", "one"]) == (1, 0)
    assert ends(axes) == [[(0, 0), (1, 0)]]
    assert [text.get_text() for text in axes.texts] == ["one"]


@pytest.mark.parametrize(("kind", "colour"), [("fresh", FRESH), ("step", WEIGHTS)])
def test_a_kind_has_its_colour(axes, kind: str, colour: str) -> None:
    head_to_tail(axes, (0, 0), [(1, 1)], ["x"], kind)
    assert to_hex(axes.patches[0].get_facecolor()).upper() == colour.upper()


@pytest.mark.parametrize("kind", ["sum", "cut"])
def test_what_is_no_contribution_is_hollow(axes, kind: str) -> None:
    head_to_tail(axes, (0, 0), [(1, 1)], ["x"], kind)
    assert axes.patches[0].get_facecolor()[3] == 0
    if kind == "sum":
        assert to_hex(axes.patches[0].get_edgecolor()).upper() == GRADIENTS


def test_names_stand_outside_the_route(axes) -> None:
    head_to_tail(axes, (0, 0), [(2, 0), (0, 2)], ["below", "right"])
    below, right = axes.texts
    assert below.xyann[1] < 0
    assert right.xyann[0] > 0


def test_as_many_names_as_arrows(axes) -> None:
    with pytest.raises(ValueError, match="shorter"):
        head_to_tail(axes, (0, 0), [(1, 1), (1, 0)], ["x"])
