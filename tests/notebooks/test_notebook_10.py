"""Notebook 10: it shows the loops that are checked, and its text agrees with their outputs; nbval runs its cells."""

from __future__ import annotations

import re
from typing import Any

from test_series import NOTEBOOKS, stored

from gradlab.course import doctor_command
from gradlab.course.exercises import exercise
from gradlab.doctor.rules import KNOWN_CODES

CELLS: dict[str, dict[str, Any]] = {cell["id"]: cell for cell in stored(NOTEBOOKS[10])}
BETS = {1: "mend_the_swinging_loss", 2: "mend_four_times_the_work"}
MENDED = {3: "mend_killed_at_night", 5: "mend_the_flat_loss", 6: "mend_learned_by_heart"}
COMPARED = ("script-run", "learns-count", "nan-ways", "nan-watch", "nan-run", "none-run", "p4-doctor")


def stored_output(cell: str) -> str:
    """Return the stored outputs of a cell as text."""
    outputs = CELLS[cell]["outputs"]
    return "".join("".join(each.get("text", "") or each.get("data", {}).get("text/plain", "")) for each in outputs)


def test_patients_are_numbered_and_their_loops_are_checked() -> None:
    texts = "\n".join(cell["source"] for cell in CELLS.values() if cell["cell_type"] == "markdown")
    assert list(dict.fromkeys(re.findall(r"\b[Pp]atient (\d)", texts))) == list("1234567")
    order = list(CELLS)
    for number, name in BETS.items():
        assert CELLS[f"p{number}-loop"]["source"].strip() == exercise(name).stub.strip()
        assert CELLS[f"p{number}-doctor"]["source"] == f'exercise("{name}").check({name})'
        assert order.index(f"p{number}-loop") < order.index(f"p{number}-guess") < order.index(f"p{number}-doctor")
    for number, name in MENDED.items():
        loop = f'{exercise(name).stub.strip()}\n\n\nexercise("{name}").check({name})'
        assert CELLS[f"p{number}-loop"]["source"] == loop


def test_losses_that_the_words_name_are_those_of_the_check() -> None:
    for number in BETS:
        mended = re.search(r"in a right loop it goes to ([\d.]+)\.\n", stored_output(f"p{number}-doctor"))
        assert mended is not None
        assert mended[1] in CELLS[f"p{number}-why"]["source"]
    swinging = re.search(r"goes from 2.31 to ([\d.]+);", stored_output("p1-doctor"))
    assert swinging is not None
    assert float(swinging[1]) > 2.31
    assert "191 updates did so" in stored_output("p1-doctor")
    assert "update 94 applied batch 376 alone; batches 373 to 375 had been cleared" in stored_output("p2-doctor")
    assert "118 updates in evaluation mode" in stored_output("p6-loop")


def test_what_is_stored_is_what_the_words_around_it_say() -> None:
    (*_, cleared_for_two), steps = stored_output("how-digits").splitlines(), stored_output("how-steps").splitlines()
    last = [int(number) for number in cleared_for_two.split()[:4]]
    assert [int(line.removesuffix(" in all").split()[-1]) for line in steps] == [last[1] + last[3], sum(last)]
    assert stored_output("p4-doctor").startswith("loss 0.6\n")
    assert "No findings." in stored_output("p4-doctor")
    assert stored_output("none-run").count("no findings") == 2
    assert "softmax-before-cross-entropy" in stored_output("none-run")
    assert "nan-loss" in stored_output("nan-watch")


def test_the_guard_stops_at_what_does_not_end_by_itself() -> None:
    healthy, _, pictures, _, gradient, _ = stored_output("nan-run").splitlines()
    assert healthy.split(maxsplit=1) == ["healthy", "no error"]
    assert "the loss is nan" in pictures
    assert "20 steps in a row" in gradient


def test_each_code_of_the_doctor_that_a_text_names_is_there() -> None:
    codes = [word for cell in CELLS.values() for word in re.findall(r"`([a-z]+(?:-[a-z0-9]+)+)`", cell["source"])]
    assert {"nan-loss"} <= set(codes) <= KNOWN_CODES


def test_a_mended_script_is_what_the_exit_code_says() -> None:
    script = CELLS["script-text"]["source"].removeprefix('script = """').removesuffix('"""')
    assert doctor_command(script).code == 1
    mended = script.replace(".softmax(1)", "").replace("    loss.back", "    optimizer.zero_grad()\n    loss.back")
    assert doctor_command(mended).code == 0


def test_what_the_doctor_says_is_compared_when_the_notebook_runs() -> None:
    for cell in COMPARED:
        assert "nbval-check-output" in CELLS[cell]["metadata"]["tags"]
