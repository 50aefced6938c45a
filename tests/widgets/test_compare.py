"""compare: the same numbers as runs of their own, and clear words for bad input."""

from __future__ import annotations

import base64
import math
import re
from xml.etree import ElementTree

import torch

from gradlab import Recipe, Run, compare, tasks

torch.set_num_threads(1)
TWO = {"as it should be": Recipe(lr=0.01), "forgot zero_grad": Recipe(lr=0.01, zero_grad=False)}


def test_each_row_is_what_a_run_of_its_own_gives() -> None:
    result = compare("line", TWO, updates=50)
    assert [row.label for row in result.rows] == list(TWO)
    for row, recipe in zip(result.rows, TWO.values(), strict=True):
        run = Run(tasks.line(), recipe)
        run.advance(updates=50)
        losses = list(run.record.rows["loss"])
        assert (row.first, row.last) == (losses[0], losses[-1])
        assert (row.lowest, row.worst) == (min(losses), max(losses))
        assert list(result.curves[row.label].mean) == losses


def test_figure_and_table() -> None:
    result = compare(tasks.line(), TWO, updates=20)
    assert result.table.splitlines()[0].split()[0] == "recipe"
    assert len(result.table.splitlines()) == 3
    bundle = result._repr_mimebundle_()
    assert bundle["text/plain"].startswith("line, 20 updates\n")
    assert "<table " in bundle["text/html"]
    heads = re.findall(r"<th scope=col>(.*?)</th>", bundle["text/html"])
    assert len(heads) == 7
    assert all(heads), "a column without a name says nothing to a screen reader"


def test_the_figure_is_dark_where_the_page_says_so() -> None:
    page = compare("line", TWO, updates=5)._repr_mimebundle_()["text/html"]
    image = re.search(r'<img [^>]*style="color-scheme:light;[^>]*src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert image
    svg = base64.b64decode(image[1]).decode()
    ElementTree.fromstring(svg)
    light, dark = (dict(re.findall(r"--(\w+):(#\w+)", part)) for part in svg.split("prefers-color-scheme:dark")[:2])
    assert light.keys() == dark.keys()
    assert set(re.findall(r"var\(--(\w+)\)", svg)) == light.keys(), "each colour has a value"
    assert all(light[name] == f"#{name}" for name in light)
    lightest, darkest = max(light, key=lambda name: int(name, 16)), min(light, key=lambda name: int(name, 16))
    assert int(dark[lightest][1:3], 16) < 0x60 < 0xA0 < int(dark[darkest][1:3], 16), "paper is dark, and ink is light"
    assert '[data-jp-theme-light="false"] .gl-themed' in page


def test_a_run_that_diverges_is_drawn_and_named() -> None:
    result = compare("line", {"wild": Recipe(lr=100.0), "tame": Recipe(lr=0.01)}, updates=80)
    wild, tame = result.rows
    assert wild.diverged is not None
    assert math.isinf(wild.worst)
    assert result.table.splitlines()[0].endswith("diverged")
    assert f"at update {wild.diverged}" in result.table.splitlines()[1]
    assert result.table.splitlines()[2].endswith("no")
    assert tame.diverged is None
