"""The front end: format, lint, types and tests by deno, and a comparison with Python where both do the same."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradlab.drawing.marks import Axis, Band, Dots, Drawing, Image, Mark, Path, Readout, Text, told
from gradlab.drawing.wire import Encoder
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
    deno(*check, *modules(FRONT, HERE))


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
                assert re.match(ways, line) or module.name in ("start.js", "lab.js", "instrument.js", "bet_live.js"), (
                    f"{module.name}: {line}"
                )
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


def test_numbers_that_json_has_not() -> None:
    script = f"import {{ shortNumber }} from '{(FRONT / 'numbers.js').as_uri()}';"
    said = deno("eval", script + "console.log([NaN, Infinity, -Infinity].map(shortNumber).join())").strip()
    assert said == ",".join(map(short, (math.nan, math.inf, -math.inf)))


@given(st.floats(min_value=5e-4, max_value=9e5))
def test_a_number_is_short_and_near(value: float) -> None:
    text = short(value)
    assert len(text) <= 6, text
    assert float(text.replace("k", "e3")) == pytest.approx(value, rel=0.006), text


# The wire -------------------------------------------------------------------------------------------------------------


def _points(each: int) -> st.SearchStrategy[Any]:
    place = st.one_of(st.floats(-3000, 3000), st.just(math.nan))
    return st.lists(st.lists(place, min_size=each, max_size=each), max_size=12).map(
        lambda rows: np.array(rows, dtype=float).reshape(-1)
    )


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=8)
AXES = st.builds(Axis, st.floats(-10, 10), st.floats(0.1, 2), st.booleans())
MARKS: dict[str, st.SearchStrategy[Mark]] = {
    "path": st.builds(
        Path,
        st.just("path"),
        _points(2),
        stroke=st.sampled_from(["", "loss"]),
        words=TEXTS,
        readout=st.none() | st.builds(Readout, TEXTS, AXES, AXES),
    ),
    "band": st.builds(Band, st.just("band"), _points(3), fill=st.sampled_from(["", "grey/33"])),
    "dots": st.builds(Dots, st.just("dots"), _points(2), size=st.integers(1, 40).map(float)),
    "text": st.builds(Text, st.just("text"), st.integers(0, 400).map(float), st.just(3.5), TEXTS, bold=st.booleans()),
    "image": st.builds(
        Image,
        st.just("image"),
        *[st.just(4.0)] * 4,
        st.just(3),
        st.lists(st.integers(0, 40), max_size=9),
        st.just(("ink",)),
    ),
}
DRAWINGS = st.lists(st.sampled_from(sorted(MARKS)), unique=True).flatmap(
    lambda names: st.builds(Drawing, TEXTS, st.tuples(*(MARKS[name] for name in names)), TEXTS)
)
"""Drawings with some of five marks: where two that follow each other have the same, a change is sent."""


def expected_points(mark: Any) -> list[float | None] | None:
    """What a mark's points are to the browser: rounded to quarters, a lifted pen once, none at either end."""
    if not hasattr(mark, "points"):
        return None
    each = 3 if isinstance(mark, Band) else 2
    out: list[float | None] = []
    for row in np.asarray(mark.points, dtype=float).reshape(-1, each):
        if np.isfinite(row).all():
            out += (np.rint(row * 4) / 4).tolist()
        elif out and out[-1] is not None:
            out += [None] * each
    while out and out[-1] is None:  # a pen that is lifted at the end draws nothing
        out.pop()
    return out


@settings(max_examples=8, deadline=None)
@given(st.lists(DRAWINGS, min_size=20, max_size=40))
def test_what_is_sent_is_what_is_painted(drawings: list[Drawing]) -> None:
    encoder = Encoder()
    sent = "\n".join(json.dumps(encoder.change(drawing)) for drawing in drawings)
    states = [json.loads(line) for line in deno("run", HERE / "decode.js", text=sent).split("\n") if line]
    for drawing, state in zip(drawings, states, strict=True):
        assert (state["title"], state["words"], state["size"]) == (drawing.title, drawing.words, [400, 260])
        assert state["ids"] == [mark.id for mark in drawing.marks]
        for mark, points, fields in zip(drawing.marks, state["points"], state["fields"], strict=True):
            assert points == expected_points(mark), mark
            plain = {name for name, _ in told(mark)} - {"points"}
            assert set(fields) - {"k"} == plain, mark
            if isinstance(mark, (Path, Text)):
                assert fields.get("words", "") == mark.words
            if isinstance(mark, Image):
                assert [ord(cell) - 48 for cell in fields["cells"]] == mark.cells
