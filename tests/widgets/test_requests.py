"""A browser's requests to a Lab: each follows the protocol, and a bad one gets a message."""

from __future__ import annotations

import os
import random
import re
from typing import Any

import pytest
import torch
from page import Page

from gradlab import Lab, Recipe, Run, tasks

torch.set_num_threads(1)


def weights(run: Run) -> list[list[float]]:
    return [param.flatten().tolist() for param in run.model.parameters()]


# Numbers that are typed -----------------------------------------------------------------------------------------------

WINDOW = r"accumulate must be (a whole number, )?1 to 16, got "
POSITIVE = " must be (None or )?a finite number above 0, got "
TYPED: list[tuple[str, Any, str]] = [
    *(("accumulate", typed, WINDOW) for typed in ("2.5", "1e400", "", "17", "1_0", "١", "4 5", "1e1", "0x4")),
    *(("accumulate", typed, WINDOW) for typed in (2.5, True, None, [4], 10**400)),
    *(("lr", typed, "lr" + POSITIVE) for typed in ("1e400", "", "abc", "-1", "0", "1_0", "١", "0,1", "nan", "1e-400")),
    *(("lr", typed, "lr" + POSITIVE) for typed in (True, None, {}, 10**400, -0.5)),
    *(("clip", typed, "clip" + POSITIVE) for typed in ("", "-1", "of", [], False)),
]  # fmt: skip


def test_a_number_typed_badly_is_told_and_changes_nothing() -> None:
    lab = Lab("line", Recipe(lr=0.02, accumulate=3, clip=0.5)).run(2).run_statements(2)
    page, before, recipe = Page(lab), weights(lab.runner), lab.runner.recipe
    values, code = dict(page.values), page.code()
    for name, typed, message in TYPED:
        page.turn(name, typed)
        assert re.match(message, page.note), page.note
        shown = {"accumulate": "3", "lr": "0.02", "clip": "0.5"}[name]
        assert page.note.endswith(f" It stays at {shown}.")
        assert repr(typed)[:100] in page.note
        assert (page.values, page.code(), lab.runner.recipe) == (values, code, recipe)
        assert page.frames[0]["values"] == {name: values[name]}, "sent again, for a field to go back to"
        assert not page.stopped
    assert weights(lab.runner) == before


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("lr", "0.25", 0.25), ("lr", " 1e-3 ", 0.001), ("lr", ".5", 0.5), ("lr", "5.", 5.0), ("lr", "+1E2", 100.0),
        ("lr", 0.3, 0.3), ("lr", 2, 2.0), ("accumulate", "16", 16), ("accumulate", " 2", 2), ("accumulate", 4, 4),
        ("clip", "off", None), ("clip", 0.1, 0.1), ("clip", "0.7", 0.7),
    ],
)  # fmt: skip
def test_a_number_typed_well_is_taken_as_it_is(name: str, typed: Any, value: Any) -> None:
    lab = Lab("line", Recipe(lr=0.02, accumulate=3, clip=0.5))
    page = Page(lab).turn(name, typed)
    assert getattr(lab.runner.recipe, name) == value
    assert page.code() == lab.runner.recipe.source()
    if name != "clip":
        assert float(page.values[name]) == value
    elif value is not None:
        assert [str(value), value] in page.control("clip")["options"], "offered even if it is unusual"


# Running to a line ----------------------------------------------------------------------------------------------------


def test_a_loop_runs_up_to_a_line() -> None:
    lab = Lab("digits", Recipe(lr=0.05, accumulate=2, amp="bf16"))
    other = Run(tasks.digits(), lab.runner.recipe)
    page = Page(lab)
    lines = page.code().splitlines()
    step = next(number for number, line in enumerate(lines, 1) if "optimizer.step()" in line)
    inside = next(number for number, line in enumerate(lines, 1) if "output = model(x)" in line)
    page.ask("to_line", line=step)
    assert (page.shown["updates"], page.shown["lit"]) == (1, [step, step])
    other.advance(updates=1)
    assert weights(lab.runner) == weights(other)
    page.ask("to_line", line=inside)  # in a block that is one statement
    first, last = page.shown["lit"]
    assert first <= inside <= last
    assert page.shown["updates"] == 1
    page.ask("to_line", line=step)
    other.advance(updates=1)
    assert weights(lab.runner) == weights(other)


