"""The still picture of a lab: its loop, its words and its panels, and nothing that leaves it or covers another."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from typing import Any

import pytest
import torch
from labels_apart import check_labels, wide
from PIL import Image

from gradlab import Lab, Recipe
from gradlab.drawing import Drawing, Text
from gradlab.widgets.still import Still, still_of

torch.set_num_threads(1)
LABS: dict[str, Any] = {
    "one panel": lambda: Lab("digits", panels=["memory"]).run(3).step(6),
    "two panels": lambda: Lab("digits", Recipe(lr=0.2), panels=["held-out loss", "gradient"]).run(30),
    "three panels": lambda: Lab("digits", panels=["loss", "gradient", "memory"]).run(20),
    "forgotten": lambda: Lab("digits", Recipe(lr=0.2)).run(20).switch(zero_grad=False).run(8),
    "all switches": lambda: Lab("spiral", Recipe(accumulate=3, amp="fp16", clip=1.0, zero_grad=False)).run(3),
    "untouched": lambda: Lab("bowl"),
}


def written(drawing: Drawing, begin: str) -> str:
    """What stands in the marks whose ids begin so, without the breaks."""
    texts = [mark.text.strip() for mark in drawing.marks if isinstance(mark, Text) and mark.id.startswith(begin)]
    return "".join("".join(texts).split())


@pytest.fixture(params=LABS)
def lab(request: pytest.FixtureRequest) -> Lab:
    made: Lab = LABS[request.param]()
    return made


def test_it_holds_the_loop_the_words_and_every_panel(lab: Lab) -> None:
    still = still_of(lab.controller)
    assert written(still.loop, "code") == "".join(lab.runner.source.split())
    status = lab.text.splitlines()[0].partition(": ")[2]
    assert written(still.loop, "words") == "".join((lab.controller.note + status).split())
    assert [drawing.title for drawing in still.panels] == [each.title for each in lab.controller.drawings()]
    assert (still.chip is not None) == bool(lab.warning)
    if still.chip is not None:
        assert lab.warning in still.chip.texts()[0]


def test_the_line_that_ran_is_lit_and_what_a_switch_changed_is_marked() -> None:
    lab = LABS["forgotten"]()
    loop = still_of(lab.controller).loop
    lines = lab.runner.source.splitlines()
    marked = {mark.id: mark.text for mark in loop.marks if isinstance(mark, Text) and mark.id.startswith("sign")}
    assert marked[f"sign {lines.index('        optimizer.step()') + 1}"] == "\u25b6"
    forgotten = next(at for at, line in enumerate(lines, 1) if "# optimizer.zero_grad" in line)
    assert marked[f"sign {forgotten}"] == "\u2217"
    assert sorted(filter(None, marked.values())) == ["\u2217", "\u25b6"]


def rows(still: Still) -> list[int]:
    """The width of each row: the loop stands in the first one, or from three panels on at the left of all."""
    drawings = (
        still.panels if len(still.panels) > 3 else [replace(still.loop, width=still.loop.width + 10), *still.panels]
    )
    return [sum(each.width for each in drawings[at : at + 2]) for at in range(0, len(drawings), 2)]


def test_every_row_is_full_and_nothing_is_cut(lab: Lab) -> None:
    still = still_of(lab.controller)
    assert len(set(rows(still))) == 1, "no holes"
    assert all("\u2026" not in text for each in still.panels for text in each.texts())
    for each in still.panels:
        check_labels(each)
    for mark in still.loop.marks:
        if isinstance(mark, Text) and mark.id.startswith("words"):
            assert mark.x + wide(mark.text, mark.size, False) <= still.loop.width, "on its side of the panels"


def test_it_is_as_wide_as_a_lab_and_its_png_tells_so(lab: Lab) -> None:
    data, more = lab._repr_mimebundle_()
    wide, tall = Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).size
    assert more["image/png"]["width"] == wide // 2 == 930
    assert tall // 2 <= 660
