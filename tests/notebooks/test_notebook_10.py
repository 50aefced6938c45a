"""Notebook 10: the eight loops are what they are said to be, and the claims come out as it says."""

from __future__ import annotations

import json
import linecache
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from gradlab import watch
from gradlab.__main__ import main

pytestmark = pytest.mark.notebook  # it runs cells of the notebook
NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "10_loop_doctor.ipynb"
SOURCES = {
    cell["id"]: "".join(line for line in cell["source"] if not line.startswith("%"))
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    if cell["cell_type"] == "code"
}


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """Return the names of the notebook, with its two helpers that print and draw made silent."""
    found: dict[str, Any] = {"tell": lambda *_, **__: None, "curves": lambda *_, **__: None}
    run(found, "setup", "look")
    return found


def run(names: dict[str, Any], *cells: str) -> None:
    for cell in cells:
        if cell in SOURCES:
            name, text = f"<{cell}>", SOURCES[cell]
            linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name  # as Jupyter does it
            exec(compile(text, name, "exec"), names)


def quiet(names: dict[str, Any], loop: str, *given: Any) -> Any:
    """Run a loop under watch and return what it returns; nothing may be found."""
    with watch() as report:
        result = names[loop](*given)
    assert report.codes == []
    return result


# patient -> what the doctor finds, and what the line that it points at says
PATIENTS = {
    1: ("zero-grad-between-backward-and-step", "optimizer.zero_grad()"),
    2: ("zero-grad-in-micro-batch", "optimizer.zero_grad()"),
    3: ("optimizer-holds-stale-params", "optimizer = torch.optim.SGD"),
    4: ("carried-state-not-detached", "loss.backward()"),
    5: ("clip-before-unscale", "clip_grad_norm_"),
    6: ("eval-mode-left-on", "model.eval()"),
    7: ("graph-retained-memory-leak", "total += loss"),
}


@pytest.mark.parametrize("patient", PATIENTS)
def test_patient_has_one_illness_and_is_mended(names: dict[str, Any], patient: int) -> None:
    code, line = PATIENTS[patient]
    run(names, *(f"p{patient}-{part}" for part in ("data", "loop", "run", "doctor")))
    (finding,) = names["report"].findings
    assert (finding.code, finding.severity) == (code, "error")
    assert line in SOURCES[f"p{patient}-loop"].splitlines()[finding.line - 1]
    run(names, f"p{patient}-mended")
    quiet(names, f"mended_{patient}", *([[]] if patient == 4 else []))


@pytest.mark.parametrize("patient", [1, 2, 3, 5, 6])
def test_mending_lowers_the_loss(names: dict[str, Any], patient: int) -> None:
    run(names, *(f"p{patient}-{part}" for part in ("data", "loop", "run", "mended")))
    broken = names[f"loop_{patient}"](*([[]] if patient == 5 else []))
    assert fmean(names[f"mended_{patient}"]()[-8:]) < 0.9 * fmean(broken[-8:])


def test_the_crash_comes_in_the_second_update_and_retain_graph_is_no_cure(names: dict[str, Any]) -> None:
    run(names, "p4-data", "p4-loop", "p4-run", "p4-mended", "p4-retain")
    assert len(names["broken_4"]) == 1
    assert names["cured_4"][-1] < 0.1 * names["cured_4"][0]
    assert names["report"].codes == ["carried-state-not-detached"]


def test_a_summed_loss_holds_on_to_its_graph(names: dict[str, Any]) -> None:
    run(names, "p7-data", "p7-loop", "p7-mended")
    steps = [later - before for before, later in pairwise(names["loop_7"]())]
    assert len(set(steps)) == 1
    assert steps[0] > 0
    assert set(names["mended_7"]()) == {0}


def test_patient_8_is_healthy(names: dict[str, Any]) -> None:
    run(names, "p8-loop", "p8-run", "p8-mended")
    assert quiet(names, "loop_8") == quiet(names, "by_the_book")


def test_every_answer_is_wrong_somewhere_and_right_somewhere(names: dict[str, Any]) -> None:
    # No position among the four options is always the right one, nor never.
    places = []
    for patient in range(1, 9):
        run(names, f"p{patient}-guess")
        guess = names[f"guess_{patient}"]
        assert len(guess.options) == 4
        places.append(guess.options.index(guess.answer))
    assert len(set(places)) >= 3


def test_claim_a_swinging_loss_means_a_forgotten_zero_grad(names: dict[str, Any]) -> None:
    run(names, "swings-train")
    found, settings = {}, {"forgot": {"zero_grad": False}, "large lr": {"lr": 1.0}, "momentum": {"momentum": 0.999}}
    for name, changes in settings.items():
        with watch() as report:
            losses = names["train"](**{"lr": 0.05} | changes)
        rise = max(later - min(losses[: t + 1]) for t, later in enumerate(losses))
        assert rise > 1
        found[name] = report.codes
    assert found == {"forgot": ["missing-zero-grad"], "large lr": [], "momentum": []}


def test_claim_accumulate_or_checkpoint_helps_if_activations_are_the_largest(names: dict[str, Any]) -> None:
    run(names, "memory-peak", "memory-table")
    shapes, treatments = {"A": (64, 8, 2048), "B": (512, 4, 16)}, names["treatments"]
    peaks = {net: {how: names["peak"](*shapes[net], **treatments[how]).peak for how in treatments} for net in shapes}
    for how in ("accumulate 4", "checkpoint"):
        assert peaks["A"][how] < 0.7 * peaks["A"]["as it is"]
        assert peaks["B"][how] > 0.95 * peaks["B"]["as it is"]
    assert peaks["B"]["SGD for Adam"] < 0.7 * peaks["B"]["as it is"]
    assert peaks["A"]["SGD for Adam"] > 0.9 * peaks["A"]["as it is"]


def test_claim_gradients_are_cleared_where_their_weights_are(names: dict[str, Any]) -> None:
    run(names, "slow-where")
    assert all(weight == grad for weight, grad in names["places"])


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


def test_what_it_cannot_see(names: dict[str, Any]) -> None:
    run(names, "cannot-labels")
    assert names["report"].codes == []
    run(names, "cannot-meant")
    assert [finding.severity for finding in names["report"]] == ["hint"]


def test_the_script(names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.mkdtemp", lambda: str(tmp_path))
    run(names, "script-write", "script-folder")
    with pytest.warns(UserWarning, match="lr_scheduler.step"):
        run(names, "script-json", "script-mended")
    assert names["codes"] == {"mended.py": 0, "missing.py": 2}
    assert names["code"] == 1
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "mended.py"]) == 0
