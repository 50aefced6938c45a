"""The self-checks in notebook 05 accept right answers and name the typical wrong ones."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from gradlab.ledger import Ledger

NOTEBOOK = Path(__file__).resolve().parent.parent / "notebooks" / "05_set_to_none.ipynb"
CELLS = ("setup", "look", "ex1", "ex1-check", "ex2", "ex2-check", "ex3", "ex3-check")


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """Return what the notebook's cells define."""
    found: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["id"] in CELLS:
            exec("".join(line for line in cell["source"] if not line.startswith("%")), found)
    return found


@pytest.fixture(autouse=True, params=range(3))
def _seed(request: pytest.FixtureRequest) -> None:
    # The checks draw their cases at random: a remark that depends on the draw must not depend on luck.
    random.seed(request.param)
    torch.manual_seed(request.param)


def norms(model: torch.nn.Module) -> list[torch.Tensor]:
    return [p.grad.norm() for p in model.parameters() if p.grad is not None]


def every_norm(model: torch.nn.Module) -> Any:
    return torch.stack([p.grad.norm() for p in model.parameters()]).norm()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("verdict", "answer"),
    [
        ("Right", lambda model: sum(norm**2 for norm in norms(model)) ** 0.5),
        ("Right", lambda model: torch.nn.utils.clip_grad_norm_(model.parameters(), math.inf)),
        ("not attempted yet", lambda model: None),
        ("Some .grad is None: skip", every_norm),
        ("That is the sum of the norms", lambda model: sum(norms(model))),
        ("the root is missing", lambda model: sum(norm**2 for norm in norms(model))),
        ("the largest norm", lambda model: max(norms(model), default=0)),
        ("norm of the first parameter", lambda model: norms(model)[0]),
        ("the mean of the norms", lambda model: sum(norms(model)) / max(1, len(norms(model)))),
        ("norm of the weights", lambda model: torch.nn.utils.parameters_to_vector(model.parameters()).detach().norm()),
        ("with no gradient at all", lambda model: torch.stack(norms(model)).norm() if norms(model) else None),
        ("nothing to add up: 0", lambda model: torch.stack(norms(model)).norm() if norms(model) else math.nan),
        ("RuntimeError", lambda model: torch.stack(norms(model)).norm()),
        ("ValueError", lambda model: "long"),
    ],
)
def test_norm(names: dict[str, Any], verdict: str, answer: Callable[[Any], Any]) -> None:
    assert verdict in names["check_norm"](answer)


def moved(fill: int, add: int, first: int) -> Callable[[int, int, int, bool], int]:
    """Bytes of a window: zeros cost ``fill`` and an add each time; with None the first costs ``first``."""

    def answer(parameters: int, element_size: int, window: int, set_to_none: bool) -> int:
        moves = first + add * (window - 1) if set_to_none else fill + add * window
        return parameters * element_size * moves

    return answer


@pytest.mark.parametrize(
    ("verdict", "answer"),
    [
        ("Right", moved(1, 3, 0)),
        ("not attempted yet", lambda *given: None),
        ("A number is wanted", lambda *given: "many"),
        ("ZeroDivisionError", lambda *given: 1 / 0),
        ("the article's count", lambda count, element, window, none: count * element * window * (1 if none else 3)),
        ("numbers, not bytes", lambda count, element, *rest: moved(1, 3, 0)(count, 1, *rest)),
        ("Those are bits", lambda *given: 8 * moved(1, 3, 0)(*given)),
        ("The zeros have to be written", moved(0, 3, 0)),
        ("nothing is written", moved(1, 3, 1)),
        ("not copied", moved(1, 3, 2)),
        ("nothing to add to", moved(1, 3, 3)),
        ("reads twice", moved(1, 2, 0)),
        ("once in a window", lambda count, element, window, none: count * element * window * (0 if none else 4)),
        ("once for each micro-batch", lambda count, element, window, none: count * element * (0 if none else 4)),
        ("The others add", lambda *given: 0 if given[3] else moved(1, 3, 0)(*given)),
    ],
)
def test_bytes(names: dict[str, Any], verdict: str, answer: Callable[..., Any]) -> None:
    assert verdict in names["check_bytes"](answer)


def levels(activations: Sequence[int], gradients: Sequence[int]) -> list[int]:
    """Bytes alive after 0, 1, 2, ... layers of backward, with None."""
    alive = [sum(activations)]
    for activation, gradient in zip(reversed(activations), reversed(gradients), strict=True):
        alive.append(alive[-1] - activation + gradient)
    return alive


@pytest.mark.parametrize(
    ("verdict", "answer"),
    [
        ("Right", lambda a, g: sum(a) + sum(g) - max(levels(a, g))),
        ("not attempted yet", lambda a, g: None),
        ("A number is wanted", lambda a, g: [1]),
        ("IndexError", lambda a, g: a[len(g)]),
        ("Not always all of the gradients", lambda a, g: sum(g)),
        ("the two ends only", lambda a, g: sum(a) + sum(g) - max(sum(a), sum(g))),
        ("backward() goes the other way", lambda a, g: sum(a) + sum(g) - max(levels(a[::-1], g[::-1]))),
        ("the peak with None", lambda a, g: max(levels(a, g))),
        ("the peak with zeros", lambda a, g: sum(a) + sum(g)),
        ("The moment before backward() counts", lambda a, g: sum(a) + sum(g) - max(levels(a, g)[1:])),
        ("The moment after the last layer", lambda a, g: sum(a) + sum(g) - max(levels(a, g)[:-1])),
        ("each layer by itself", lambda a, g: sum(map(min, a, g))),
        ("difference of the sums", lambda a, g: sum(a) - sum(g)),
        ("does help here", lambda a, g: 0),
    ],
)
def test_saved(names: dict[str, Any], verdict: str, answer: Callable[[list[int], list[int]], Any]) -> None:
    assert verdict in names["check_saved"](answer)


@pytest.mark.parametrize("batch", [20, 100, 200])
def test_what_the_exercise_foretells_is_what_a_ledger_sees(batch: int) -> None:
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
    foretold = sum(activations) + sum(gradients) - max(levels(activations, gradients))
    # What passes is left aside: one layer's fresh gradient and what goes in and out of it.
    passing = max(gradients) + 2 * max(activations)
    assert foretold > passing
    assert abs(peaks[False] - peaks[True] - foretold) <= passing
