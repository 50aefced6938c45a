"""Notebook 05: its exercise `saved` predicts what a Ledger sees, and its scripts for torch.compile need no compiler."""

from __future__ import annotations

import random
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from test_series import NOTEBOOKS, stored

from gradlab.course import launch
from gradlab.course.exercises import exercise
from gradlab.memory.ledger import Ledger

CELLS = {cell["id"]: cell for path in NOTEBOOKS if path.stem.startswith("05") for cell in stored(path)}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("batch", [20, 100, 200])
def test_what_the_exercise_predicts_is_what_a_ledger_sees(batch: int, seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
    widths = [80] + [random.choice((40, 80, 120)) for _ in range(24)]
    parts = [(torch.nn.Linear(a, b), torch.nn.Tanh()) for a, b in pairwise(widths)]
    model = torch.nn.Sequential(*(layer for pair in parts for layer in pair))
    x, optimizer = torch.randn(batch, widths[0]), torch.optim.SGD(model.parameters(), lr=0.1)
    peaks = {}
    for set_to_none in (False, True):
        for _ in range(2):
            with Ledger(model=model, optimizers=[optimizer], inputs=[x]) as ledger:
                optimizer.zero_grad(set_to_none=set_to_none)
                model(x).sum().backward()
                optimizer.step()
        peaks[set_to_none] = ledger.peak
    activations = [4 * batch * width for width in widths[1:]]
    gradients = [4 * (a * b + b) for a, b in pairwise(widths)]
    predicted = exercise("saved").definition.reference(activations, gradients)
    # What passes is left aside: one layer's fresh gradient and what goes in and out of it.
    passing = max(gradients) + 2 * max(activations)
    assert predicted > passing
    assert abs(peaks[False] - peaks[True] - predicted) <= passing


@pytest.mark.parametrize(("found", "said"), [(None, "No C++ compiler is here"), ("/bin/c++", "A C++ compiler is here")])
def test_it_says_whether_the_default_backend_can_work(
    found: str | None, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: found)
    exec(CELLS["compile-compiler"]["source"], {})
    first, second = capsys.readouterr().out.splitlines()
    assert "needs no C++ compiler" in first
    assert second.startswith(said)
    assert second.endswith("cannot work." if found is None else "can work, too.")


def scripts(folder: Path, backend: str) -> dict[str, str]:
    """Write the scripts of the section with this backend; return what each is stored to print."""
    texts: dict[str, str] = {}
    printed: dict[str, str] = {}
    for cell in CELLS.values():
        command, _, text = cell["source"].partition("\n")
        if command.startswith("%%writefile"):
            name = command.split()[-1]
            texts[name] = texts.get(name, "") + text + "\n"
        elif command.startswith("launch("):
            printed[command.split('"')[1]] = _plain(cell["outputs"])
        elif "hooks.lines(0)" in cell["source"]:  # the peaks are shown after a bet, the lines before them at once
            printed["hooks.py"] = "\n".join([*printed.get("hooks.py", "").splitlines(), *_streamed(cell["outputs"])])
    assert '"aot_eager"' in texts["network.py"]
    for name, text in texts.items():
        (folder / name).write_text(text.replace('"aot_eager"', f'"{backend}"'), encoding="utf-8")
    return printed


def _plain(outputs: list[dict[str, Any]]) -> str:
    (output,) = outputs
    return "".join(output["data"]["text/plain"])


def _streamed(outputs: list[dict[str, Any]]) -> list[str]:
    (output,) = outputs
    return "".join(output["text"]).splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_what_is_compiled_does_not_depend_on_the_backend(backend: str, tmp_path: Path) -> None:
    """Without a compiler with aot_eager, and with one with inductor, which the section's words speak of."""
    if backend == "inductor" and not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("inductor needs a C++ compiler")
    settings = {"PATH": "", "CXX": "none"} if backend == "aot_eager" else {}
    expected = scripts(tmp_path, backend)
    assert set(expected) == {"clearing.py", "hooks.py"}
    for name, lines in expected.items():
        result = launch(tmp_path / name, processes=1, seconds=200.0, settings=settings)
        if backend == "inductor" and name == "hooks.py":  # its kernels need a few KiB less or more at the peak
            assert _without_peaks(repr(result)) == _without_peaks(lines)
        else:
            assert repr(result) == lines


def _without_peaks(lines: str) -> list[str]:
    return [line.split(" peak ")[0] for line in lines.splitlines()]
