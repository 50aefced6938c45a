"""The still picture of a lab: its loop, its words and its panels, and nothing that leaves it or covers another."""

from __future__ import annotations

import base64
import io
import itertools
from typing import Any

import pytest
import torch
from PIL import Image

from gradlab import Lab, Recipe
from gradlab.drawing import Drawing, Listing, Placed

torch.set_num_threads(1)
LABS: dict[str, Any] = {
    "one panel": lambda: Lab("digits", panels=["memory"]).run(3).run_statements(6),
    "two panels": lambda: Lab("digits", Recipe(lr=0.2), panels=["held-out loss", "gradient"]).run(30),
    "three panels": lambda: Lab("digits", panels=["loss", "gradient", "memory"]).run(20),
    "forgotten": lambda: Lab("digits", Recipe(lr=0.2)).run(20).switch(zero_grad=False).run(8),
    "all switches": lambda: Lab("digits", Recipe(accumulate=3, amp="fp16", clip=1.0, zero_grad=False)).run(3),
    "untouched": lambda: Lab("bowl"),
}


def loop_in(still: list[Placed]) -> Listing:
    """The loop."""
    return next(each.drawing for each in still if isinstance(each.drawing, Listing) and each.drawing.source)


@pytest.fixture(params=LABS)
def lab(request: pytest.FixtureRequest) -> Lab:
    built: Lab = LABS[request.param]()
    return built


def test_it_holds_the_loop_the_words_and_every_panel(lab: Lab) -> None:
    still = lab.model.still()
    loop = loop_in(still)
    assert loop.source == lab.runner.source
    *note, status = loop.sentences
    assert note == [text for text in [lab.model.note] if text]
    assert status.partition(" \u00b7 loss scale")[0] == f"update {lab.runner.updates:,}"
    panels = [each.drawing for each in still if isinstance(each.drawing, Drawing)]
    assert [each.title for each in panels] == [each.title for each in lab.model.drawings()]
    warnings = [each.drawing for each in still if isinstance(each.drawing, Listing) and not each.drawing.source]
    assert [[*each.sentences] for each in warnings] == ([[lab.warning]] if lab.warning else [])


def test_the_line_that_ran_is_lit_and_what_changed_is_marked() -> None:
    lab = LABS["forgotten"]()
    loop = loop_in(lab.model.still())
    lines = lab.runner.source.splitlines()
    assert [*loop.lit] == [lines.index("        optimizer.step()") + 1]
    assert [*loop.changed] == [next(number for number, line in enumerate(lines, 1) if "# optimizer.zero_grad" in line)]


def test_every_row_is_full_and_nothing_covers_another(lab: Lab) -> None:
    placed = lab.model.still()
    wide = max(each.left + each.width for each in placed)
    for each in placed:
        row = [other for other in placed if other.top <= each.top < other.top + other.height]
        assert max(other.left + other.width for other in row) == wide == 930, "no holes"
    for item, other in itertools.combinations(placed, 2):
        beside = item.left + item.width <= other.left or other.left + other.width <= item.left
        assert beside or item.top + item.height <= other.top or other.top + other.height <= item.top


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one panel", "all switches"])
def test_it_is_as_wide_as_a_lab_and_its_png_tells_so(name: str) -> None:
    data, more = LABS[name]()._repr_mimebundle_()
    wide, tall = Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).size
    assert more["image/png"]["width"] == wide // 2 == 930
    assert tall // 2 <= 660
