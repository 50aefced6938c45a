"""Notebook 10: it shows the patients that run, and what it says of them comes out."""

from __future__ import annotations

import json
import linecache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gradlab.course.patients.case import patient_case, patient_names
from gradlab.course.patients.run_loop import run_loop
from gradlab.formatting import short

pytestmark = pytest.mark.notebook  # it runs cells of the notebook
NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "10_loop_doctor.ipynb"
SOURCES = {
    cell["id"]: "".join(line for line in cell["source"] if not line.startswith("%"))
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    if cell["cell_type"] == "code"
}


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """Return the names of the notebook."""
    found: dict[str, Any] = {}
    run(found, "setup", "torch", "look")
    return found


def run(names: dict[str, Any], *cells: str) -> None:
    for cell in cells:
        name, text = f"<{cell}>", SOURCES[cell]
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name  # as Jupyter does it
        exec(compile(text, name, "exec"), names)


def test_each_patient_is_read_before_it_is_guessed_and_run() -> None:
    """The loop that the notebook prints is the one that the patient runs."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    order = [cell["id"] for cell in cells]
    patients = [name for name in patient_names() if name != "the-swinging-loss"]
    for number, name in enumerate(patients, 1):
        assert SOURCES[f"p{number}-doctor"] in (f'Patient("{name}")', f'patient_card("{name}")')
        text = "".join(cells[order.index(f"p{number}")]["source"])
        assert f"```python\n{patient_case(name).sick}```" in text
        assert order.index(f"p{number}") < order.index(f"p{number}-guess") < order.index(f"p{number}-doctor")
    first = "".join(cells[order.index("first")]["source"])
    assert patient_case("the-swinging-loss").sick in first


def test_numbers_that_the_words_name() -> None:
    """The norm at the step of patient 5, and the nodes that patient 7 adds at each update."""
    half = patient_case("flat-in-half-precision")
    rows = run_loop(half.loop(half.sick), half.definition.limits).history.rows
    assert {short(row.norm) for row in rows} == {"1.5e\u22125"}
    leak = patient_case("killed-at-night")
    nodes = [row.nodes for row in run_loop(leak.loop(leak.sick), leak.definition.limits).history.rows]
    assert {later - before for before, later in pairwise(nodes[1:])} == {11}


def test_every_answer_is_wrong_somewhere_and_right_somewhere(names: dict[str, Any]) -> None:
    # No position among the four options is always the right one, nor never.
    places = []
    for patient in range(1, 9):
        run(names, f"p{patient}-guess")
        guess = names[f"guess_{patient}"]
        assert len(guess.options) == 4
        places.append(guess.question.answer)
    assert len(set(places)) >= 3


def test_the_digits_say_how_often_a_batch_is_applied(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """The sums of the second cell are those of the last row of the first."""
    run(names, "how-digits")
    last = [int(number) for number in capsys.readouterr().out.splitlines()[-1].split()[:4]]
    run(names, "how-steps")
    two, four = (int(line.split()[-1]) for line in capsys.readouterr().out.splitlines())
    assert (two, four) == (last[1] + last[3], sum(last))


def test_the_doctor_waits_for_a_second_time(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    run(names, "how-wait-run")
    said = capsys.readouterr().out.splitlines()
    assert "nothing yet" in said[0]
    assert "missing-zero-grad" in said[-1]


def test_naming_shows_an_optimizer_that_is_never_used(
    names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run(names, "script-named")
    said = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[1].strip() for line in said] == ["no findings", "never-steps"]


def test_a_healthy_run_may_swing_or_freeze_a_layer(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    run(names, "healthy-swing")
    assert names["report"].codes == []
    assert max(names["rises"]) > 1
    run(names, "frozen")
    said = capsys.readouterr().out.splitlines()[-2:]
    assert said == ["eval() on the BatchNorm: no findings", "eval() on the whole model: hint: eval-mode-left-on"]


def test_training_on_changed_pictures_needs_time_to_pay(
    names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run(names, "p8-change", "p8-robust")
    plain, robust, plain_later, robust_later = (
        int(line.split()[-1].rstrip("%")) for line in capsys.readouterr().out.splitlines()
    )
    assert robust < plain
    assert robust_later > plain_later + 5


def test_what_it_cannot_see(names: dict[str, Any]) -> None:
    run(names, "cannot-labels")
    assert names["report"].codes == []
    run(names, "cannot-meant")
    assert [finding.severity for finding in names["report"]] == ["hint"]


def test_the_script(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    run(names, "script-folder")
    done = eval(SOURCES["script-run"], names)
    assert done.code == 1
    assert [line.split()[1] for line in done.printed.splitlines() if "  at train.py:" in line] == [
        "missing-zero-grad",
        "scheduler-before-optimizer",
    ]
    run(names, "script-mended")
    assert names["codes"] == {"train.py": 1, "mended.py": 0}
    assert capsys.readouterr().out.rstrip().endswith("without a file: 2")


def test_the_loop_of_ones_own(names: dict[str, Any]) -> None:
    loop, _, shown = SOURCES["script-write"].rpartition("\n")
    linecache.cache["<own>"] = len(loop), None, loop.splitlines(keepends=True), "<own>"
    exec(compile(loop, "<own>", "exec"), names)
    patient = eval(shown, names)
    assert [finding.code for finding in patient.outcome().findings] == ["missing-zero-grad"]
    rows = patient.outcome().history.rows
    assert rows[-1].loss < 0.7 * rows[0].loss
    assert "64% of it is from batches that a step had applied already" in patient.words
