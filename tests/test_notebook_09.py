"""The self-checks in notebook 09 accept right answers and name the typical wrong ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

NOTEBOOK = Path(__file__).resolve().parent.parent / "notebooks" / "09_gpu_memory.ipynb"
CELLS = ("setup", "look", "net", "ex1", "ex1-check", "ex2", "ex2-check", "ex3", "ex3-check")
NUMBERS = {"sgd": 2, "momentum": 3, "adamw": 4}
"""How many numbers there are for each parameter after a step: itself, its gradient, the optimizer's."""


@pytest.fixture(scope="module")
def names() -> Iterator[dict[str, Any]]:
    """Return what the notebook's cells define."""
    found: dict[str, Any] = {}
    threads = torch.get_num_threads()
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["id"] in CELLS:
            exec("".join(line for line in cell["source"] if not line.startswith("%")), found)
    yield found
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("verdict", "answer"),
    [
        ("Right", lambda n, name: 4 * n * NUMBERS[name]),
        ("not attempted yet", lambda n, name: None),
        ("A number is wanted", lambda n, name: "16n"),
        ("A float32 takes 4 bytes", lambda n, name: n * NUMBERS[name]),
        ("not 2", lambda n, name: 2 * n * NUMBERS[name]),
        ("bytes are wanted", lambda n, name: 32 * n * NUMBERS[name]),
        ("gradients are missing", lambda n, name: 4 * n * (NUMBERS[name] - 1)),
        ("state is missing", lambda n, name: 8 * n),
        ("AdamW keeps two", lambda n, name: 4 * n * min(NUMBERS[name], 3)),
        ("Momentum keeps one", lambda n, name: 4 * n * (4 if name == "momentum" else NUMBERS[name])),
        ("SGD keeps nothing", lambda n, name: 4 * n * max(NUMBERS[name], 3)),
    ],
)
def test_after_step(names: dict[str, Any], verdict: str, answer: Callable[[int, str], Any]) -> None:
    # The cases are drawn at random: a mistake that concerns one optimizer shows when that one is drawn.
    said = {names["check_after_step"](answer) for _ in range(8)}
    assert any(verdict in words for words in said)
    assert all(("Right" in words) == (verdict == "Right") for words in said) or "keep" in verdict


EVALUATE = """
def evaluate(model, batches):
    {before}
    total = 0
    for x, y in batches:
        {loss}
        {add}
    return {result}
"""
LOSS, ADD, MEAN = "loss = cross_entropy(model(x), y)", "total = total + loss", "total / len(batches)"


@pytest.mark.parametrize(
    ("verdict", "changes"),
    [
        ("Right", {"loss": f"with torch.no_grad(): {LOSS}"}),
        ("Right", {"loss": f"with torch.inference_mode(): {LOSS}"}),
        ("not attempted yet", {}),
        ("not attempted yet", {"add": "total = total + loss; del loss"}),
        ("for whom?", {"add": "total = total + loss.item()"}),
        ("for whom?", {"add": "total = total + loss.detach()"}),
        ("eval() tells", {"before": "model.eval()"}),
        ("stay off", {"before": "torch.set_grad_enabled(False)"}),
        ("sum, not the mean", {"loss": f"with torch.no_grad(): {LOSS}", "result": "total"}),
        ("last batch's loss", {"loss": f"with torch.no_grad(): {LOSS}", "result": "loss"}),
        ("last batch's share", {"loss": f"with torch.no_grad(): {LOSS}", "add": "total = loss"}),
        ("needs no backward()", {"add": "loss.backward(); total = total + loss.item()"}),
        ("It stops: NameError", {"add": "total = total + missing"}),
    ],
)
def test_evaluate(names: dict[str, Any], verdict: str, changes: dict[str, str]) -> None:
    made = {"torch": torch, "cross_entropy": names["cross_entropy"]}
    parts = {"before": "pass", "loss": LOSS, "add": ADD, "result": MEAN} | changes
    exec(EVALUATE.format(**parts), made)
    assert verdict in names["check_evaluate"](made["evaluate"])
    assert torch.is_grad_enabled()


def line(peak_of: Callable[[int], int], budget: int, few: int = 150, many: int = 200) -> float:
    """Return where the straight line through two measurements meets the budget."""
    low, high = peak_of(few), peak_of(many)
    return many + (budget - high) * (many - few) / (high - low)


def bisected(peak_of: Callable[[int], int], budget: int) -> int:
    low, high = 1, 1024
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if peak_of(middle) <= budget else (low, middle)
    return low


@pytest.mark.parametrize(
    ("verdict", "answer"),
    [
        ("Right", lambda peak_of, budget: int(line(peak_of, budget))),
        ("not attempted yet", lambda peak_of, budget: None),
        ("three are allowed", bisected),
        ("A whole number", line),
        ("Bytes divided by rows", lambda peak_of, budget: budget // (peak_of(200) // 200)),
        ("not on the mountain yet", lambda peak_of, budget: int(line(peak_of, budget, 1, 2))),
        ("round down", lambda peak_of, budget: int(line(peak_of, budget)) + 1),
        ("more would", lambda peak_of, budget: int(line(peak_of, budget)) - 20),
        ("out of memory", lambda peak_of, budget: int(line(peak_of, budget)) + 20),
    ],
)
def test_largest_batch(names: dict[str, Any], verdict: str, answer: Callable[..., Any]) -> None:
    assert verdict in names["check_largest"](answer)


@pytest.mark.parametrize(
    "words",
    ["128 rows   False", "before backward", "4 x 32", "bf16", "inside backward", "2 x 16 rows", "H100s, at least"],
)
def test_each_table_is_stored(words: str) -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    outputs = [out for cell in cells if cell["cell_type"] == "code" for out in cell["outputs"]]
    assert any(words in "".join(out.get("text", [])) for out in outputs)