NONE = "is not a statement of the loop"


@pytest.mark.parametrize(
    ("line", "message"),
    [(1, "not reached line 1 in two updates. Set-up runs only once"), (0, NONE), (2, NONE), (99, NONE), (-3, NONE)],
)
def test_a_line_that_cannot_be_run_to_is_told(line: int, message: str) -> None:
    lab = Lab("line")
    page = Page(lab).ask("to_line", line=line)
    assert message in page.note
    assert lab.runner.updates == (2 if line == 1 else 0)


# Dragging, pressing ---------------------------------------------------------------------------------------------------


def test_dragged_weights_begin_a_run_from_there() -> None:
    lab = Lab("bowl", Recipe(lr=0.2)).run(5)
    page = Page(lab)
    page.ask("drag", name="weights", x=0.75, y=-0.5)
    assert weights(lab.runner) == [[0.75, -0.5]]
    assert page.shown["updates"] == 0
    assert "the weights that you set" in page.note
    panel = page.panels["landscape"]
    assert panel.points(panel.draggable("weights")) == [(0.75, -0.5)]
    page.play(7)
    task = tasks.bowl()
    model = task.build(0)  # a loop of our own from there
    (weight,) = model.parameters()
    weight.data = torch.tensor([0.75, -0.5]).view_as(weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for index in range(7):
        x, y = task.batches[index % len(task.batches)]
        optimizer.zero_grad()
        task.loss_fn(model(x), y).backward()
        optimizer.step()
    assert weights(lab.runner) == [weight.flatten().tolist()]
    page.ask("reset")
    assert weights(lab.runner) == [[0.75, -0.5]], "reset goes back to where they were put"
    page.turn("task", "line")
    assert lab.runner.start_weights is None


NO_BATCHES = ["", "batch", "batch ", "batch -1", "batch ١", "batch 1.5", "weights 3", "batch 1 2"]
REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    *(("bowl", "drag", {"name": name, "x": 0, "y": 0}, "name must be 'weights', got") for name in ("lr", "")),
    ("digits", "drag", {"name": "weights", "x": 0, "y": 0}, "only if the model has exactly two"),
    *(("line", "press", {"what": what}, "what must name a batch, such as") for what in NO_BATCHES),
]


def test_what_cannot_be_dragged_pressed_or_shown_is_told() -> None:
    pages = {task: Page(Lab(task).run(20)) for task in ("bowl", "digits", "line")}
    for task, do, more, message in REFUSED:
        page = pages[task]
        before = page.snapshot()
        assert re.search(message, page.ask(do, **more).note)
        assert {**page.snapshot(), "note": ""} == {**before, "note": ""}


def test_a_batch_that_is_pressed_is_explained() -> None:
    lab = Lab("line", Recipe(lr=0.01, accumulate=2, zero_grad=False)).run(2)
    page = Page(lab)
    batches = len(tasks.line().batches)
    assert page.press("gradient", "batch 4").note == (
        f"Batch 4 is number 4 of the {batches} in epoch 1. One step has applied it."
    )
    assert "It has been applied 2 times, and it is still in .grad" in page.ask("press", what="batch 1").note
    page.ask("to_line", line=next(s.line for s in lab.runner.loop.program.statements if "backward" in s.label))
    assert "no step has applied it yet" in page.ask("press", what="batch 5").note
    assert "Batch 99 has had no backward pass yet" in page.ask("press", what="batch 99").note
    lab.switch(zero_grad=True).run(batches)
    assert "It is no longer in .grad" in page.ask("press", what="batch 1").note
    newest = lab.runner.provenance.backwards
    assert f"in epoch {1 + (newest - 1) // batches}." in page.ask("press", what=f"batch {newest}").note


# An interrupt ---------------------------------------------------------------------------------------------------------


def test_an_interrupt_ends_the_playing_and_says_so() -> None:
    lab = Lab("line")
    page = Page(lab).play(3)
    lab.model.interrupted = True
    page.play(5)
    assert lab.runner.updates == 3
    assert page.stopped
    assert len(page.frames) == 1
    assert page.note == "Interrupted. Press Play to continue."
    assert not lab.model.playing
    page.play(2)
    assert lab.runner.updates == 5
    assert not page.stopped
    lab.model.interrupted = True
    page.ask("pause").play(2)
    assert lab.runner.updates == 7, "what came before a pause does not stop the next play"


