"""Notebook 10: the eight loops are what they are said to be, and the self-checks know right answers from wrong ones."""

from __future__ import annotations

import json
import linecache
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest
import torch

from gradlab import watch
from gradlab.__main__ import main

NOTEBOOK = Path(__file__).resolve().parent.parent / "notebooks" / "10_loop_doctor.ipynb"
SOURCES = {
    cell["id"]: "".join(line for line in cell["source"] if not line.startswith("%"))
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    if cell["cell_type"] == "code"
}


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """Return the names of the notebook, with its two helpers that print and draw made silent."""
    found: dict[str, Any] = {"tell": lambda *_, **__: None, "curves": lambda *_, **__: None}
    run(found, "setup", "look", "ex1", "ex1-check", "ex2", "ex2-check", "ex3", "ex3-check")
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
    run(names, *(f"p{patient}-{part}" for part in ("data", "loop", "doctor")))
    (finding,) = names["report"].findings
    assert (finding.code, finding.severity) == (code, "error")
    assert line in SOURCES[f"p{patient}-loop"].splitlines()[finding.line - 1]
    run(names, f"p{patient}-mended")
    quiet(names, f"mended_{patient}", *([[]] if patient == 4 else []))


@pytest.mark.parametrize("patient", [1, 2, 3, 5, 6])
def test_mending_lowers_the_loss(names: dict[str, Any], patient: int) -> None:
    run(names, *(f"p{patient}-{part}" for part in ("data", "loop", "mended")))
    broken = names[f"loop_{patient}"](*([[]] if patient == 5 else []))
    assert fmean(names[f"mended_{patient}"]()[-8:]) < 0.9 * fmean(broken[-8:])


def test_the_crash_comes_in_the_second_update_and_retain_graph_is_no_cure(names: dict[str, Any]) -> None:
    run(names, "p4-data", "p4-loop", "p4-mended", "p4-retain")
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
    run(names, "p8-loop", "p8-mended")
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
    run(names, "script-write")
    with pytest.warns(UserWarning, match="lr_scheduler.step"):
        run(names, "script-json", "script-mended")
    assert names["codes"] == {"mended.py": 0, "missing.py": 2}
    assert names["code"] == 1
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "mended.py"]) == 0


# The exercises: the checks draw their cases at random, and what they say must not depend on luck.


@pytest.fixture(params=range(3))
def _seed(request: pytest.FixtureRequest) -> None:
    random.seed(request.param)
    torch.manual_seed(request.param)


def inside(history: Sequence[str], *, clears: bool = True) -> list[tuple[int, int, bool, bool]]:
    """Return for each step: its number, its place, is something old in .grad, is something new in it."""
    grads: list[bool] = []
    found = []
    for place, call in enumerate(history):
        if call == "zero" and clears:
            grads = []
        elif call == "backward":
            grads.append(False)
        elif call == "step":
            found.append((len(found) + 1, place, True in grads, False in grads))
            grads = [True] * len(grads)
    return found


def windows(history: Sequence[str]) -> list[int]:
    found, passes, number = [], 0, 0
    for call in history:
        passes = 0 if call == "zero" else passes + (call == "backward")
        number += call == "step"
        found += [number] * (call == "step" and passes > 1)
    return found


def any_step_since(history: Sequence[str]) -> list[int]:
    found, since, number = [], False, 0
    for call in history:
        if call == "step":
            number += 1
            found += [number] * since
        since = (since or call == "step") and call != "zero"
    return found


