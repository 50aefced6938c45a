"""The still picture of a lab: its loop, its words and its panels, and nothing that leaves it or covers another."""

from __future__ import annotations

import base64
import io
from typing import Any

import pytest
import torch
from labels_apart import check_labels, wide
from PIL import Image

from gradlab import Lab, Recipe
from gradlab.drawing import Drawing, Text
from gradlab.widgets.live import Still

torch.set_num_threads(1)
LABS: dict[str, Any] = {
    "one panel": lambda: Lab("digits", panels=["memory"]).run(3).run_statements(6),
    "two panels": lambda: Lab("digits", Recipe(lr=0.2), panels=["held-out loss", "gradient"]).run(30),
    "three panels": lambda: Lab("digits", panels=["loss", "gradient", "memory"]).run(20),
    "forgotten": lambda: Lab("digits", Recipe(lr=0.2)).run(20).switch(zero_grad=False).run(8),
    "all switches": lambda: Lab("digits", Recipe(accumulate=3, amp="fp16", clip=1.0, zero_grad=False)).run(3),
    "untouched": lambda: Lab("bowl"),
}


def written(drawing: Drawing, begin: str) -> str:
    """What stands in the marks whose ids begin so, without the breaks."""
    texts = [mark.text.strip() for mark in drawing.marks if isinstance(mark, Text) and mark.id.startswith(begin)]
    return "".join("".join(texts).split())


def loop_in(still: Still) -> Drawing:
    """The loop: the first drawing, or from four panels on at the left of all."""
    return still.beside or still.panels[0]


@pytest.fixture(params=LABS)
def lab(request: pytest.FixtureRequest) -> Lab:
    made: Lab = LABS[request.param]()
    return made


def test_it_holds_the_loop_the_words_and_every_panel(lab: Lab) -> None:
    still = lab.model.still()
    assert written(loop_in(still), "code") == "".join(lab.runner.source.split())
    status = lab.text.splitlines()[0].partition(": ")[2]
    assert written(loop_in(still), "words") == "".join((lab.model.note + status).split())
    assert [each.title for each in still.panels if each is not loop_in(still)] == [
        each.title for each in lab.model.drawings()
    ]
    assert (still.above is not None) == bool(lab.warning)
    if still.above is not None:
        assert lab.warning in still.above.texts()[0]


def test_the_line_that_ran_is_lit_and_what_changed_is_marked() -> None:
    lab = LABS["forgotten"]()
    loop = loop_in(lab.model.still())
    lines = lab.runner.source.splitlines()
    marked = {mark.id: mark.text for mark in loop.marks if isinstance(mark, Text) and mark.id.startswith("sign")}
    assert marked[f"sign {lines.index('        optimizer.step()') + 1}"] == "\u25b6"
    forgotten = next(at for at, line in enumerate(lines, 1) if "# optimizer.zero_grad" in line)
    assert marked[f"sign {forgotten}"] == "\u2217"
    assert sorted(filter(None, marked.values())) == ["\u2217", "\u25b6"]


def test_every_row_is_full_and_nothing_is_cut(lab: Lab) -> None:
    still = lab.model.still()
    rows = [sum(each.width for each in still.panels[at : at + 2]) for at in range(0, len(still.panels), 2)]
    assert len(set(rows)) == 1, "no holes"
    assert all("\u2026" not in text for each in still.panels for text in each.texts())
    for each in still.panels:
        if each is not loop_in(still):
            check_labels(each)
    for mark in loop_in(still).marks:
        if isinstance(mark, Text) and mark.id.startswith("words"):
            assert mark.x + wide(mark.text, mark.size, False) <= loop_in(still).width, "on its side of the panels"


@pytest.mark.parametrize("name", ["one panel", "all switches"])
def test_it_is_as_wide_as_a_lab_and_its_png_tells_so(name: str) -> None:
    data, more = LABS[name]()._repr_mimebundle_()
    wide, tall = Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).size
    assert more["image/png"]["width"] == wide // 2 == 930
    assert tall // 2 <= 660
