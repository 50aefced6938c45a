"""Random actions over two labs at once leave no error anywhere, a notebook as it was, and labs that work."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable

from playwright.sync_api import Error, TimeoutError

from gradlab import tasks
from gradlab.loop import SWITCHES, Choice
from gradlab.widgets.controls import SPEEDS

from .driving import Notebook


def options(name: str) -> tuple[str, ...]:
    """What the list of a switch offers."""
    switch = SWITCHES[name]
    assert isinstance(switch, Choice)
    return switch.options


LOOPS = (
    "optimizer.step(",
    "for epoch in range(epochs):\n    for x, y in batches:\n        nowhere.step()\n",
    "import torch\noptimizer = torch.optim.SGD(model.parameters(), lr=1e6)\nfor x, y in batches:\n"
    "    loss_fn(model(x), y).backward()\n    optimizer.step()\n",
    "while True: pass",
    "",
    "print('<b>&amp;</b>')\nraise SystemExit",
)
KINDS = (
    ["play"] * 2 + ["button"] + ["switch"] * 2 + ["choice", "number", "task", "speed", "edit", "line", "mouse", "key"]
)
KEYS = [*"bddaxmy +0", "Escape", "Enter", "ArrowDown", "ArrowUp", "Tab", "Shift+ArrowUp"]


def act(page: Notebook, chance: random.Random) -> str:
    """Do one thing that a learner may do, and return what it was."""
    kind = chance.choice(KINDS)
    if kind == "play":
        # Not by the mouse: the notebook scrolls while things above the lab grow and shrink.
        page.root.locator(".gl-player .gl-main").dispatch_event("click")
        return "Play or Pause"
    if kind == "button":
        words = chance.choice(("1 statement", "1 statement", "1 update", "Reset"))
        page.button(words).click()
        return words
    if kind == "edit":
        return edit(page, chance)
    if kind == "line":
        lines = page.root.locator("pre.gl .line")
        at = chance.randrange(12)
        if lines.nth(at).is_visible():
            with contextlib.suppress(TimeoutError):
                lines.nth(at).click(timeout=500)
        return f"line {at}"
    if kind == "mouse":
        return mouse(page, chance)
    if kind == "key":
        key = chance.choice(KEYS)
        if page.page.evaluate("() => Boolean(document.activeElement.closest('.gradlab'))"):
            page.page.keyboard.press(key)
        return f"key {key}"
    label, value = {
        "switch": lambda: (chance.choice(("zero_grad", "set_to_none", "divide_loss")), None),
        "choice": lambda: chance.choice(
            [("AMP", amp) for amp in options("amp")]
            + [("clip", clip) for clip in ("off", "0.1", "5")]
            + [("optimizer", name) for name in options("optimizer")]
        ),
        "number": lambda: chance.choice(
            [("lr", lr) for lr in ("1e30", "50", "0.1", "1e-9", "-1", "0", "", "-0", "abc", "1e400")]
            + [("accumulate", n) for n in ("1", "2", "16", "99", "-1", "", "2.5")]
        ),
        "task": lambda: ("task", chance.choice(tasks.names())),
        "speed": lambda: ("speed", chance.choice(list(SPEEDS))),
    }[kind]()
    if page.control(label).is_enabled():
        with contextlib.suppress(TimeoutError):  # it may be greyed out just now
            page.control(label).click(timeout=1_000) if value is None else page.turn(label, value)
    return f"{label} {value!r}"


def mouse(page: Notebook, chance: random.Random) -> str:
    """Hover, press, or drag across a panel."""
    canvases = page.root.locator("canvas")
    canvas = canvases.nth(chance.randrange(canvases.count()))
    with contextlib.suppress(Error):  # the panels may be other ones just now
        canvas.scroll_into_view_if_needed(timeout=1_000)  # else the toolbar of the notebook may be what is pressed
    box = canvas.bounding_box(timeout=2_000)
    if box is None:
        return "no panel"
    places = [(box["x"] + chance.random() * box["width"], box["y"] + chance.random() * box["height"]) for _ in range(2)]
    page.page.mouse.move(*places[0])
    kind = chance.choice(("hover", "click", "double click", "drag"))
    if kind == "click":
        page.page.mouse.click(*places[0])
    elif kind == "double click":
        page.page.mouse.dblclick(*places[0])
    elif kind == "drag":
        page.page.mouse.down()
        page.page.mouse.move(*places[1], steps=4)
        page.page.mouse.up()
    return kind


def edit(page: Notebook, chance: random.Random) -> str:
    """Edit the loop, and run it or not."""
    field = page.root.locator("textarea")
    if not field.is_visible():
        with contextlib.suppress(TimeoutError):  # a text that was kept may be opened just now
            page.button("Edit the loop").click(timeout=1_000)
        return "edit"
    text, words = (
        chance.choice(LOOPS),
        chance.choice(("Run this loop", "Run this loop", "Cancel", "Start from the loop")),
    )
    with contextlib.suppress(TimeoutError):  # a loop that was handed in a moment ago may be taken just now
        field.fill(text, timeout=1_000)
        page.button(words).click(timeout=1_000)
    return f"{words} {text!r}"


ACTIONS = 1_000 if os.environ.get("GRADLAB_NIGHTLY") else 200


def test_random_actions_over_two_labs(lab_page: Callable[..., Notebook]) -> None:
    cells = ("from gradlab import Lab\nlab = Lab('digits')\nlab", "other = Lab('bowl')\nother")
    page = lab_page(*cells, width=1500, height=1100)
    labs = [page, page.lab(1)]
    labs[1].wait_until_painted()
    chance = random.Random(20)
    done: list[str] = []
    while len(done) < ACTIONS:
        number = chance.randrange(2)
        done.append(f"{number}: {act(labs[number], chance)}")

    assert page.ask("1 + 1") == 2, done[-20:]  # the kernel answers
    there = page.page.evaluate(
        "() => jupyterapp.shell.currentWidget.content.model.sharedModel.cells.map("
        "cell => [cell.cell_type, cell.source, cell.outputs.map(output => output.output_type)])"
    )
    assert there == [["code", cell, ["execute_result"]] for cell in cells], "the notebook is as it was"
    for lab, name in zip(labs, ("lab", "other"), strict=True):
        works(lab, name)


def works(page: Notebook, name: str) -> None:
    """The lab does what it should after all that."""
    page.root.scroll_into_view_if_needed()
    if page.button("Pause").is_visible():
        page.button("Pause").click()
    page.wait_until_still()
    if page.button("Cancel").is_visible():
        page.button("Cancel").click()
    task = "line" if page.ask(f"{name}.runner.task.name") == "digits" else "digits"
    page.turn("task", task)
    page.wait_for_words("A new run")
    page.turn("lr", 0.011)
    page.turn("speed", "60 updates/s")
    page.button("Reset").click()
    page.wait_for_words("update 0 ")
    page.button("Play").click()
    page.wait_for_updates(5)
    page.button("Pause").click()
    page.wait_until_still()
    run = f"{name}.runner"
    assert page.updates() == page.ask(f"{run}.updates")
    assert page.code() == page.ask(f"{run}.source")
    same = f"""(lambda one, plain: (plain.advance(updates=one.updates), [
        p.tolist() for p in one.model.parameters()] == [p.tolist() for p in plain.model.parameters()])[1])(
        {run}, __import__('gradlab').Run({run}.task, {run}.recipe))"""
    assert page.ask(same.replace("\n", " ")), "the weights are those of a plain run"
