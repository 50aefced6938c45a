"""The line of Python that a Lab offers to copy: the Lab that it makes has the same weights and goes on the same."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest
import torch
from page import Page

from gradlab import Lab, Recipe, tasks

torch.set_num_threads(1)
OWN = (
    "import torch\noptimizer = torch.optim.SGD(model.parameters(), lr=0.05)\nfor epoch in range(epochs):\n"
    "    for x, y in batches:\n        optimizer.zero_grad()\n        loss_fn(model(x), y).backward()\n"
    "        optimizer.step()\n"
)


def made_by(line: str, **names: Any) -> Lab:
    """The Lab that a line makes, in a namespace as in a notebook."""
    made = eval(line, {"Lab": Lab, "Recipe": Recipe, **names})
    assert isinstance(made, Lab)
    return made


def same(one: Lab, other: Lab, *, updates: tuple[int, ...] = (0, 3)) -> None:
    """Weights, ``.grad``, place and text of two labs are the same, now and after three more updates."""
    for more in updates:
        one.run(more)
        other.run(more)
        assert one.runner.source == other.runner.source
        assert one.runner.updates == other.runner.updates
        assert one.runner.statement == other.runner.statement
        for a, b in zip(one.runner.model.parameters(), other.runner.model.parameters(), strict=True):
            assert torch.equal(a, b)
            assert (a.grad is None) == (b.grad is None)
            assert a.grad is None or torch.equal(a.grad.nan_to_num(7), b.grad.nan_to_num(7))
        assert one.runner.loss_scale == other.runner.loss_scale


def test_the_line_reads_as_a_learner_would_write_it() -> None:
    page = Page(Lab("bowl"))
    page.ask("drag", name="weights", x=0.5, y=-1.0)
    page.play(3)
    assert page.shown["copy"] == "", "none is offered while it plays"
    page.turn("zero_grad", False)
    page.turn("lr", "0.1")
    page.play(2)
    page.ask("statement").ask("statement").ask("edit", text=OWN)
    page.play(1).ask("statement")
    assert page.shown["copy"] == (
        "Lab('bowl', Recipe(lr=0.2)).reset(weights=(0.5, -1.0)).run(3).switch(zero_grad=False).switch(lr=0.1).run(3)"
        f".edit({OWN!r}).run(1).step()"
    )


def act(page: Page, chance: random.Random) -> None:
    """One thing that a learner may do."""
    turns = {
        "zero_grad": [True, False], "set_to_none": [True, False], "accumulate": ["1", "2", "3", "x"],
        "divide_loss": [True, False], "amp": ["off", "bf16", "fp16"], "clip": ["off", 0.5, 5.0],
        "optimizer": ["sgd", "momentum", "adam", "adamw"], "lr": ["0.01", "0.1", "0.05", "-1", "1e-3"],
    }  # fmt: skip
    kind = chance.choice(
        ["turn"] * 4 + ["play"] * 3 + ["statement", "update", "to_line", "edit", "drag", "reset", "press"]
    )
    if kind == "turn":
        name = chance.choice(list(turns))
        page.turn(name, chance.choice(turns[name]))
    elif kind == "play":
        page.play(chance.randrange(1, 5), updates=chance.randrange(1, 4)) if chance.random() < 0.7 else page.ask(
            "frames", count=chance.randrange(1, 9), every=350
        )
    elif kind == "to_line":
        page.ask("to_line", line=chance.randrange(1, 12))
    elif kind == "edit":
        bad = OWN.replace("backward", "bakward"), OWN.replace("(model", "((model"), OWN.replace("SGD", "SDG")
        page.ask("edit", text=chance.choice([OWN, OWN.replace("0.05", "0.02"), *bad]))
    elif kind == "drag":
        page.ask("drag", name="weights", x=chance.uniform(-2, 2), y=chance.uniform(-2, 2))
    elif kind == "press":
        page.ask("press", what="batch 1").ask("zoom", low=1, high=5).ask("size", width=500, height=300)
    elif kind != "reset" or chance.random() < 0.3:
        page.ask(kind)


@pytest.mark.parametrize("tasks", [("bowl", "line"), ("spiral", "digits")], ids=", ".join)
def test_after_random_actions_on_two_labs_the_line_of_each_makes_the_same_lab(tasks: tuple[str, str]) -> None:
    chance = random.Random(0)
    labs = [Lab(task) for task in tasks]
    pages = [Page(lab) for lab in labs]
    for _ in range(3):
        for _ in range(16):
            act(chance.choice(pages), chance)
        for lab, page in zip(labs, pages, strict=True):
            line = page.ask("pause").shown["copy"]
            assert "\n" not in line
            assert page.code() == lab.runner.source
            same(made_by(line), lab, updates=chance.choice([(0,), (0, 3)]))
            page.ask("hello")  # it has been driven beside its page


def test_a_task_of_ones_own_is_a_name_in_the_line() -> None:
    task = dataclasses.replace(tasks.line(), batches=tasks.line().batches[:2])
    lab = Lab(task).run(5).step(2)
    line = Page(lab).shown["copy"]
    assert line == "Lab(task, Recipe(lr=0.01)).run(5).step(2)"
    same(made_by(line, task=task), lab)
    page = Page(lab).turn("task", "line")
    assert page.shown["copy"] == "Lab('line', Recipe(lr=0.01))"


@pytest.mark.parametrize("text", [OWN.replace("range(epochs)", "range(1)"), "for x, y in batches:\n    pass"])
def test_a_loop_that_has_ended_and_one_that_makes_no_update(text: str) -> None:
    lab = Lab("line")
    page = Page(lab).ask("edit", text=text).play(20).ask("pause")
    assert lab.runner.done
    same(made_by(page.shown["copy"]), lab)


@pytest.mark.parametrize("later", [False, True])
def test_a_text_that_failed_is_not_in_the_line(later: bool) -> None:
    lab = Lab("line").run(3)
    page = Page(lab)
    if later:
        page.ask("edit", text=OWN).play(2)
    page.ask("edit", text=OWN.replace("backward", "bakward")).play(3)
    assert "AttributeError" in page.note
    page.play(2)
    line = page.ask("pause").shown["copy"]
    assert "bakward" not in line
    same(made_by(line), lab)


def test_a_run_whose_changes_are_not_all_known_offers_no_line() -> None:
    lab = Lab("bowl", controls=["zero_grad"], panels=["loss"])
    for at in range(500):
        lab.runner.switch(Recipe(lr=0.1 + at / 1000))
        lab.runner.advance(updates=1)
    page = Page(lab)
    assert page.shown["copy"] == ""
    page.ask("edit", text=OWN.replace("backward", "bakward")).ask("update")
    assert page.shown["copy"] == ""
    assert page.ask("reset").shown["copy"].startswith("Lab('bowl'")
