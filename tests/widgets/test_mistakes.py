"""A loop of the learner's own that fails: its text is kept, its own line is marked, and the lab goes on as before."""

from __future__ import annotations

import re

import pytest
import torch
from page import Page

from gradlab import Lab, Recipe, Run, tasks

torch.set_num_threads(1)
SOURCE = Recipe(lr=0.2).source()
LINES = SOURCE.splitlines()


def weights(run: Run) -> list[list[float]]:
    return [param.flatten().tolist() for param in run.model.parameters()]


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


AT_ONCE = {
    "syntax": (SOURCE.replace("loss.backward()", "loss.backward("), "loss.backward("),
    "indentation": (SOURCE.replace("        loss.backward()", "   loss.backward()"), "loss.backward()"),
    "set-up": ("# mine\n" + SOURCE.replace("torch.optim.SGD", "torch.optim.SDG"), "SDG"),
    "exit in the set-up": (f"{LINES[0]}\nexit()\n" + "\n".join(LINES[1:]), "exit()"),
}


@pytest.mark.parametrize("kind", AT_ONCE)
def test_a_text_that_cannot_begin_is_kept_with_its_line_marked(kind: str) -> None:
    text, part = AT_ONCE[kind]
    lab = Lab("bowl", Recipe(lr=0.2)).run(3)
    page, before = Page(lab), weights(lab.runner)
    page.ask("edit", text=text)
    assert page.shown["draft"] == text
    assert page.shown["wrong"] == line_of(text, part)
    assert page.note.startswith(f"Your loop stopped at line {line_of(text, part)}: ")
    assert page.code() == lab.runner.source == SOURCE, "the loop before runs on"
    assert weights(lab.runner) == before
    same_as_without(lab, page)


def same_as_without(lab: Lab, page: Page) -> None:
    """The lab trains on as a run without edits."""
    other = Run(tasks.bowl(), Recipe(lr=0.2))
    page.play(4)
    other.advance(updates=lab.runner.updates)
    assert weights(lab.runner) == weights(other)


@pytest.mark.parametrize("how", ["update", "play", "statement"])
def test_a_text_that_fails_at_first_is_kept_as_a_draft(how: str) -> None:
    text = "# my own loop\n" + SOURCE.replace("loss.backward()", "loss.bakward()")
    lab = Lab("bowl", Recipe(lr=0.2)).run(3)
    page, before = Page(lab), weights(lab.runner)
    page.ask("edit", text=text)
    assert (page.shown["draft"], page.shown["wrong"]) == ("", 0), "it was taken"
    assert page.code() == text
    for _ in range(12):
        page.play(3) if how == "play" else page.ask(how)
        if page.shown["wrong"]:
            break
    assert page.shown["draft"] == text
    assert page.shown["wrong"] == line_of(text, "bakward") == 10
    assert page.note.startswith("Your loop stopped at line 10: AttributeError")
    assert page.stopped
    assert page.code() == lab.runner.source == SOURCE
    assert weights(lab.runner) == before
    same_as_without(lab, page)


def test_a_text_that_fails_later_stays_with_its_line_marked() -> None:
    text = SOURCE.replace(
        "loss.backward()", "assert optimizer.state_dict is not None and lives()\n        loss.backward()"
    )
    text = text.replace("for epoch", "left = [None] * 5\nlives = lambda: left.pop() is None\nfor epoch")
    lab = Lab("bowl", Recipe(lr=0.2)).run(3)
    page = Page(lab).ask("edit", text=text).play(5)
    before = weights(lab.runner)
    assert lab.runner.updates == 8
    page.play(3)
    assert page.stopped
    assert page.shown["wrong"] == line_of(text, "assert")
    assert page.note.startswith(f"Your loop stopped at line {line_of(text, 'assert')}: IndexError")
    assert page.code() == lab.runner.source == text, "it has made updates, so it is the loop"
    assert weights(lab.runner) == before
    assert lab.runner.updates == 8
    page.turn("lr", "0.1")
    assert page.shown["wrong"] == 0
    assert page.play(2).shown["updates"] == 10


MEAN: list[tuple[str, str]] = [
    ("while True: pass", "statements(, and no step.. yet| ran and no optimizer took a step)"),  # what is reached first
    ("", "loop has ended"),
    ("raise SystemExit", "line 1: SystemExit"),
    ("for x, y in batches:\n    raise KeyError('<b>')", "line 2: KeyError"),
    ("def f(): return f()\nfor x in batches:\n    f()", "RecursionError"),
    ("\x00", "line 0"),
    ("(" * 500, "line"),
]


@pytest.mark.parametrize(("text", "message"), MEAN, ids=[text[:12] for text, _ in MEAN])
def test_a_text_that_does_not_train_is_told_and_harms_nothing(
    text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradlab.loop.engine.MOST_STATEMENTS", 400)
    monkeypatch.setattr("gradlab.loop.run.MOST_STATEMENTS", 400)
    lab = Lab("bowl", Recipe(lr=0.2)).run(3)
    page, before = Page(lab), weights(lab.runner)
    page.ask("edit", text=text)
    if not page.shown["draft"]:
        page.play(3)
    assert re.search(message, page.note)
    assert weights(lab.runner) == before
    page.turn("zero_grad", False)
    page.turn("zero_grad", True)
    assert page.play(2).shown["updates"] == 5


class Failing(torch.nn.Linear):
    """Raises at each forward pass."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no pass today")


def test_a_model_that_raises_is_told_in_words_and_in_its_picture() -> None:
    points, labels = torch.randn(8, 4), torch.randint(0, 2, (8,))
    batches, picture = [(points, labels)], tasks.HeldOutImages(points, labels, (2, 2))
    loss_fn = torch.nn.functional.cross_entropy
    page = Page(Lab(tasks.Task("failing", lambda seed: Failing(4, 2), batches, loss_fn, picture=picture)))
    page.ask("update")
    assert "no pass today" in page.note
    assert "RuntimeError: no pass today" in str(vars(page.panels["picture"]))
