"""Two hundred random actions leave no error anywhere, and a Lab that works."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable

from playwright.sync_api import TimeoutError

from gradlab import tasks
from gradlab.loop import SWITCHES, Choice
from gradlab.widgets.controls import SPEEDS

from .driving import Notebook


def options(name: str) -> tuple[str, ...]:
    """What the list of a switch offers."""
    switch = SWITCHES[name]
    assert isinstance(switch, Choice)
    return switch.options


ACTIONS = 200
SECONDS = 60
LOOPS = (
    "optimizer.step(",
    "for epoch in range(epochs):\n    for x, y in batches:\n        nowhere.step()\n",
    "import torch\noptimizer = torch.optim.SGD(model.parameters(), lr=1e6)\nfor x, y in batches:\n"
    "    loss_fn(model(x), y).backward()\n    optimizer.step()\n",
    "while True: pass",
    "",
    "print('<b>&amp;</b>')\nraise SystemExit",
)


def act(page: Notebook, chance: random.Random) -> str:
    """Do one thing that a learner may do, and return what it was."""
    kind = chance.choice(("play", "play", "button", "switch", "switch", "choice", "number", "task", "speed", "edit"))
    if kind == "play":
        page.root.locator(".gl-player .gl-main").click()
        return "Play or Pause"
    if kind == "button":
        words = chance.choice(("1 statement", "1 statement", "1 update", "Reset"))
        page.button(words).click()
        return words
    if kind == "edit":
        return edit(page, chance)
    label, value = {
        "switch": lambda: (chance.choice(("zero_grad", "set_to_none", "divide_loss")), chance.random() < 0.5),
        "choice": lambda: chance.choice(
            [("AMP", amp) for amp in options("amp")]
            + [("clip", clip) for clip in ("off", "0.1", "5")]
            + [("optimizer", name) for name in options("optimizer")]
        ),
        "number": lambda: chance.choice(
            [("lr", lr) for lr in ("1e30", "50", "0.1", "1e-9", "-1", "0", "", "-0")]
            + [("accumulate", n) for n in ("1", "2", "16", "99", "-1", "")]
        ),
        "task": lambda: ("task", chance.choice(tasks.names())),
        "speed": lambda: ("speed", chance.choice(SPEEDS)[0]),
    }[kind]()
    if page.control(label).is_enabled():
        page.turn(label, value)
    return f"{label} {value!r}"


def edit(page: Notebook, chance: random.Random) -> str:
    """Edit the loop, and run it or not."""
    field = page.page.locator(".gradlab textarea")
    if not field.is_visible():
        page.button("Edit the loop").click()
        field.wait_for()
        return "edit"
    text, words = chance.choice(LOOPS), chance.choice(("Run this loop", "Run this loop", "Cancel"))
    with contextlib.suppress(TimeoutError):  # a loop that was handed in a moment ago may be taken just now
        field.fill(text, timeout=1_000)
        page.button(words).click(timeout=1_000)
    return f"{words} {text!r}"


def test_random_actions(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page("from gradlab import Lab\nlab = Lab('digits')\nlab")
    chance = random.Random(20)
    done: list[str] = []
    began = time.perf_counter()
    while len(done) < ACTIONS:
        done.append(act(page, chance))
    spent = time.perf_counter() - began
    print(f"{ACTIONS} actions in {spent:.1f} s")

    assert page.ask("1 + 1") == 2, "the kernel answers"
    assert spent < SECONDS, done[-20:]
    outputs = page.page.evaluate(
        "() => jupyterapp.shell.currentWidget.content.model.sharedModel.cells[0].outputs.map(o => o.output_type)"
    )
    assert outputs == ["execute_result"]

    if page.button("Cancel").is_visible():
        page.button("Cancel").click()
    page.turn("task", "line" if page.ask("lab.runner.task.name") == "digits" else "digits")
    page.wait_for_words("A new run")
    page.turn("lr", 0.011)
    page.turn("speed", "60 updates/s")
    page.button("Reset").click()
    page.wait_for_words("update 0 ")
    page.button("Play").click()
    page.wait_for_updates(5)
    page.button("Pause").click()
    page.wait_until_still()
