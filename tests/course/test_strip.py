"""The strip at the end of each core: the same picture, with one more part explained each time."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gradlab.course import update_strip
from gradlab.drawing import Area, Text, to_svg

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = [f"{number:02}" for number in range(13)]


def texts(number: str) -> dict[str, bool]:
    """The texts in a strip, and whether each is bold."""
    (drawing,) = update_strip(number).drawings
    return {mark.texts[0]: mark.bold for mark in drawing.marks if isinstance(mark, Text)}


@pytest.mark.parametrize("number", NUMBERS)
def test_each_explains_more_than_the_one_before(number: str) -> None:
    now, before = texts(number), texts(NUMBERS[NUMBERS.index(number) - 1]) if number != "00" else {}
    assert set(before) < set(now)
    calls = {"zero_grad()", "forward", "backward()", "step()"}
    assert {text for text, bold in now.items() if bold} - calls == set(now) - set(before) - calls - {
        ".grad",
        "next batch",
    }
    (drawing,) = update_strip(number).drawings
    explained = [mark.dash == "" for mark in drawing.marks if isinstance(mark, Area) and mark.id.startswith("tile ")]
    assert explained == [True, number != "00", True, True]


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
def test_all_words_have_room(number: str) -> None:
    """The painter leaves out a text that has none; a path in the SVG has what it writes as a comment."""
    written = re.findall("<!-- (.*?) -->", to_svg(update_strip(number).placed))
    assert set(texts(number)) <= set(written)


@pytest.mark.parametrize("number", NUMBERS)
def test_it_closes_the_core_as_it_is_drawn_today(number: str) -> None:
    (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    ids = [cell["id"] for cell in cells]
    index = ids.index("strip")
    assert "".join(cells[index]["source"]) == f'update_strip("{number}")'
    assert ids.index("recap") < index
    after = [name for name in ids[index + 1 :] if name != "about"]  # 00 tells there what others tell in their titles
    assert after[:2] == ["strip-caption", "deeper"]
    (output,) = cells[index]["outputs"]
    assert "".join(output["data"]["text/plain"]) == repr(update_strip(number))


def test_a_notebook_without_a_strip_is_named() -> None:
    with pytest.raises(ValueError, match=r"update_strip: notebook must be one of 00, .* 12, got '6'"):
        update_strip("6")
