"""The front end: format, lint, types and tests by deno, numbers as in Python, the layout of real panels."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deno import FRONT, ROOT, TESTS, deno
from drawing.made_scenes import DEGENERATE, USUAL, curve, random_scene
from page import Page

from gradlab import Lab, Recipe
from gradlab.drawing import Encoder, draw, draw_comparison
from gradlab.formatting import short


def modules(*folders: Path) -> list[Path]:
    paths = sorted(file for folder in folders for file in folder.glob("*.js"))
    assert len(paths) >= len(folders)
    return paths


@pytest.mark.parametrize("check", [("fmt", "--check"), ("lint",), ("check",)], ids=["format", "lint", "types"])
def test_javascript_is_sound(check: tuple[str, ...]) -> None:
    deno(*check, *modules(FRONT, TESTS, ROOT / "site" / "static"))


def test_javascript_does_what_its_tests_say() -> None:
    deno("test", "--no-check", "--quiet", TESTS)


def test_every_module_asks_for_its_types_to_be_checked() -> None:
    for module in modules(FRONT, TESTS):
        assert module.read_text(encoding="utf-8").startswith("// @ts-check\n"), module.name


def test_modules_can_be_joined_into_one() -> None:
    """No two modules share a name at their top level; imports and exports can be left out line by line."""
    owners: dict[str, str] = {}
    for module in modules(FRONT):
        for line in module.read_text(encoding="utf-8").splitlines():
            if line.startswith("import"):
                data = r'\w+ from "\.\./drawing/\w+\.json" with \{ type: "json" \}'
                assert re.fullmatch(rf'import (\{{ [\w, ]+ \}} from "\./\w+\.js"|{data});', line), (
                    f"{module.name}: {line}"
                )
            elif line.startswith("export"):
                ways = r"export (async function|function|class|const)\b"
                assert re.match(ways, line) or module.name in ("start.js", "lab.js"), f"{module.name}: {line}"
            top = re.match(r"(?:export )?(?:default )?(?:async )?(?:function\*?|class|const|let) (\w+)", line)
            if top:
                assert owners.setdefault(top[1], module.name) == module.name, (
                    f"{top[1]}: {owners[top[1]]}, {module.name}"
                )
    assert "applyPanel" in owners


# Numbers --------------------------------------------------------------------------------------------------------------

EDGES = [
    0.0, -0.0, 0.125, 0.0005, 0.00049999, 2.125, 2.135, 1.005, 1.015, 99.95, 999.4999, 999.5, 999.96, 1000.5, 1001.5,
    9999.49, 9999.5, 10_050.0, 10_150.0, 12_345.0, 999_499.9, 999_500.0, 1e6, 1.25e7, 1.35e-9, 5e-324, 1.7e308,
]  # fmt: skip


def test_numbers_are_written_as_python_writes_them() -> None:
    random = np.random.default_rng(7)
    spread = 10.0 ** random.uniform(-12, 12, 3000)
    ties = random.integers(1, 8000, 2000) / 8.0  # many lie exactly half way between two of three digits
    numbers = [*EDGES, *(-edge for edge in EDGES), *spread.tolist(), *ties.tolist()]
    written = json.loads(deno("run", TESTS / "numbers.js", text=json.dumps(numbers)))
    assert dict(zip(numbers, written, strict=True)) == {number: short(number) for number in numbers}


# Layout ---------------------------------------------------------------------------------------------------------------


def panels() -> Iterator[dict[str, Any]]:
    """Panels of made-up scenes and of labs, as the browser has them."""
    scenes = [*USUAL, *DEGENERATE, *map(random_scene, range(40))]
    long_names = {f"a run with momentum 0.{count}": curve(100 * count) for count in range(1, 7)}
    drawings = [*map(draw, scenes), draw_comparison(long_names, events={50: "here", 70: "and here"})]
    yield from (Encoder().encode(drawing) for drawing in drawings)
    lab = Lab("bowl", Recipe(zero_grad=False), panels=["loss", "gradient", "landscape", "memory"])
    page = Page(lab).turn("amp", "fp16").play(9)
    for _ in range(4):
        page.ask("statement")
        yield from ({**panel.head, "ids": panel.ids, "marks": panel.marks} for panel in page.panels.values())


@pytest.mark.slow
def test_panels_have_room_for_their_texts_at_all_sizes() -> None:
    """No text is cut or on another, ticks and points are where their numbers are, in narrow and in wide letters."""
    sent = "\n".join(json.dumps(panel, allow_nan=False) for panel in panels())
    assert deno("run", TESTS / "laid_out.js", text=sent) == "0 faults\n"
