"""The loop in a still picture: all of its text is there, inside its frame, broken where a reader would break it."""

from __future__ import annotations

import itertools
import re

import pytest

from gradlab import Recipe
from gradlab.drawing import draw_loop, text_width
from gradlab.drawing.marks import CodeText

SOURCES = [Recipe().source(), Recipe(optimizer="adamw", accumulate=4, amp="fp16", clip=1.0).source(), "a" * 200]


@pytest.mark.parametrize("width", [300, 390, 600])
@pytest.mark.parametrize("source", SOURCES)
def test_every_line_is_there_whole_and_inside(source: str, width: int) -> None:
    codes: dict[int, list[CodeText]] = {}
    for mark in draw_loop(source, [], [], [], width).marks:
        if isinstance(mark, CodeText) and (found := re.fullmatch(r"code (\d+) \d+", mark.id)):
            codes.setdefault(int(found[1]), []).append(mark)
    for number, line in enumerate(source.splitlines(), 1):
        pieces = [mark.text for mark in codes[number]]
        assert "".join([pieces[0], *(piece.lstrip() for piece in pieces[1:])]) == line
        ends = [f"{above[-1]}{below.lstrip()[:1]}" for above, below in itertools.pairwise(pieces)]
        assert "()" not in ends
        # Letters of code are at least as wide as these.
        assert all(mark.x + text_width("n" * len(mark.text), 11.0) <= width for mark in codes[number])
