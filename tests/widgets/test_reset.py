"""Reset goes back to where a cell left off, and what is trained from there is what a bare loop trains."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from page import Page
from torch import nn

from gradlab import Lab, Recipe, tasks

torch.set_num_threads(1)
OWN = """\
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
seen = []
for epoch in range(epochs):
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        seen.append(1)
        scheduler.optimizer.param_groups[0]["lr"] *= 1 + len(seen) / 1000
"""


def weights(model: nn.Module) -> list[list[float]]:
    return [param.flatten().tolist() for param in model.parameters()]


def state(lab: Lab) -> Any:
    """All that is shown of a lab, and all that goes on into the next update."""
    run = lab.runner
    grads = [None if p.grad is None else p.grad.tolist() for p in run.model.parameters()]
    optimizer = [] if run.optimizer is None else [str(value) for value in run.optimizer.state.values()]
    shown = [(drawing.words, [str(mark) for mark in drawing.marks]) for drawing in lab.model.drawings()]
    return lab.text, run.source, run.line, run.recipe, weights(run.model), grads, optimizer, shown


def play_about(page: Page) -> None:
    """Do what a learner may do before Reset."""
    page.play(13)
    page.turn("zero_grad", False)
    page.play(9)
    page.turn("optimizer", "adam")
    page.ask("statement")
    page.ask("statement")


CELLS: dict[str, Any] = {
    "a switch": lambda: Lab("bowl", Recipe(lr=0.2)).run(12).switch(zero_grad=False).run(7),
    "inside an update": lambda: Lab("line", Recipe(lr=0.01, accumulate=3)).run(3).run_statements(6),
    "state and scaler": lambda: Lab("digits", Recipe(optimizer="adamw", amp="fp16", lr=0.002)).run(9),
    "a start of its own": lambda: Lab("bowl").reset([3.0, 2.0]).run(4),
    "a loop of its own": lambda: Lab("line").run(2).edit(OWN).run(5),
}


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS)
def test_reset_goes_back_to_where_the_cell_left_off(cell: str) -> None:
    lab = CELLS[cell]()
    left = state(lab)
    page = Page(lab)
    assert page.shown["left_off"] == lab.runner.updates
    play_about(page)
    assert state(lab) != left
    page.ask("reset")
    assert state(lab) == left
    assert page.note == f"Back at update {lab.runner.updates:,}, where the cell left off."
    play_about(page)
    page.ask("reset")
    assert state(lab) == left, "any number of times"


def test_playing_on_after_reset_gives_the_weights_of_a_bare_loop() -> None:
    lab = Lab("digits", Recipe(lr=0.2)).run(20)
    page = Page(lab)
    play_about(page)
    page.ask("reset").play(15)
    names = {"model": tasks.digits().build(0), "loss_fn": tasks.digits().loss_fn, "device": tasks.digits().device}
    batches = (tasks.digits().batches * 2)[:35]
    exec(Recipe(lr=0.2).source(), {"torch": torch, "epochs": 1, "batches": batches, **names})
    assert lab.runner.updates == 35
    assert weights(lab.runner.model) == weights(names["model"])


def test_from_zero_is_apart_and_keeps_the_loop_as_it_is() -> None:
    for cell in (0, 20):
        lab = Lab("line").run(cell) if cell else Lab("line")
        page = Page(lab)
        assert page.shown["left_off"] == (cell or None)
        page.turn("zero_grad", False).play(5).ask("restart")
        assert (lab.runner.updates, lab.runner.recipe.zero_grad) == (0, False)
        assert weights(lab.runner.model) == weights(tasks.line().build(0))
        page.play(3).ask("reset")
        assert (lab.runner.updates, lab.runner.recipe.zero_grad) == (cell, cell > 0)
