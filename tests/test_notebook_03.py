"""The self-checks in notebook 03 accept right answers and name the typical wrong ones."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parent.parent / "notebooks" / "03_forgetting_zero_grad.ipynb"
CELLS = ("setup", "look", "swing", "measure", "ex1", "ex1-check", "ex2", "ex2-check", "ex3", "ex3-check")
LOOP = """
def loop(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    {before}
    for x, y in batches:
        {first}
        loss = loss_fn(model(x), y)
        loss.backward()
        {last}
    {after}
"""


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """Return what the notebook's cells define."""
    found: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["id"] in CELLS:
            exec("".join(line for line in cell["source"] if not line.startswith("%")), found)
    return found


@pytest.mark.parametrize(
    ("verdict", "lines"),
    [
        ("Right", {"first": "optimizer.zero_grad()"}),
        ("Right", {"last": "optimizer.step(); optimizer.zero_grad()"}),
        ("not attempted yet", {"first": "optimizer.zero_grad"}),
        ("not attempted yet", {"before": "optimizer.zero_grad()"}),
        ("you clear between", {"last": "optimizer.zero_grad(); optimizer.step()"}),
        ("step() belongs inside", {"last": "pass", "after": "optimizer.step()"}),
        ("is step() before", {"first": "optimizer.step(); optimizer.zero_grad()", "last": "pass"}),
        (
            "Other weights",
            {"first": "optimizer.zero_grad()", "before": "lr = optimizer.param_groups[0]['lr'] = lr / 2"},
        ),
    ],
)
def test_mended_loop(names: dict[str, Any], verdict: str, lines: dict[str, str]) -> None:
    made = {"torch": names["torch"]}
    exec(LOOP.format(**{"before": "pass", "first": "pass", "last": "optimizer.step()", "after": "pass"} | lines), made)
    assert verdict in names["check_mended"](made["loop"])


@pytest.mark.parametrize(
    ("verdict", "answer"),
    [
        ("Right", lambda lr, period: 2 * (1 - math.cos(math.pi / period)) / lr),
        ("not attempted yet", lambda lr, period: None),
        ("divide by lr", lambda lr, period: 2 * (1 - math.cos(math.pi / period))),
        ("without its arccos", lambda lr, period: (math.pi / period) ** 2 / lr),
        ("every half-period", lambda lr, period: 2 * (1 - math.cos(2 * math.pi / period)) / lr),
        ("Half of it", lambda lr, period: (1 - math.cos(math.pi / period)) / lr),
        ("A number is wanted", lambda lr, period: "4"),
    ],
)
def test_curvature(names: dict[str, Any], verdict: str, answer: Callable[[float, float], Any]) -> None:
    assert verdict in names["check_curvature"](answer)


def peaks(losses: list[float]) -> list[int]:
    return [t for t in range(1, len(losses) - 1) if losses[t - 1] < losses[t] >= losses[t + 1]]


@pytest.mark.parametrize(
    ("verdict", "answer"),
    [
        ("Right", lambda found: (found[-1] - found[0]) / (len(found) - 1)),
        ("not attempted yet", lambda found: None),
        ("twice that of the loss", lambda found: 2 * (found[-1] - found[0]) / (len(found) - 1)),
        ("the valleys", lambda found: (found[-1] - found[0]) / (len(found) - 1) / 2),
    ],
)
def test_period(names: dict[str, Any], verdict: str, answer: Callable[[list[int]], Any]) -> None:
    assert verdict in names["check_period"](lambda losses: answer(peaks(losses)))