@pytest.mark.usefixtures("_seed")
@pytest.mark.parametrize(
    ("verdict", "answer"),
    [
        ("Right", lambda history: [number for number, _, old, _ in inside(history) if old]),
        ("Right", lambda history: (number for number, _, old, _ in inside(history) if old)),
        ("not attempted yet", lambda history: None),
        ("an accumulation window, not a mistake", windows),
        (
            "zero_grad() takes the old gradients away",
            lambda history: [number for number, _, old, _ in inside(history, clears=False) if old],
        ),
        ("number 1, not 0", lambda history: [number - 1 for number, _, old, _ in inside(history) if old]),
        ("places in the history", lambda history: [place for _, place, old, _ in inside(history) if old]),
        ("The others are wanted", lambda history: [number for number, _, old, _ in inside(history) if not old]),
        ("A step() after a step()", lambda history: [number for number, _, old, new in inside(history) if old and new]),
        ("applies nothing", any_step_since),
        ("A list of numbers", lambda history: 3),
        ("an error, ZeroDivisionError", lambda history: [1 // 0]),
        ("you say []", lambda history: []),
    ],
)
def test_stale_steps(names: dict[str, Any], verdict: str, answer: Callable[[list[str]], Any]) -> None:
    assert verdict in names["check_stale"](answer)


LOOP = """
def loop(body, head, loss_fn, batches, lr):
    model, total = torch.nn.Sequential(body, head), 0.0
    optimizer = torch.optim.SGD({held}.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma={gamma})
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        {before}
        optimizer.step()
        {after}
        total += {number}
    {last}
    return {result}
"""
ASKED = {"held": "model", "gamma": 0.99, "before": "pass", "after": "scheduler.step()", "number": "loss.item()"}
ASKED |= {"last": "pass", "result": "total / len(batches)"}


@pytest.mark.usefixtures("_seed")
@pytest.mark.parametrize(
    ("verdict", "changes"),
    [
        ("Right", {}),
        ("Right", {"number": "loss.detach()"}),
        ("Right", {"number": "float(loss)", "after": "optimizer.zero_grad(); scheduler.step()"}),
        ("1 left. The doctor finds graph-retained-memory-leak", {"number": "loss"}),
        ("1 left. The doctor finds scheduler-before-optimizer", {"before": "scheduler.step()", "after": "pass"}),
        ("1 left. The doctor finds params-missing-from-optimizer", {"held": "body"}),
        ("does not move", {"held": "head", "before": "body.zero_grad()"}),
        ("not lowered any more", {"after": "pass"}),
        ("not lowered any more", {"after": "pass", "last": "scheduler.step()"}),
        ("1 left. The doctor finds scheduler-outpaces-optimizer", {"after": "scheduler.step(); scheduler.step()"}),
        ("It was one: gamma=0.99", {"gamma": 0.9}),
        ("zero-grad-between-backward-and-step", {"before": "optimizer.zero_grad()"}),
        ("Other weights", {"last": "head.weight.data *= 2"}),
        ("the loss of the last batch", {"result": "loss.item() / len(batches)"}),
        ("the sum of the losses", {"result": "total"}),
        ("the last loss", {"result": "loss.item()"}),
        ("hangs on a graph", {"result": "loss"}),
        ("The mean loss is wanted", {"result": "None"}),
        ("It raises NameError", {"result": "totall"}),
    ],
)
def test_mended_loop(names: dict[str, Any], verdict: str, changes: dict[str, str]) -> None:
    made: dict[str, Any] = {"torch": torch}
    exec(compile(LOOP.format(**ASKED | changes), "<answer>", "exec"), made)
    assert verdict in names["check_mended"](made["loop"])


def test_the_loop_to_mend_is_not_attempted_yet(names: dict[str, Any]) -> None:
    assert names["check_mended"](names["mended"]).startswith("not attempted yet")


@pytest.mark.usefixtures("_seed")
@pytest.mark.parametrize(
    ("verdict", "answer"),
    [
        ("Right", lambda alive: median(later - before for before, later in pairwise(alive))),
        ("not attempted yet", lambda alive: None),
        ("The first updates are in it", lambda alive: (alive[-1] - alive[0]) / (len(alive) - 1)),
        ("for all updates together", lambda alive: alive[-1] - alive[0]),
        ("the whole range", lambda alive: max(alive) - min(alive)),
        ("the largest step up", lambda alive: max(later - before for before, later in pairwise(alive))),
        ("the last difference alone", lambda alive: alive[-1] - alive[-2]),
        ("whether the two ends are short", lambda alive: (alive[-1] - alive[100]) / 99),
        ("the sign is wrong", lambda alive: median(before - later for before, later in pairwise(alive))),
        ("A number of bytes", lambda alive: "many"),
        ("an error, IndexError", lambda alive: alive[1000]),
    ],
)
def test_leak(names: dict[str, Any], verdict: str, answer: Callable[[list[int]], Any]) -> None:
    assert verdict in names["check_leak"](answer)
