"""Notebook 10: it shows the patients that run, and what it says of them comes out; nbval runs its cells."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from test_series import NOTEBOOKS, stored

from gradlab.course.patients.case import patient_case, patient_names
from gradlab.course.patients.run_loop import run_loop
from gradlab.formatting import short
from gradlab.widgets import find_question

CELLS: dict[str, dict[str, Any]] = {cell["id"]: cell for cell in stored(NOTEBOOKS[10])}


def printed(cell: str) -> str:
    """What a cell is stored to print."""
    return "".join("".join(output.get("text", "")) for output in CELLS[cell]["outputs"])


def test_each_patient_is_read_before_it_is_guessed_and_run() -> None:
    """The loop that the notebook prints is the one that the patient runs."""
    order, places = list(CELLS), []
    patients = [name for name in patient_names() if name != "the-swinging-loss"]
    for number, name in enumerate(patients, 1):
        assert CELLS[f"p{number}-doctor"]["source"] in (f'Patient("{name}")', f'patient_card("{name}")')
        assert f"```python\n{patient_case(name).sick}```" in CELLS[f"p{number}"]["source"]
        assert order.index(f"p{number}") < order.index(f"p{number}-guess") < order.index(f"p{number}-doctor")
        question = find_question(re.findall(r'predict\("([^"]+)"\)', CELLS[f"p{number}-guess"]["source"])[0])
        assert len(question.options) == 4
        places.append(question.answer)
    assert len(set(places)) >= 3, "no place among the four options is always the right one"
    assert patient_case("the-swinging-loss").sick in CELLS["first"]["source"]


def test_numbers_that_the_words_name() -> None:
    """The norm at the step of patient 5, and the nodes that patient 7 adds at each update."""
    half = patient_case("flat-in-half-precision")
    rows = run_loop(half.loop(half.sick)).history.rows
    assert {short(row.norm) for row in rows} == {"1.5e\u22125"}
    leak = patient_case("killed-at-night")
    nodes = [row.nodes for row in run_loop(leak.loop(leak.sick)).history.rows]
    assert {later - before for before, later in pairwise(nodes[1:])} == {11}


def test_what_is_stored_is_what_the_words_around_it_say() -> None:
    (*_, cleared_for_two), steps = printed("how-digits").splitlines(), printed("how-steps").splitlines()
    last = [int(number) for number in cleared_for_two.split()[:4]]
    assert [int(line.split()[-1]) for line in steps] == [last[1] + last[3], sum(last)]
    assert float(printed("healthy-swing").removeprefix("largest rise ").partition(",")[0]) > 1
    assert all("No findings." in printed(cell) for cell in ("healthy-swing", "cannot-labels"))
    plain, robust, plain_later, robust_later = map(int, re.findall(r"right: (\d+)%", printed("p8-robust")))
    assert robust < plain
    assert robust_later > plain_later + 5, "it needs time to pay"


def test_what_the_doctor_says_is_compared_whenever_the_notebook_runs() -> None:
    for cell in ("how-wait-run", "frozen", "script-named", "script-mended"):
        assert "nbval-check-output" in CELLS[cell]["metadata"]["tags"]