def test_that_a_playing_has_ended_is_told_until_another_begins() -> None:
    lab = Lab("line")
    page = Page(lab)

    def ask_frames(play: int) -> bool:
        return page.ask("frames", count=1, every=20, updates=1, play=play).stopped

    assert not ask_frames(play=1)
    lab.model.interrupted = True
    replies = [ask_frames(play=1) for _ in range(3)]  # an interrupt may lose the answer that says so first
    assert replies == [True] * 3
    assert page.ask("hello").stopped
    assert not ask_frames(play=2)
    assert not ask_frames(play=1), "of a page that has not heard of it; the other goes on"
    assert not page.ask("hello").stopped
    assert lab.runner.updates == 2


# Requests that no browser of ours makes -------------------------------------------------------------------------------

BAD: list[dict[str, Any]] = [
    {}, {"do": None}, {"do": []}, {"do": {}}, {"do": "fly"}, {"do": 3}, {"do": "frames"}, {"do": "frames", "count": 1},
    {"do": "frames", "count": "many", "every": 1, "updates": 1},
    {"do": "frames", "count": 1, "every": None, "updates": 1},
    {"do": "frames", "count": 1, "every": 16, "updates": "2"}, {"do": "frames", "count": 1, "every": 1, "seconds": "x"},
    {"do": "turn"}, {"do": "turn", "name": "lr"}, {"do": "turn", "name": "learning_rate", "value": 1},
    {"do": "turn", "name": [], "value": 1}, {"do": "turn", "name": "task", "value": "digitz"},
    {"do": "turn", "name": "task", "value": []},
    {"do": "turn", "name": "amp", "value": [1]},
    {"do": "turn", "name": "zero_grad", "value": "no"}, {"do": "edit"}, {"do": "edit", "text": 3}, {"do": "to_line"},
    {"do": "to_line", "line": 2.5}, {"do": "drag", "name": "weights"},
    {"do": "drag", "name": "weights", "x": "a", "y": 1},
    {"do": "drag", "name": "weights", "x": 10**400, "y": 1}, {"do": "press"}, {"do": "press", "what": ["batch 1"]},
    {"do": "turn", "name": "lr", "value": "9" * 100_000}, {"do": "turn", "name": "lr", "value": "\ud800"},
]  # fmt: skip


def test_a_bad_request_is_answered_in_words_and_stops_no_play() -> None:
    lab = Lab("bowl").run(2)
    page, before = Page(lab), weights(lab.runner)
    for request in BAD:
        page.ask("hello").ask(**{"do": None, **request})
        assert "must be" in page.note, request
        assert len(page.note) < 500
        assert not page.stopped
    assert weights(lab.runner) == before
    assert page.snapshot() == Page(lab).snapshot()


WORDS = "frames hello pause statement update reset turn edit to_line drag press"
FIELDS = "count every updates seconds name value text line x y what"
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2.5, 3, 1e300, -1e300, 10**400, 10**9, "", "x", "1", "-1", "nan", "٣", "\ud800",
    "weights", "batch 1", "lr", "task", "card", "amp", "zero_grad", "off", "digits", "bowl", [], [1], {}, {"a": None},
    "0.5",    "for x, y in batches:\n    pass", "1 +", "optimizer = 3\nfor x in batches:\n    optimizer()",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8 if os.environ.get("GRADLAB_NIGHTLY") else 1))
def test_random_requests_never_raise(seed: int) -> None:
    chance = random.Random(seed)
    lab = Lab("bowl", controls=["task", "zero_grad", "lr", "edit", "speed"])
    page = Page(lab)
    for _ in range(300):
        fields = {name: chance.choice(VALUES) for name in FIELDS.split() if chance.random() < 0.6}
        do = chance.choice(WORDS.split()) if chance.random() < 0.9 else chance.choice(VALUES)
        page.ask(do, **fields)
        assert isinstance(page.note, str)
        assert page.code() == lab.runner.source or page.code() == lab.runner.source.rstrip("\n") + "\n"
    assert page.snapshot() == Page(lab).snapshot()
    page.ask("hello")  # that other page has had a frame
    assert page.turn("task", "line").turn("lr", "0.01").play(3).shown["updates"] == 3
