"""The front end: format, lint, types and tests by deno, and a comparison with Python where both do the same."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest
from page import Page, PanelSeen, lines_of

from gradlab import Lab, Recipe
from gradlab.drawing import Axis, Band, Drawing, Encoder, Image, Path, Readout
from gradlab.formatting import short

ROOT = File(__file__).resolve().parents[2]
FRONT = ROOT / "gradlab" / "front"
HERE = File(__file__).parent


def deno(*arguments: Any, text: str | None = None) -> str:
    """Run deno with the settings of the front end; fail with what it says."""
    binary = File(sys.prefix) / "bin" / "deno"
    command = [str(binary) if binary.exists() else shutil.which("deno") or "deno"]
    command += [str(argument) for argument in arguments]
    done = subprocess.run(
        [*command[:2], f"--config={FRONT / 'deno.json'}", *command[2:]],
        input=text,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    return done.stdout


def modules(*folders: File) -> list[File]:
    found = sorted(file for folder in folders for file in folder.glob("*.js"))
    assert len(found) >= len(folders)
    return found


@pytest.mark.parametrize("check", [("fmt", "--check"), ("lint",), ("check",)], ids=["format", "lint", "types"])
def test_javascript_is_sound(check: tuple[str, ...]) -> None:
    deno(*check, *modules(FRONT, HERE, ROOT / "site" / "static"))


def test_javascript_does_what_its_tests_say() -> None:
    deno("test", "--no-check", "--quiet", HERE)


def test_every_module_asks_for_its_types_to_be_checked() -> None:
    for module in modules(FRONT, HERE):
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
    written = json.loads(deno("run", HERE / "numbers.js", text=json.dumps(numbers)))
    assert dict(zip(numbers, written, strict=True)) == {number: short(number) for number in numbers}


# The wire -------------------------------------------------------------------------------------------------------------


LIFTED = (1.0, 2.0, 3.5, 4.1, math.nan, math.nan, -5.0, 6.0)


def messages() -> Iterator[dict[str, Any]]:
    """What a lab sends of its panels, one panel after the other, and some drawings with marks that come and go."""
    lab = Lab("bowl", Recipe(zero_grad=False), panels=["loss", "gradient", "landscape", "memory"])
    page = Page(lab)
    frames = list(page.frames)
    for act in (lambda: page.turn("amp", "fp16"), lambda: page.ask("frames", count=9, every=16, updates=1)):
        frames += act().frames
        frames += page.ask("statement").frames
    for name in page.panels:
        yield from (frame["panels"][name] for frame in frames if name in frame.get("panels", {}))
    path = Path("path", np.array(LIFTED), stroke="loss", words="the \u221e loss")
    band = Band("band", np.array([*LIFTED, math.nan]))
    image = Image("image", 4.0, 4.0, 4.0, 4.0, 3, list(range(9)), ("ink",) * 9)
    encoder = Encoder()
    longer = Path("path", np.array([*LIFTED, 7.0, 8.0]), readout=Readout("at {x}", Axis(2, 0.5), Axis(0, 1, True)))
    for marks in ([path, band], [band, image, path], [longer, image], [], [path]):
        yield encoder.change(Drawing("all marks", tuple(marks)))


def flat(mark: dict[str, Any]) -> list[float | None] | None:
    """The points of a mark as the browser holds them: a lifted pen is a point of nothing."""
    if "p" not in mark:
        return None
    lifted = [None] * (3 if mark["k"] == "b" else 2)
    lines = [[number for point in line for number in point] for line in lines_of(mark)]
    return [number for at, line in enumerate(lines) for number in ([*lifted, *line] if at else line)]


def test_the_browser_reads_what_the_description_says() -> None:
    sent = [json.dumps(message) for message in messages()]
    states = filter(None, deno("run", HERE / "decode.js", text="\n".join(sent)).split("\n"))
    panel = None
    for message, state in zip(map(json.loads, sent), map(json.loads, states), strict=True):
        panel = PanelSeen(message) if "marks" in message or panel is None else panel.changed(message)
        assert (state["title"], state["words"], state["size"]) == (panel.title, panel.words, panel.size)
        assert state["ids"] == panel.ids
        assert state["points"] == [flat(mark) for mark in panel.marks]
        assert state["fields"] == [{key: mark[key] for key in mark if key != "p"} for mark in panel.marks]
