"""Notebook 10: it shows the loops that are checked, and what it says of them comes out; nbval runs its cells."""

from __future__ import annotations

import re
from typing import Any

from test_series import NOTEBOOKS, stored

from gradlab.course.exercises import exercise
from gradlab.widgets import find_question

CELLS: dict[str, dict[str, Any]] = {cell["id"]: cell for cell in stored(NOTEBOOKS[10])}
LOOPS = {
    1: "mend_the_flat_loss",
    2: "mend_four_times_the_work",
    3: "mend_the_new_head",
    4: "mend_the_second_update",
    5: "mend_flat_in_half_precision",
    6: "mend_learned_by_heart",
    7: "mend_killed_at_night",
}


def shown(cell: str) -> str:
    """What a cell is stored to show, as text."""
    outputs = CELLS[cell]["outputs"]
    return "".join("".join(each.get("text", "") or each.get("data", {}).get("text/plain", "")) for each in outputs)


def test_each_loop_is_read_before_it_is_guessed_and_checked() -> None:
    order, places = list(CELLS), []
    for number in range(1, 9):
        question = find_question(re.findall(r'predict\("([^"]+)"\)', CELLS[f"p{number}-guess"]["source"])[0])
        assert len(question.options) == 4
        places.append(question.answer)
        if number in LOOPS:
            name = LOOPS[number]
            assert CELLS[f"p{number}-loop"]["source"].strip() == exercise(name).stub.strip()
            assert CELLS[f"p{number}-doctor"]["source"] == f'exercise("{name}").check({name})'
            assert order.index(f"p{number}-loop") < order.index(f"p{number}-guess") < order.index(f"p{number}-doctor")
    assert len(set(places)) >= 3, "no place among the four options is always the right one"


def test_losses_that_the_words_name_are_those_of_the_check() -> None:
    for cell, words in {
        "p1": "p1-why",
        "p2": "p2-why",
        "p3": "p3-why",
        "p5": "p5-why",
        "p6": "p6-why",
        "first": "first-patient-why",
    }.items():
        verdict = shown("first-patient" if cell == "first" else f"{cell}-doctor")
        mended = re.search(r"in a right loop it goes to ([\d.]+)\.\n", verdict)
        assert mended is not None
        assert mended[1] in CELLS[words]["source"]
    assert "from 2.3 to 0.531" in shown("p3-doctor")
    assert "from 2.31 to 3.56" in shown("first-patient")
    assert "update 94 applied batch 376 alone; batches 373 to 375 had been cleared" in shown("p2-doctor")


def test_what_is_stored_is_what_the_words_around_it_say() -> None:
    (*_, cleared_for_two), steps = shown("how-digits").splitlines(), shown("how-steps").splitlines()
    last = [int(number) for number in cleared_for_two.split()[:4]]
    assert [int(line.split()[-1]) for line in steps] == [last[1] + last[3], sum(last)]
    assert float(shown("healthy-swing").removeprefix("largest rise ").partition(",")[0]) > 1
    assert shown("p8-doctor").startswith("loss 0.63. ")
    assert all("No findings." in shown(cell) for cell in ("healthy-swing", "cannot-labels", "p8-doctor"))
    plain, robust, plain_later, robust_later = map(int, re.findall(r"right: (\d+)%", shown("p8-robust")))
    assert robust < plain
    assert robust_later > plain_later + 5, "it needs time to pay"


def test_what_the_doctor_says_is_compared_when_the_notebook_runs() -> None:
    for cell in ("how-wait-run", "frozen", "script-named", "script-mended"):
        assert "nbval-check-output" in CELLS[cell]["metadata"]["tags"]
